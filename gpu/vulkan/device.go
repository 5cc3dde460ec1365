//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Device is a backend.Device on a GPU. It opens its card again when that was lost.
type Device struct {
	*card
	options Options
	pick    pick
	facts   vk.Facts // as it was found
	ahead   bool     // kernels are compiled before they are needed: a CPU that computes has no time for it
}

const (
	flight       = 2 // steps in flight: one is computed, the next one waits at the queue
	uploadStages = 4 // pieces of weights under way
)

// pick chooses one of the loader's devices.
type pick func([]*vk.Physical) (*vk.Physical, error)

// newDevice opens what is picked.
func newDevice(p pick, o Options) (backend.Device, error) {
	c, err := openCard(p, o)
	if err != nil {
		return nil, err
	}
	return &Device{card: c, options: o, pick: p, facts: c.d.Facts, ahead: c.d.Facts.Kind != vk.CPU}, nil
}

// Name is the card's.
func (v *Device) Name() string { return "vulkan " + v.facts.Name }

// Traits: steps are computed beside the program, and tokens are drawn here, unless from too many.
func (v *Device) Traits() backend.Traits {
	t := backend.Traits{Flight: flight, Draws: true, Shares: true, Memory: backend.OwnMemory, Free: free(&v.facts),
		Bytes: groupBytes}
	t.Times = v.computing.bits > 0
	if v.facts.Has.Float64 {
		t.Among = MaxTopK
	}
	return t
}

// free is what was free of the device's own memory when it was opened.
func free(f *vk.Facts) (most int64) {
	for _, h := range f.Heaps {
		if h.Local {
			most = max(most, int64(h.Budget)-int64(h.Used))
		}
	}
	return most
}

// Compile plans the program's segments, takes the memory and waits for weights.
func (v *Device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, v.Traits()); err != nil {
		return nil, err
	}
	if c.Inputs != nil {
		return nil, fmt.Errorf("a Vulkan device does not add up the inputs of products: use --device cpu: %w",
			errors.ErrUnsupported)
	}
	if v.queue.lost.Load() {
		if err := v.reopen(); err != nil {
			return nil, err
		}
	}
	m, err := compile(v, p, c)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// reopen closes a card that was lost, whose models are closed, and opens it again. Only Compile does: nothing else of
// the device is used then.
func (v *Device) reopen() error {
	_ = v.card.close() // what a lost card says no more
	c, err := openCard(v.pick, v.options)
	if err != nil {
		return fmt.Errorf("%s was lost and cannot be opened again: %w: sluice doctor says what there is",
			v.facts.Name, err)
	}
	v.card = c
	return nil
}

// Close keeps what was compiled for the next time, and closes the device.
func (v *Device) Close() error {
	if v.cache != "" && !v.queue.lost.Load() {
		_ = SaveCache(v.d, v.cache) // as OpenCache: nobody loses more than time
	}
	return v.card.close()
}

// queue is the device's: whoever records or submits holds it. All that is submitted to compute raises one timeline, in
// order, and copies that run beside it raise another.
type queue struct {
	mu     sync.Mutex
	d      *vk.Device
	lost   atomic.Bool // the card is: nothing that it was given will end
	line   *vk.Timeline
	last   uint64 // value of what was submitted last
	copies *vk.Timeline
	copied uint64
}

func newQueue(d *vk.Device) (q *queue, err error) {
	q = &queue{d: d}
	if q.line, err = d.NewTimeline(); err == nil {
		q.copies, err = d.NewTimeline()
	}
	return q, err
}

func (q *queue) closeLines() {
	for _, line := range []*vk.Timeline{q.line, q.copies} {
		if line != nil {
			line.Close()
		}
	}
}

// record makes a recording that computes, with so many timestamps.
func (q *queue) record(stamps int, fill func(*vk.Recording) error) (*vk.Recording, error) {
	return q.fill(q.d.Record, stamps, fill)
}

