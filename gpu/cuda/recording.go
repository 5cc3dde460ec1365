//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/gpu/driver"
)

// recording is a driver.Recording: a list of commands that a stream runs one after the other, or a CUDA graph of them.
// A graph is run sooner than a list, and independent kernels run at once, but to make one takes milliseconds in which
// the card may have nothing to do. So it is made when a recording is run for the second time: that of a prompt may
// never be.
type recording struct {
	d       *device
	queue   driver.Queue
	list    []command
	kernels int      // in the list
	stamps  []uint64 // timestamps, in nanoseconds of the card's clock
	marks   int
	err     error // the errors of commands, which End returns
	ran     int   // how often
	waits   bool  // for other cards
	exec    *cu.Exec

	reads []*memory // stepwise memory that its kernels read
	first []cu.Launch
}

// command is one command: a kernel, a copy, the setting of words, or a barrier.
type command struct {
	kind        kind
	launch      cu.Launch
	to, from, n uint64
	word        uint32
}

type kind uint8

const (
	isKernel kind = iota
	isCopy
	isFill
	isStamp
	isBarrier
)

// stampArgs and wordArgs are the arguments of queue.cu's kernels.
type (
	stampArgs struct{ to uint64 }
	wordArgs  struct{ word, value uint64 }
)

// one is a grid of one block.
var one = [3]uint32{1, 1, 1}

func (d *device) Record(q driver.Queue, stamps int) (driver.Recording, error) {
	r := &recording{d: d, queue: q}
	if stamps > 0 {
		var err error
		if r.stamps, err = d.words.take(stamps); err != nil {
			return nil, err
		}
	}
	d.live.Add(1)
	return r, nil
}

func (r *recording) Barrier() { r.list = append(r.list, command{kind: isBarrier}) }

// BarrierAll is Barrier, which copies wait for, too.
func (r *recording) BarrierAll() { r.Barrier() }

// BarrierToHost does nothing: a stream writes a timeline's word when all that was written before is visible.
func (r *recording) BarrierToHost() {}

func (r *recording) Copy(to *driver.Buffer, at uint64, from *driver.Buffer, offset, n uint64) {
	source := from.Address
	if m, ok := from.Own.(*memory); ok && m.host != nil && m.local != 0 { // stepwise: the host's copy
		source += cu.AddressOf(m.host) - m.local
	}
	if n > 0 {
		r.list = append(r.list, command{kind: isCopy, to: to.Address + at, from: source + offset, n: n})
	}
}

func (r *recording) Fill(to *driver.Buffer, word uint32) {
	r.list = append(r.list, command{kind: isFill, to: to.Address, n: to.Size / 4, word: word})
}

func (r *recording) Stamp() {
	if r.marks == len(r.stamps) {
		r.err = errors.Join(r.err, fmt.Errorf("there is room for %d timestamps", len(r.stamps)))
		return
	}
	l, err := r.d.kernels.prepare("queue", "stamp", one, 1, 0, bytesOf(&stampArgs{addressOf(&r.stamps[r.marks])}))
	r.err = errors.Join(r.err, err)
	r.list = append(r.list, command{kind: isStamp, launch: l})
	r.marks++
}

// launch adds a kernel, and notes the stepwise memory that it reads.
func (r *recording) launch(l cu.Launch) {
	r.reads = r.d.stepwise.named(r.reads, l.Args)
	r.list = append(r.list, command{kind: isKernel, launch: l})
	r.kernels++
}

// fewest is the number of commands from which on to launch a graph is faster than to launch them one by one.
const fewest = 8

func (r *recording) End() error {
	for _, m := range r.reads {
		l, err := r.d.kernels.fetch(m)
		r.err = errors.Join(r.err, err)
		r.first = append(r.first, l)
	}
	return r.err
}

// mostListed is how many kernels of a stream may surely be launched while none of them ends, and listed how often a
// list is run before a graph of it pays.
const mostListed, listed = 768, 1

