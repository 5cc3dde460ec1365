package tiers

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/uring"
)

// read is an uploader's request to the reader: bytes of a file, to be read into a slab, or into a slot on a device. The
// same struct returns as the answer, data being exactly those bytes.
// Wide: question and answer are one message, which allocates nothing.
type read struct {
	by     string
	gen    uint64
	piece  *piece
	source source.Source
	from   int64
	bytes  int
	into   []byte // see uring.Request
	head   int
	memory *tenure // of the model's memory and file
	reply  run.Edge[read]
	lane   *lane     // the copy of the file that it is read from; nil: there is but one
	asked  time.Time // when it was passed on to the thread
	began  time.Time // when the thread passed it on to the disk
	ended  time.Time // when the disk had read it

	data []byte
	err  error
}

func (*read) Late() {}

// Disk is what an I/O thread drives: a *uring.Ring, or in tests one with faults.
type Disk interface {
	Submit([]uring.Request) error
	Wait(least int, done []uring.Completion) (int, error)
	Close() error
}

// OpenDisk opens a ring for depth reads at once, on the thread that will drive it. Most reads go to memory: the slabs.
type OpenDisk func(depth int, memory []byte) (Disk, error)

// OpenRing is the OpenDisk that is used outside tests.
func OpenRing(depth int, memory []byte) (Disk, error) { return uring.Open(depth, memory) }

const (
	straight    = 16 // reads into slots that are under way at once
	readsAtOnce = place.Slabs + straight
)

// ioThread is a goroutine on a thread of its own that keeps a ring of reads going: it alone may touch the ring,
// and it alone waits for the disk. Requests come over a channel that holds as many as can exist.
type ioThread struct {
	log      zerolog.Logger
	open     OpenDisk
	slabs    *Slabs
	sums     *uring.Sums
	spans    *trace.Track
	requests chan *read  // nil: renew
	stale    atomic.Bool // a renewal is on its way
	ended    chan struct{}
	lanes    *lanes
	far      sync.WaitGroup // reads of other machines, each on a goroutine: they are no more than there are credits
	pending  []*read        // by the request's id
	free     []int          // those that are not in use
	done     []uring.Completion
	broken   error // why the ring cannot go on
}

func startIO(log zerolog.Logger, open OpenDisk, slabs *Slabs, sums *uring.Sums, spans *trace.Track) *ioThread {
	t := &ioThread{log: log, open: open, slabs: slabs, sums: sums, spans: spans,
		requests: make(chan *read, readsAtOnce+1), ended: make(chan struct{}), lanes: newLanes(),
		pending: make([]*read, readsAtOnce), done: make([]uring.Completion, readsAtOnce)}
	for id := range readsAtOnce {
		t.free = append(t.free, id)
	}
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

// renew has the thread close its ring once no read is under way: so it lets go of files and slabs.
func (t *ioThread) renew() {
	if t.stale.Swap(true) {
		return
	}
	t.requests <- nil // the channel has room for one
}

// run drives one ring after another: one that broke, or is to be renewed, is closed, and the next read opens another.
func (t *ioThread) run() {
	defer close(t.ended)
	for m := range t.requests {
		if m == nil {
			t.stale.Store(false)
			continue
		}
		ring, err := t.open(readsAtOnce, t.slabs.Memory())
		if err != nil {
			t.answer(m, nil, err)
			continue
		}
		t.serve(ring, m)
		t.far.Wait() // they read to memory, too
		if err := ring.Close(); err != nil {
			t.log.Error().Err(err).Msg("closing the ring of reads")
		}
		for id := range t.pending { // nothing is being read any more
			t.finish(id, nil, t.broken)
		}
	}
}

// serve reads with one ring until that is to be renewed or breaks, or no more requests will come.
func (t *ioThread) serve(ring Disk, first *read) {
	t.broken = nil
	t.start(ring, first)
	for t.broken == nil && t.submit(ring) {
		t.collect(ring, 1)
	}
	for t.broken == nil && t.busy() {
		t.collect(ring, 1)
	}
}

// busy says whether anything is under way.
func (t *ioThread) busy() bool { return len(t.free) < len(t.pending) }

// submit passes on the requests that have come; if no read is under way, it waits for one. It returns false when the
// ring gets no more.
func (t *ioThread) submit(ring Disk) bool {
	for {
		var m *read
		var ok bool
		if !t.busy() {
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
		if m == nil { // what follows goes to another ring
			t.stale.Store(false)
			return false
		}
		t.start(ring, m)
		if t.broken != nil {
			return true
		}
		t.collect(ring, 0) // what came from the page cache is there already, and others wait for work
	}
}

// start passes a read on to the disk.
func (t *ioThread) start(ring Disk, m *read) {
	m.began = now()
	if !m.memory.enter() {
		t.answer(m, nil, errModelClosed)
		return
	}
	from, lane := t.lanes.choose(&m.source, m.bytes)
	if from.Far() {
		m.lane = lane
		lane.begin(m.bytes)
		t.far.Go(func() { t.ask(m, &from) })
		return
	}
	id := t.free[len(t.free)-1]
	request := uring.Request{ID: uint64(id), Source: from, Offset: m.from, Length: m.bytes, Into: m.into, Head: m.head}
	if err := ring.Submit([]uring.Request{request}); err != nil {
		t.broken = err
		m.memory.leave()
		t.answer(m, nil, err)
		return
	}
	t.free = t.free[:len(t.free)-1]
	t.pending[id], m.lane = m, lane
	lane.begin(m.bytes)
}

// collect waits until at least so many reads have ended, and answers those that did.
func (t *ioThread) collect(ring Disk, least int) {
	n, err := ring.Wait(least, t.done)
	for _, d := range t.done[:n] {
		t.finish(int(d.ID), d.Data, d.Err)
	}
	if err == nil && n >= min(least, 1) {
		return
	}
	t.broken = fmt.Errorf("reading failed: %w", err) // nothing else will come
}

func (t *ioThread) finish(id int, data []byte, err error) {
	m := t.pending[id]
	if m == nil {
		return
	}
	t.pending[id] = nil
	t.free = append(t.free, id)
	t.end(m, data, err)
}

// ask reads from another machine. What comes late there holds up no read of the drive.
func (t *ioThread) ask(m *read, from *source.Source) {
	data := m.into[m.head:][:m.bytes:m.bytes]
	if _, err := from.Remote.ReadAt(data, m.from); err != nil {
		t.end(m, nil, fmt.Errorf("%s: bytes %d to %d: %w", from.Name, m.from, m.from+int64(m.bytes), err))
		return
	}
	t.end(m, data, nil)
}

// end answers a read that has ended, if its bytes are those that were read before.
func (t *ioThread) end(m *read, data []byte, err error) {
	m.ended = now()
	t.spans.Record(trace.Disk, trace.Nothing(), m.asked, m.began, m.ended)
	if err == nil {
		if err = t.sums.Check(&m.source, m.from, data); err != nil {
			data = nil
		}
	}
	if m.lane.end(m.bytes, err) {
		t.log.Warn().Err(err).Dur("ms", laneRests).Msg("a copy of the model cannot be read and rests")
	}
	m.memory.leave()
	t.answer(m, data, err)
}

func (t *ioThread) answer(m *read, data []byte, err error) {
	m.data, m.err = data, err
	m.reply.Send(m)
}

// errModelClosed is the end of a read into memory of a model that was closed.
var errModelClosed = errors.New("the model was closed")
