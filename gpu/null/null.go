package null

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// Options choose what the emulated card can do, and how it behaves.
type Options struct {
	Fused    bool // heads with f16 caches are rotated and stored by attention
	Integers bool // block-quantised types multiply quantised activations
	Gathers  int  // what Gathers returns: kernel.MaxColumns, which is also 0, or kernel.GroupedColumns
	Halves   bool // prompts are multiplied in half precision
	Scarce   bool // Fits says no to products that normalise their input or sum experts

	Order  uint64 // seeds the order of kernels between two barriers; 0: as they were recorded
	Drop   int    // number, from 1 on, of a barrier that is left out; 0: none
	Stamps uint32 // bits of timestamps; 0: there are none
	Free   uint64 // bytes of memory; 0: a GiB
}

// Device is an emulated card.
type Device struct {
	options Options
	facts   driver.Facts
	memory  memory
	queues  [2]queue
	running sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed at any change of a timeline, a queue or lost
	lost     error
	closed   bool
	barriers int // recorded barriers between kernels of one recording
	ticks    uint64
	hazards  hazards
	others   map[*driver.Buffer]*Device // whose memory is reached
}

// Open opens a card.
func Open(o Options) *Device {
	if o.Free == 0 {
		o.Free = 1 << 30
	}
	d := &Device{options: o, changed: make(chan struct{}), memory: memory{free: o.Free},
		others: map[*driver.Buffer]*Device{}}
	d.facts = driver.Facts{API: "null", Name: "card", Software: true, Free: o.Free, Tick: 1,
		Stamps: o.Stamps, CopyStamps: o.Stamps}
	for q := range d.queues {
		d.running.Go(func() { d.serve(driver.Queue(q)) })
	}
	return d
}

// Facts implements driver.Device.
func (d *Device) Facts() *driver.Facts { return &d.facts }

// Kernels implements driver.Device.
func (d *Device) Kernels() driver.Kernels { return table{d} }

// Barriers is how many barriers between kernels of one recording were recorded. Options.Drop numbers them.
func (d *Device) Barriers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.barriers
}

// Lose loses the device, for a reason.
func (d *Device) Lose(reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose(reason)
}

func (d *Device) lose(reason error) {
	if d.lost == nil {
		d.lost = fmt.Errorf("%w: %w", driver.ErrLost, reason)
		d.change()
	}
}

// change wakes all who wait. The device is locked.
func (d *Device) change() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Allocate implements driver.Device.
func (d *Device) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	return d.memory.allocate(m, size)
}

// Import implements driver.Device.
func (d *Device) Import(memory []byte) (*driver.Buffer, error) {
	return d.memory.add(backing{bytes: memory}), nil
}

// Reach implements driver.Reacher: cards of this package reach each other.
func (d *Device) Reach(other driver.Device, b *driver.Buffer) (*driver.Buffer, error) {
	if _, ok := other.(*Device); !ok {
		return nil, fmt.Errorf("%s is no card of this kind: %w", other.Facts().Name, errors.ErrUnsupported)
	}
	x := d.memory.add(backing{bytes: b.Own.(backing).bytes})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others[x] = other.(*Device)
	return x, nil
}

// gone says whether nobody waits for the device's work any more, or another one that it reaches will do no more.
func (d *Device) gone() bool {
	d.mu.Lock()
	gone, others := d.ended(), slices.Collect(maps.Values(d.others))
	d.mu.Unlock()
	for _, other := range others {
		other.mu.Lock()
		gone = gone || other.ended()
		other.mu.Unlock()
	}
	return gone
}

func (d *Device) ended() bool { return d.closed || d.lost != nil }

// Free implements driver.Device.
func (d *Device) Free(all ...*driver.Buffer) {
	for _, b := range all {
		if b != nil {
			d.memory.remove(b)
			d.mu.Lock()
			delete(d.others, b)
			d.mu.Unlock()
		}
	}
}

// Calibrate implements driver.Device: ticks count commands, which tell no time.
func (d *Device) Calibrate() (tick uint64, from, to time.Time, ok bool) { return 0, from, to, false }

// Patience implements driver.Device.
func (d *Device) Patience() time.Duration { return 2 * time.Minute }

// Hold implements driver.Device: Go's garbage collector keeps what a queue at work still reaches.
func (d *Device) Hold() {}

// Close implements driver.Device. Submissions that wait for a timeline which nothing will raise are dropped.
func (d *Device) Close(bool) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return errors.New("null: the device was closed before")
	}
	d.closed = true
	d.change()
	d.mu.Unlock()
	d.running.Wait()
	return nil
}
