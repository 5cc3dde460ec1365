package actors

import (
	"container/list"
	"sync"

	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/picture"
)

// mostSeen is how many bytes the rows may take that are remembered of pictures, or of prompts that an encoder read.
const mostSeen = 256 << 20

// annex computes rows of prompts that are no tokens' on a processor of its own beside the device, and remembers those
// that were asked for last. Who uses it holds mu.
type annex struct {
	spans *trace.Track // of what was computed; nil: there is none

	mu     sync.Mutex
	device backend.Device // nil: nothing was computed yet
	seen   map[picture.Hash]*list.Element
	order  *list.List // of remembered, what was asked for last in front
	bytes  int
}

type remembered struct {
	hash picture.Hash
	seen *sight.Seen
}

func newAnnex() annex { return annex{seen: map[picture.Hash]*list.Element{}, order: list.New()} }

// find returns rows that are remembered; nil: they are not.
func (a *annex) find(hash picture.Hash) *sight.Seen {
	at := a.seen[hash]
	if at == nil {
		return nil
	}
	a.order.MoveToFront(at)
	return at.Value.(*remembered).seen
}

// compute makes rows, of which a span tells, and remembers them.
func (a *annex) compute(hash picture.Hash, rows func(backend.Device) (*sight.Seen, error)) (*sight.Seen, error) {
	if err := a.open(); err != nil {
		return nil, err
	}
	began := trace.Instant()
	seen, err := rows(a.device)
	if a.spans != nil {
		a.spans.Record(trace.Block, trace.Nothing(), began, began, trace.Instant())
	}
	if err != nil {
		return nil, err
	}
	a.seen[hash] = a.order.PushFront(&remembered{hash, seen})
	for a.bytes += seen.Bytes(); a.bytes > mostSeen; {
		r := a.order.Remove(a.order.Back()).(*remembered)
		delete(a.seen, r.hash)
		a.bytes -= r.seen.Bytes()
	}
	return seen, nil
}

// open opens the processor when it is first needed.
func (a *annex) open() (err error) {
	if a.device == nil {
		a.device, err = cpu.New(0, "")
	}
	return err
}

// close frees the processor, once nothing that was compiled for it is left.
func (a *annex) close() error {
	if a.device == nil {
		return nil
	}
	return a.device.Close()
}
