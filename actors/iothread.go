package actors

import (
	"fmt"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// ioThread is a goroutine on a thread of its own that keeps a ring of reads going: it alone may touch the ring,
// and it alone waits for the disk. Requests come over a channel that holds as many as can exist.
type ioThread struct {
	log      zerolog.Logger
	slabs    *pin.Arena
	spans    *trace.Track
	requests chan *read
	ended    chan struct{}
	pending  [place.Slabs]*read // by slab, which is also the request's id
	count    int
}

func (r *reader) startIO() *ioThread {
	t := &ioThread{log: r.log, slabs: r.slabs, spans: r.disk,
		requests: make(chan *read, place.Slabs), ended: make(chan struct{})}
	go t.run()
	return t
}

// stop lets the reads under way end, and the goroutine with them. It may be called twice.
func (t *ioThread) stop() {
	select {
	case <-t.ended:
		return
	default:
	}
	close(t.requests)
	<-t.ended
}

func (t *ioThread) run() {
	defer close(t.ended)
	ring, err := uring.Open(place.Slabs, t.slabs.Memory())
	if err != nil {
		for m := range t.requests {
			t.answer(m, nil, err)
		}
		return
	}
	defer func() {
		if err := ring.Close(); err != nil {
			t.log.Error().Err(err).Msg("closing the ring of reads")
		}
	}()
	for t.submit(ring) {
		t.collect(ring, 1)
	}
	for t.count > 0 {
		t.collect(ring, 1)
	}
}

// submit passes on what was asked for; without anything under way it waits. It returns false when there will be no
// more.
func (t *ioThread) submit(ring *uring.Ring) bool {
	for {
		var m *read
		var ok bool
		if t.count == 0 {
			m, ok = <-t.requests
		} else {
			select {
			case m, ok = <-t.requests:
			default:
				return true
			}
		}
		if !ok {
			return false
		}
		m.began = now()
		request := uring.Request{
			ID: uint64(m.slab), Source: m.source, Offset: m.from, Length: m.bytes,
			Into: t.slabs.Slab(m.slab),
		}
		if err := ring.Submit([]uring.Request{request}); err != nil {
			t.answer(m, nil, err)
			continue
		}
		t.pending[m.slab] = m
		t.count++
		t.collect(ring, 0) // what came from the page cache is there already, and others wait for work
	}
}

// collect waits for so many reads to end and answers those that did.
func (t *ioThread) collect(ring *uring.Ring, least int) {
	var done [place.Slabs]uring.Completion
	n, err := ring.Wait(least, done[:])
	for _, d := range done[:n] {
		t.finish(int(d.ID), d.Data, d.Err)
	}
	if err == nil && n >= least {
		return
	}
	for slab := range t.pending { // the ring is broken: nothing else will come
		t.finish(slab, nil, fmt.Errorf("reading failed: %w", err))
	}
}

func (t *ioThread) finish(slab int, data []byte, err error) {
	m := t.pending[slab]
	if m == nil {
		return
	}
	t.pending[slab] = nil
	t.count--
	t.spans.Record(trace.Disk, trace.Nothing(), m.asked, m.began, now())
	t.answer(m, data, err)
}

func (t *ioThread) answer(m *read, data []byte, err error) {
	m.data, m.err = data, err
	m.reply.Send(m)
}