// fill makes a recording of a kind.
func (q *queue) fill(begin func(stamps int) (*vk.Recording, error), stamps int, fill func(*vk.Recording) error) (
	*vk.Recording, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, err := begin(stamps)
	if err != nil {
		return nil, err
	}
	if err = fill(r); err == nil {
		err = r.End()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// submit queues recordings that compute, to begin when copies have come to a value, and returns the value that the
// timeline has at their end.
func (q *queue) submit(copied uint64, all ...*vk.Recording) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.alive(nil); err != nil {
		return 0, err
	}
	var waits []vk.Point
	if copied > 0 {
		waits = append(waits, vk.Point{Timeline: q.copies, Value: copied})
	}
	if err := q.alive(q.d.Submit(all, waits, vk.Point{Timeline: q.line, Value: q.last + 1})); err != nil {
		return 0, err
	}
	q.last++
	return q.last, nil
}

// copy queues copies, to begin when what computes and copies before have come to these values. All that they wait for
// was submitted before: so nothing waits for ever.
func (q *queue) copy(r *vk.Recording, computed, copied uint64) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.alive(nil); err != nil {
		return 0, err
	}
	var waits []vk.Point
	if computed > 0 {
		waits = append(waits, vk.Point{Timeline: q.line, Value: computed})
	}
	if copied > 0 {
		waits = append(waits, vk.Point{Timeline: q.copies, Value: copied})
	}
	all := []*vk.Recording{r}
	if err := q.alive(q.d.Submit(all, waits, vk.Point{Timeline: q.copies, Value: q.copied + 1})); err != nil {
		return 0, err
	}
	q.copied++
	return q.copied, nil
}

// once records, runs and waits.
func (q *queue) once(fill func(*vk.Recording) error) error {
	_, err := q.after(0, fill)
	return err
}

// after is once, behind copies: it returns the value that the timeline had at the end.
func (q *queue) after(copied uint64, fill func(*vk.Recording) error) (uint64, error) {
	r, err := q.record(0, fill)
	if err != nil {
		return 0, err
	}
	value, err := q.submit(copied, r)
	if err == nil {
		err = q.wait(value)
	}
	q.close(r)
	return value, err
}

func (q *queue) close(all ...*vk.Recording) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range all {
		r.Close()
	}
}

// idle waits for all that was submitted.
func (q *queue) idle() error {
	q.mu.Lock()
	last, copied := q.last, q.copied
	q.mu.Unlock()
	return errors.Join(q.wait(last), q.reach(q.copies, copied))
}

// wait blocks until what computes has come to a value.
func (q *queue) wait(value uint64) error { return q.reach(q.line, value) }

// reach blocks until a timeline has a value. A device that is busy for longer is waited for again; one that is lost
// says so.
func (q *queue) reach(line *vk.Timeline, value uint64) error {
	for {
		err := q.alive(line.Wait(value, patience))
		if !errors.Is(err, vk.Timeout) {
			return err
		}
	}
}

// alive is what the card answered, once it is known whether it is still there.
func (q *queue) alive(err error) error {
	if errors.Is(err, vk.Lost) {
		q.lost.Store(true)
	}
	if q.lost.Load() {
		return fmt.Errorf("%w: %w", backend.ErrLost, vk.Lost)
	}
	return err
}

// buffers are a model's, freed together.
type buffers struct {
	d   *vk.Device
	all []*vk.Buffer
}

// take allocates; what the host reaches is zeroed.
func (b *buffers) take(p vk.Place, size uint64, what string) (*vk.Buffer, error) {
	x, err := b.raw(p, size, what)
	if err == nil {
		clear(x.Bytes)
	}
	return x, err
}

// raw allocates what is written before it is read.
func (b *buffers) raw(p vk.Place, size uint64, what string) (*vk.Buffer, error) {
	x, err := b.d.Allocate(p, max(size, 16))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	b.all = append(b.all, x)
	return x, nil
}

func (b *buffers) free() {
	b.d.Free(b.all...)
	b.all = nil
}
