package uring

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/source"
)

// Sizes of what Verify reads: pieces that neither begin nor end at a block of a disk.
const (
	verifiedDepth = 16
	verifiedPiece = 100_003
)

// Verify reads a whole file as streaming of a model does, past the page cache where the file system allows it, many
// pieces at a time, and compares it with what was written to it. direct says that it was read past the page cache.
func Verify(s source.Source, written []byte) (direct bool, err error) {
	if int64(len(written)) != s.Size || s.Path == "" || s.Size == 0 {
		return false, fmt.Errorf("%s: %d bytes were written, and the file has %d", s.Name, len(written), s.Size)
	}
	const room = verifiedPiece + Slack + Block - (verifiedPiece+Slack)%Block // a piece begins at a block of memory
	memory, err := mem.Alloc(verifiedDepth * room)
	if err != nil {
		return false, err
	}
	r, err := Open(verifiedDepth, memory)
	if err != nil {
		return false, errors.Join(err, mem.Free(memory))
	}
	r.resident = func(*os.File, int64, int) bool { return false }
	defer func() { err = errors.Join(err, r.Close(), mem.Free(memory)) }()
	begun := make([]int64, verifiedDepth) // by ID, where the piece begins
	at, under := int64(0), 0
	submit := func(id uint64) error {
		n := min(verifiedPiece, s.Size-at)
		q := Request{ID: id, Source: s, Offset: at, Length: int(n), Into: memory[id*room:][:room], Head: HeadOf(at)}
		begun[id] = at
		at, under = at+n, under+1
		return r.Submit([]Request{q})
	}
	for id := uint64(0); id < verifiedDepth && at < s.Size; id++ {
		if err := submit(id); err != nil {
			return false, err
		}
	}
	direct = r.files[s.Path] != nil && r.files[s.Path].direct != nil
	for under > 0 {
		var done [verifiedDepth]Completion
		n, err := r.Wait(1, done[:])
		if err != nil {
			return direct, err
		}
		for _, d := range done[:n] {
			under--
			from := begun[d.ID]
			switch {
			case d.Err != nil:
				return direct, d.Err
			case !bytes.Equal(d.Data, written[from:][:len(d.Data)]):
				return direct, fmt.Errorf("%s: what was read of the bytes from %d on is not what was written: the drive, its "+
					"controller or the file system is at fault", s.Name, from)
			case at < s.Size:
				if err := submit(d.ID); err != nil {
					return direct, err
				}
			}
		}
	}
	return direct, nil
}
