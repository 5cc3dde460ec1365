package exec

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
)

const (
	ceilingPasses = 5
	ceilingWarm   = 30 * time.Millisecond // passes before the measured ones: a card that idled has a fifth of its clock
	ceilingLeast  = time.Millisecond      // shortest pass that multiplies

	readMost, readLeast = 1 << 30, 64 << 20 // bytes of a pass: more than caches hold
)

// Ceilings implements backend.Meter: rates of reading, in bytes, and of multiplying, in operations, a second. It takes
// tenths of a second.
func (v *Device) Ceilings(halves bool) (read, multiply []float64, err error) {
	if v.computing.bits == 0 {
		return nil, nil, nil
	}
	if read, err = v.reads(); err != nil {
		return nil, nil, err
	}
	multiply, err = v.multiplies(halves)
	return read, multiply, err
}

// reads measures the rate of reading, with as much memory as is free, from readLeast to readMost.
func (v *Device) reads() ([]float64, error) {
	size, b := uint64(readMost), memory{d: v.d}
	defer b.free()
	if v.facts.Software {
		size = readLeast
	}
	x, err := b.raw(driver.Local, size, "measuring")
	for ; err != nil && size > readLeast; size /= 2 {
		x, err = b.raw(driver.Local, size/2, "measuring")
	}
	if err != nil {
		return nil, err
	}
	never, err := b.raw(driver.Local, 16, "measuring")
	if err != nil {
		return nil, err
	}
	return v.passes(float64(x.Size), &kernel.Read{X: x.Address, Never: never.Address, Quads: x.Size / 16})
}

// multiplies measures the rate of operations, in passes that are long enough.
func (v *Device) multiplies(halves bool) ([]float64, error) {
	b := memory{d: v.d}
	defer b.free()
	y, err := b.raw(driver.Local, kernel.PeakBytes, "measuring")
	if err != nil {
		return nil, err
	}
	for rounds := uint32(16); ; rounds *= 4 {
		peak := &kernel.Peak{Y: y.Address, Rounds: rounds, Halves: halves}
		took, err := v.pass(v.launch(peak))
		if err != nil {
			return nil, err
		}
		if took >= ceilingLeast || rounds >= 1<<24 {
			return v.passes(v.kernels.PeakOps(halves)*float64(rounds), peak)
		}
	}
}

// passes are the rates, a second, of passes that each do an amount of work.
func (v *Device) passes(amount float64, k kernel.Launch) (rates []float64, err error) {
	for began := time.Now(); time.Since(began) < ceilingWarm && err == nil; {
		_, err = v.pass(v.launch(k))
	}
	for range ceilingPasses {
		took, failed := v.pass(v.launch(k))
		if err == nil {
			err = failed
		}
		rates = append(rates, amount/max(took, 1).Seconds())
	}
	return slices.Clip(rates), err
}

// launch is a function that records a kernel.
func (c *card) launch(k kernel.Launch) func(driver.Recording) error {
	return func(r driver.Recording) error { return c.kernels.Launch(r, k) }
}

// pass is how long the commands that record adds take, by the device's own clock.
func (c *card) pass(record func(driver.Recording) error) (time.Duration, error) {
	q := c.queue
	r, err := q.record(driver.Compute, 2, func(r driver.Recording) error {
		r.BarrierAll()
		r.Stamp()
		err := record(r)
		r.BarrierAll()
		r.Stamp()
		return err
	})
	if err != nil {
		return 0, err
	}
	defer q.close(r)
	value, err := q.submit(0, r)
	if err == nil {
		err = q.wait(value)
	}
	if err != nil {
		return 0, err
	}
	at, err := r.Ticks(nil)
	if err != nil {
		return 0, err
	}
	return c.computing.since(at[0], at[1]), nil
}

// bench is a driver.Bench.
type bench struct {
	card   *card
	memory memory
}

// Take implements driver.Bench.
func (b *bench) Take(m driver.Memory, size uint64) (*driver.Buffer, error) {
	b.memory.d = b.card.d
	return b.memory.raw(m, size, "measuring attention")
}

// Free implements driver.Bench.
func (b *bench) Free() {
	if b.memory.d != nil {
		b.memory.free()
	}
}

// Once implements driver.Bench.
func (b *bench) Once(record func(driver.Recording) error) error { return b.card.queue.once(record) }

// Pass implements driver.Bench.
func (b *bench) Pass(record func(driver.Recording) error) (time.Duration, bool, error) {
	if b.card.computing.bits == 0 {
		return 0, false, nil
	}
	took, err := b.card.pass(record)
	return took, true, err
}
