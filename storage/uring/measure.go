package uring

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/source"
)

const (
	measuredDepth = 32      // reads at once
	measuredPiece = 1 << 20 // bytes of each
)

// Rate is the measured speed of reading a file.
type Rate struct {
	Bytes  float64 // a second
	Direct bool    // past the page cache; else it may be the speed of memory
}

// Measure reads a file in order for about the time of during, starting again at its end. It keeps many large reads
// under way, as streaming of a model does. With direct reads it does not use the page cache, whatever that holds.
func Measure(s source.Source, during time.Duration) (rate Rate, err error) {
	if s.Path == "" || s.Size == 0 {
		return rate, fmt.Errorf("%s: there is no file to measure reading with", s.Name)
	}
	const room = measuredPiece + Slack
	memory, err := mem.Alloc(measuredDepth * room)
	if err != nil {
		return rate, err
	}
	r, err := Open(measuredDepth, memory)
	if err != nil {
		return rate, errors.Join(err, mem.Free(memory))
	}
	r.resident = func(*os.File, int64, int) bool { return false }
	defer func() { err = errors.Join(err, r.Close(), mem.Free(memory)) }()
	at, began, total := int64(0), time.Now(), int64(0)
	submit := func(id uint64) error {
		n := min(measuredPiece, s.Size-at)
		q := Request{ID: id, Source: s, Offset: at, Length: int(n), Into: memory[id*room:][:room]}
		at = (at + n) % s.Size
		return r.Submit([]Request{q})
	}
	for id := range uint64(measuredDepth) {
		if err := submit(id); err != nil {
			return rate, err
		}
	}
	rate.Direct = r.files[s.Path] != nil && r.files[s.Path].direct != nil
	for total == 0 || time.Since(began) < during { // one read at least, so that an unreadable file is an error
		var done [measuredDepth]Completion
		n, err := r.Wait(1, done[:])
		if err != nil {
			return rate, err
		}
		for _, d := range done[:n] {
			if d.Err != nil {
				return rate, d.Err
			}
			total += int64(len(d.Data))
			if err := submit(d.ID); err != nil {
				return rate, err
			}
		}
	}
	rate.Bytes = float64(total) / time.Since(began).Seconds()
	return rate, nil
}
