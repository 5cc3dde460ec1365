package exec

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

const (
	probeLarge   = 64 << 20 // bytes of a large copy, as of a layer's weights
	probeSmall   = 2 << 20  // bytes of a small copy, as of an expert
	probeHost    = 256 << 20
	probeSlots   = 2 // slots that large copies go to: the smallest ring of slots
	probeBatch   = 8 // small copies that are submitted together, as those of a layer's experts
	probeKernels = 128

	probeShare = 16 // where the CPU emulates the device, copies are smaller by this factor
)

// Rates implements backend.Meter. It takes one to four seconds.
func (v *Device) Rates() (r backend.Rates, err error) {
	p := &prober{v: v, q: v.queue, memory: memory{d: v.d}, large: probeLarge, small: probeSmall, warm: probeWarm}
	if v.facts.Software { // no bus, and no clock that rises under load
		p.large, p.small, p.warm = probeLarge/probeShare, probeSmall/probeShare, 0
	}
	defer p.memory.free()
	defer p.close()
	if err = p.lay(); err != nil {
		return r, err
	}
	return p.measure()
}

// prober measures one device, with the memory and the recordings that it takes.
type prober struct {
	v            *Device
	q            *queue
	memory       memory
	large, small uint64         // sizes of copies
	warm         time.Duration  // see settle
	host         *driver.Buffer // page-locked
	slots        []*driver.Buffer
	never        *driver.Buffer // see kernel.Read
	all          []driver.Recording
}

func (p *prober) close() {
	_ = p.q.idle() // an error comes from what follows, too
	p.q.close(p.all...)
}

// lay allocates what is measured with: memory of the host, more than the processor's caches hold, which the device
// writes once, as it writes weights that are kept there, and slots on the device.
func (p *prober) lay() (err error) {
	share := probeLarge / p.large
	if p.host, err = p.memory.raw(driver.Staging, probeHost/share, "measuring"); err != nil {
		return err
	}
	for range probeSlots {
		b, err := p.memory.raw(driver.Local, p.large, "measuring")
		if err != nil {
			return err
		}
		p.slots = append(p.slots, b)
	}
	if p.never, err = p.memory.raw(driver.Local, 16, "measuring"); err != nil {
		return err
	}
	return p.q.once(func(r driver.Recording) error {
		for at := uint64(0); at < p.host.Size; at += p.large {
			r.Copy(p.host, at, p.slots[0], 0, p.large)
		}
		r.BarrierAll()
		return nil
	})
}

// measure measures the bus first, for longest: after that, the device runs at full clock.
func (p *prober) measure() (r backend.Rates, err error) {
	took, err := p.ring()
	if err != nil {
		return r, err
	}
	r.Bus = float64(p.large) / took.Seconds()
	p.warm = 0
	if took, err = p.local(); err != nil {
		return r, err
	}
	r.Memory = probeSlots * float64(p.large) / took.Seconds()
	one, err := p.experts(1)
	if err != nil {
		return r, err
	}
	some, err := p.experts(probeBatch)
	if err != nil {
		return r, err
	}
	bytes := float64(p.small) / r.Bus
	r.Copy = beside((some.Seconds()-one.Seconds())/(probeBatch-1), bytes)
	r.Turn = beside(one.Seconds(), bytes+r.Copy)
	r.Launch, err = p.launch()
	return r, err
}

// beside subtracts the known part of a duration; the rest is positive.
func beside(seconds, known float64) float64 { return max(seconds-known, 1e-9) }

// ring is how long a copy takes among copies that go round a ring of slots, as dense groups of weights do: on the queue
// of copies, with the next one submitted while one is under way, each behind the last reader of its slot, whose end the
// host has seen.
func (p *prober) ring() (time.Duration, error) {
	var copies, readers []driver.Recording
	for at := uint64(0); at < p.host.Size; at += p.large {
		r, err := p.copies(func(r driver.Recording) { r.Copy(p.slots[len(copies)%probeSlots], 0, p.host, at, p.large) })
		if err != nil {
			return 0, err
		}
		copies = append(copies, r)
	}
	for _, slot := range p.slots {
		r, err := p.reads(slot, p.large)
		if err != nil {
			return 0, err
		}
		readers = append(readers, r)
	}
	var copied, read [probeSlots]uint64 // timeline values of the last copy to each slot, and of its last reader
	next := func(i int) (err error) {
		s := i % probeSlots
		if copied[s], err = p.q.copy(copies[i%len(copies)], read[s], copied[s]); err == nil {
			read[s], err = p.q.submit(copied[s], readers[s])
		}
		return err
	}
	i := 0
	for ; i < probeSlots; i++ {
		if err := next(i); err != nil {
			return 0, err
		}
	}
	last := time.Now()
	return settle(p.warm, func() (time.Duration, error) {
		err := p.q.wait(read[i%probeSlots])
		ended := time.Now()
		if err == nil {
			err = next(i)
		}
		took := ended.Sub(last)
		last, i = ended, i+1
		return took, err
	})
}

