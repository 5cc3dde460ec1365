package incidents

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/storage/sealed"
)

const (
	// sealedMagic begins a file that is encrypted; sealedVersion follows it, then the length of its name, and that.
	sealedMagic   = "sluice sealed trace\n"
	sealedVersion = 1
	// mostPart bounds an encrypted part: a batch is not larger.
	mostPart = 128 << 20
)

// sealedHead begins an encrypted file.
func sealedHead(name string) []byte {
	head := append([]byte(sealedMagic), sealedVersion, byte(len(name)))
	return append(head, name...)
}

// appendSealed appends a part: its length, and records that can be read by a key, in the file of that name, at that
// byte.
func appendSealed(dst, records []byte, key *sealed.Key, name string, at int64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(records)+key.Over()))
	return key.Seal(dst, records, bound(name, at))
}

// bound is what a part of a file is encrypted as.
func bound(name string, at int64) string { return fmt.Sprintf("incidents %s at %d", name, at) }

// Runs lists the files of a folder by runs, oldest first. path may be a state folder, or the folder of incidents in it.
// What is being written is among them.
func Runs(path string) (runs [][]string, err error) {
	if inner := filepath.Join(path, "incidents"); isFolder(inner) {
		path = inner
	}
	all, err := list(path)
	if err != nil {
		return nil, err
	}
	before, next := "", 0
	for _, x := range all {
		run, number, _ := parse(x.name)
		if run != before || number != next { // what lies between was removed by somebody
			runs = append(runs, nil)
		}
		before, next = run, number+1
		runs[len(runs)-1] = append(runs[len(runs)-1], filepath.Join(path, x.name))
	}
	if len(runs) == 0 {
		return nil, errors.New("there are no traces in this folder: want that of --state, or incidents in it")
	}
	return runs, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Reader returns the token trace of a file, decrypted by the key that fits, if that is necessary. Whatever else it is
// is returned as it is.
func Reader(r io.Reader, keys ...*sealed.Key) (io.Reader, error) {
	in := bufio.NewReader(r)
	if begin, _ := in.Peek(len(sealedMagic)); string(begin) != sealedMagic {
		return in, nil
	}
	head := make([]byte, len(sealedMagic)+2)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, fmt.Errorf("the file ends in its beginning: %w", io.ErrUnexpectedEOF)
	}
	if v := head[len(head)-2]; v != sealedVersion {
		return nil, fmt.Errorf("the file is of version %d, and this program reads version %d", v, sealedVersion)
	}
	name := make([]byte, head[len(head)-1])
	if _, err := io.ReadFull(in, name); err != nil {
		return nil, fmt.Errorf("the file ends in its beginning: %w", io.ErrUnexpectedEOF)
	}
	o := &opened{in: in, name: string(name), at: int64(len(head) + len(name))}
	for _, k := range keys {
		if k != nil {
			o.keys = append(o.keys, k)
		}
	}
	if len(o.keys) == 0 {
		return nil, errors.New("it is encrypted, and there is no key: set SLUICE_STATE_KEY to the one it was written with")
	}
	return o, nil
}

// opened decrypts parts as they are read.
type opened struct {
	in   io.Reader
	keys []*sealed.Key
	name string
	at   int64
	left []byte
	err  error
}

// Read implements io.Reader.
func (o *opened) Read(p []byte) (int, error) {
	for len(o.left) == 0 && o.err == nil {
		o.err = o.next()
	}
	if len(o.left) == 0 {
		return 0, o.err
	}
	n := copy(p, o.left)
	o.left = o.left[n:]
	return n, nil
}

// next decrypts the next part.
func (o *opened) next() error {
	var size [4]byte
	if _, err := io.ReadFull(o.in, size[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > mostPart {
		return fmt.Errorf("byte %d: a part of %d bytes, want at most %d: the file is damaged", o.at, n, mostPart)
	}
	var part strings.Builder // grows with what there is
	if _, err := io.CopyN(&part, o.in, int64(n)); err != nil {
		return io.ErrUnexpectedEOF
	}
	for i, k := range o.keys {
		plain, err := k.Open([]byte(part.String()), bound(o.name, o.at))
		if err == nil {
			o.keys = o.keys[i : i+1] // all parts of a file have one
			o.left, o.at = plain, o.at+int64(len(size))+int64(n)
			return nil
		}
	}
	return fmt.Errorf("byte %d: %w", o.at, sealed.ErrOpen)
}