// Prepare implements driver.Preparer: what waits for another card must be launched whole, and soon, when that one has
// been launched. So its graph is made before either.
func (r *recording) Prepare() error {
	if !r.waits || r.exec != nil || r.ran < listed && r.kernels <= mostListed {
		return nil
	}
	if err := r.d.c.Within(r.graph); err != nil && (r.kernels > mostListed || !errors.Is(err, driver.ErrScarce)) {
		return err
	}
	return nil
}

// graph makes the graph of the commands. The card's context is current.
func (r *recording) graph() error {
	g, err := r.d.c.NewGraph()
	if err != nil {
		return err
	}
	b := &builder{g: g}
	for i := range r.first {
		err = errors.Join(err, b.add(&command{kind: isKernel, launch: r.first[i]}))
	}
	err = errors.Join(err, b.add(&command{kind: isBarrier}))
	for i := range r.list {
		if err != nil {
			break
		}
		err = b.add(&r.list[i])
	}
	if err == nil {
		r.exec, err = g.Instantiate()
	}
	if err == nil {
		r.first, r.list = nil, nil
	}
	return errors.Join(err, g.Close())
}

// builder makes a graph of commands. Commands between two barriers do not depend on each other: each waits for those
// before the first one.
type builder struct {
	g      *cu.Graph
	before []cu.Node // what the next commands wait for: those before the last barrier
	since  []cu.Node // commands since the last barrier
}

// mostEdges bounds the edges across a barrier: if more than half as many commands stand before it, an empty node joins
// them.
const mostEdges = 16

func (b *builder) add(c *command) (err error) {
	var n cu.Node
	switch c.kind {
	case isBarrier:
		if len(b.since) > 0 {
			b.before, b.since = b.since, nil
		}
		if len(b.before) > mostEdges/2 {
			n, err = b.g.Join(b.before)
			b.before = []cu.Node{n}
		}
		return err
	case isStamp: // a timestamp waits for all before it, and nothing waits for it
		_, err = b.g.Kernel(&c.launch, append(b.before[:len(b.before):len(b.before)], b.since...))
		return err
	case isKernel:
		n, err = b.g.Kernel(&c.launch, b.before)
	case isCopy:
		n, err = b.g.Copy(c.to, c.from, c.n, b.before)
	case isFill:
		n, err = b.g.Fill(c.to, c.word, c.n, b.before)
	}
	b.since = append(b.since, n)
	return err
}

// run submits the recording to a stream.
func (r *recording) run(s *cu.Stream) error {
	if r.ran > 0 && !r.waits && r.exec == nil && r.queue == driver.Compute && len(r.list) >= fewest {
		if err := r.graph(); err != nil && !errors.Is(err, driver.ErrScarce) { // the list does without memory
			return err
		}
	}
	r.ran++
	if r.exec != nil {
		return s.Run(r.exec)
	}
	for i := range r.first {
		if err := s.Launch(&r.first[i]); err != nil {
			return err
		}
	}
	for i := range r.list {
		if err := r.list[i].run(s); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) run(s *cu.Stream) error {
	switch c.kind {
	case isCopy:
		return s.Copy(c.to, c.from, c.n)
	case isFill:
		return s.Fill(c.to, c.word, c.n)
	case isBarrier: // nothing to do: a stream's commands wait for one another
		return nil
	}
	return s.Launch(&c.launch)
}

func (r *recording) Marks() int { return r.marks }

func (r *recording) Ticks(to []uint64) ([]uint64, error) {
	for i := range r.marks {
		to = append(to, atomic.LoadUint64(&r.stamps[i]))
	}
	return to, nil
}

func (r *recording) ResetStamps() {}

func (r *recording) Close() {
	r.d.live.Add(-1)
	r.d.rest.Release(func() {
		if r.exec != nil {
			_ = r.d.c.Within(r.exec.Close) // it fails only if the card is lost
		}
		if r.stamps != nil {
			r.d.words.give(r.stamps)
		}
	})
}

// bytesOf is the bytes of a kernel's arguments.
func bytesOf[T any](args *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(args)), unsafe.Sizeof(*args))
}

func addressOf(word *uint64) uint64 { return uint64(uintptr(unsafe.Pointer(word))) }