// local is how long a kernel takes to read all slots.
func (p *prober) local() (time.Duration, error) {
	r, err := p.computes(func(r driver.Recording) (err error) {
		for _, slot := range p.slots {
			err = errors.Join(err, p.read(r, slot, p.large/16))
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return p.pairs(r)
}

// pairs is how long a recording takes when it is submitted again and again, so that the next one waits at the queue
// while one runs.
func (p *prober) pairs(r driver.Recording) (time.Duration, error) {
	return settle(p.warm, func() (time.Duration, error) {
		const submits = 4
		var ends [submits]uint64
		for i := range ends {
			var err error
			if ends[i], err = p.q.submit(0, r); err != nil {
				return 0, err
			}
		}
		if err := p.q.wait(ends[0]); err != nil {
			return 0, err
		}
		began := time.Now()
		err := p.q.wait(ends[submits-1])
		return time.Since(began) / (submits - 1), err
	})
}

// experts is the time from when a layer's experts are asked for until the host has seen that they were computed with: n
// copies, each submitted on its own, and one reader of all of them.
func (p *prober) experts(n int) (time.Duration, error) {
	copies := make([]driver.Recording, n)
	for i := range copies {
		var err error
		at := uint64(i) * p.small
		copies[i], err = p.copies(func(r driver.Recording) { r.Copy(p.slots[0], at, p.host, at, p.small) })
		if err != nil {
			return 0, err
		}
	}
	reader, err := p.reads(p.slots[0], p.small)
	if err != nil {
		return 0, err
	}
	read := uint64(0)
	return settle(p.warm, func() (took time.Duration, err error) {
		began, copied := time.Now(), uint64(0)
		for _, c := range copies {
			if copied, err = p.q.copy(c, read, 0); err != nil {
				return 0, err
			}
		}
		if read, err = p.q.submit(copied, reader); err == nil {
			err = p.q.wait(read)
		}
		return time.Since(began), err
	})
}

// launch is how many seconds a kernel takes that does hardly any work and waits for the one before it.
func (p *prober) launch() (seconds float64, err error) {
	var took [2]time.Duration
	for i, n := range []int{1, probeKernels + 1} {
		var r driver.Recording
		r, err = p.computes(func(r driver.Recording) error {
			for range n {
				r.BarrierAll()
				if err := p.read(r, p.slots[0], kernel.ReadQuads); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			took[i], err = p.pairs(r)
		}
		if err != nil {
			return 0, err
		}
	}
	return beside((took[1]-took[0]).Seconds()/probeKernels, 0), nil
}

// copies makes a recording for the queue of copies.
func (p *prober) copies(fill func(driver.Recording)) (driver.Recording, error) {
	return p.keep(p.q.record(driver.Copies, 0, func(r driver.Recording) error {
		fill(r)
		return nil
	}))
}

// computes makes a recording for the queue that computes.
func (p *prober) computes(fill func(driver.Recording) error) (driver.Recording, error) {
	return p.keep(p.q.record(driver.Compute, 0, fill))
}

// reads makes a recording that reads the first bytes of a slot.
func (p *prober) reads(slot *driver.Buffer, bytes uint64) (driver.Recording, error) {
	return p.computes(func(r driver.Recording) error { return p.read(r, slot, bytes/16) })
}

func (p *prober) keep(r driver.Recording, err error) (driver.Recording, error) {
	if err == nil {
		p.all = append(p.all, r)
	}
	return r, err
}

// read has a kernel read a slot as kernels read weights: once.
func (p *prober) read(r driver.Recording, slot *driver.Buffer, quads uint64) error {
	return p.v.kernels.Launch(r, &kernel.Read{X: slot.Address, Never: p.never.Address, Quads: quads})
}

const (
	probeWarm   = time.Second // how long a card that idled, and its bus, need to come to their full clocks
	probeWindow = 60 * time.Millisecond
	probeLeast  = 5               // passes of a window
	probeMost   = 2 * time.Second // beyond probeWarm
	faster      = 0.98            // a window counts as faster below this share of the fastest window's time
)

// settle repeats passes, which return how long they took, for the time warm, and then until they get no faster. It
// returns the median of the fastest window of passes: others may use the machine, too, and rates of a card at half its
// clock would mislead a plan.
func settle(warm time.Duration, pass func() (time.Duration, error)) (time.Duration, error) {
	best, spent, window := time.Duration(math.MaxInt64), time.Duration(0), []time.Duration(nil)
	for {
		during := time.Duration(0)
		for window = window[:0]; len(window) < probeLeast || during < probeWindow; {
			took, err := pass()
			if err != nil {
				return 0, err
			}
			window, during = append(window, took), during+max(took, time.Microsecond)
		}
		slices.Sort(window)
		median := window[len(window)/2]
		spent += during
		improved := float64(median) < faster*float64(best)
		best = min(best, median)
		if spent >= warm && !improved || spent >= warm+probeMost {
			return best, nil
		}
	}
}
