//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Device is a backend.Device on a GPU. Its models share kernels, one queue, and the memory that weights travel through.
type Device struct {
	lib     *vk.Library
	d       *vk.Device
	kernels *Kernels
	queue   *queue
	stages  chan *stage // those that no upload uses
	cache   string      // folder of compiled kernels; empty: none
	ahead   bool        // kernels are compiled before they are needed: a CPU that computes has no time for it
}

const (
	flight       = 2 // steps in flight: one is computed, the next one waits at the queue
	uploadStages = 4 // pieces of weights under way
)

// newDevice takes over an opened device, and its library.
func newDevice(lib *vk.Library, d *vk.Device, o Options) (*Device, error) {
	v := &Device{lib: lib, d: d, kernels: NewKernels(d), stages: make(chan *stage, uploadStages), cache: o.Cache,
		ahead: d.Facts.Kind != vk.CPU}
	v.kernels.Halves = o.FastPrefill
	for range uploadStages {
		v.stages <- &stage{}
	}
	if o.Cache != "" && OpenCache(d, o.Cache) != nil {
		v.cache = "" // it only saves time: a folder that cannot be read is none
	}
	var err error
	if v.queue, err = newQueue(d); err != nil {
		return nil, errors.Join(err, d.Close(), lib.Close())
	}
	return v, nil
}

// Name is the card's.
func (v *Device) Name() string { return "vulkan " + v.d.Facts.Name }

// Traits: steps are computed beside the program, and tokens are drawn here, unless from too many.
func (v *Device) Traits() backend.Traits {
	t := backend.Traits{Flight: flight, Draws: true, Memory: backend.OwnMemory, Free: free(&v.d.Facts)}
	if v.d.Facts.Has.Float64 {
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
		return nil, fmt.Errorf("a Vulkan device does not add up the inputs of products: use --device cpu: %w", errors.ErrUnsupported)
	}
	if c.Slots != nil || c.Tables != nil {
		return nil, fmt.Errorf("on a Vulkan device each group of weights keeps its place: %w", errors.ErrUnsupported)
	}
	m, err := compile(v, p, c)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close keeps what was compiled for the next time, and closes the device.
func (v *Device) Close() error {
	if v.cache != "" {
		_ = SaveCache(v.d, v.cache) // as OpenCache: nobody loses more than time
	}
	for range uploadStages {
		(<-v.stages).free(v.d)
	}
	v.kernels.Close()
	v.queue.line.Close()
	return errors.Join(v.d.Close(), v.lib.Close())
}

// queue is the device's: whoever records or submits holds it. All that is submitted raises one timeline, in order.
type queue struct {
	mu   sync.Mutex
	d    *vk.Device
	line *vk.Timeline
	last uint64 // value of what was submitted last
}

func newQueue(d *vk.Device) (*queue, error) {
	line, err := d.NewTimeline()
	return &queue{d: d, line: line}, err
}

// record makes a recording.
func (q *queue) record(fill func(*vk.Recording) error) (*vk.Recording, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, err := q.d.Record(0)
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

// submit queues a recording, and returns the value that the timeline has at its end.
func (q *queue) submit(r *vk.Recording) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.d.Submit(r, nil, vk.Point{Timeline: q.line, Value: q.last + 1}); err != nil {
		return 0, err
	}
	q.last++
	return q.last, nil
}

// once records, runs and waits.
func (q *queue) once(fill func(*vk.Recording) error) error {
	r, err := q.record(fill)
	if err != nil {
		return err
	}
	value, err := q.submit(r)
	if err == nil {
		err = q.wait(value)
	}
	q.close(r)
	return err
}

func (q *queue) close(all ...*vk.Recording) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range all {
		r.Close()
	}
}

// wait blocks until the timeline has a value. A device that is busy for longer is waited for again; one that is lost
// says so.
func (q *queue) wait(value uint64) error {
	for {
		err := q.line.Wait(value, patience)
		if !errors.Is(err, vk.Timeout) {
			return err
		}
	}
}

// buffers are a model's, freed together.
type buffers struct {
	d   *vk.Device
	all []*vk.Buffer
}

// take allocates; what the host reaches is zeroed.
func (b *buffers) take(p vk.Place, size uint64, what string) (*vk.Buffer, error) {
	x, err := b.d.Allocate(p, max(size, 16))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	clear(x.Bytes)
	b.all = append(b.all, x)
	return x, nil
}

func (b *buffers) free() {
	b.d.Free(b.all...)
	b.all = nil
}
