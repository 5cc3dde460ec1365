//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/gpu/driver"
)

// device is a driver.Device: an opened card with its streams and kernels.
type device struct {
	c       *cu.Device
	kernels *Kernels
	facts   driver.Facts
	words   words

	stepwise stepwise
	streams  [2]*cu.Stream // by driver.Queue
	clock    *cu.Stream    // a stream that only Calibrate uses
	rest     driver.Rest
	live     atomic.Int64 // buffers, recordings and timelines that were not closed
}

// playing is the name of the card that package fake emulates on the CPU.
const playing = "processor that plays a card"

// driverOf is the version of CUDA that the driver brings.
func driverOf(c *cu.Device) string {
	return fmt.Sprintf("CUDA %d.%d", c.Version/1000, c.Version%1000/10)
}

func newDevice(c *cu.Device, o *Options) (d *device, err error) {
	d = &device{c: c, facts: driver.Facts{API: "CUDA", Name: c.Facts.Name, Driver: driverOf(c),
		Software: c.Facts.Name == playing, Tick: 1, Stamps: 64, CopyStamps: 64, Halves: true}}
	d.words.c = c
	if d.facts.Free, _, err = c.Memory(); err != nil {
		return nil, err
	}
	for _, s := range []**cu.Stream{&d.streams[driver.Compute], &d.streams[driver.Copies], &d.clock} {
		if *s, err = c.NewStream(); err != nil {
			return nil, errors.Join(err, d.closeStreams())
		}
	}
	d.kernels = newKernels(c, o.Cache)
	return d, nil
}

func (d *device) closeStreams() (err error) {
	for _, s := range []*cu.Stream{d.streams[driver.Compute], d.streams[driver.Copies], d.clock} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

func (d *device) Facts() *driver.Facts { return &d.facts }

func (d *device) Kernels() driver.Kernels { return d.kernels }

// memory is the Own of a buffer: memory of the card, of the host, or of both (stepwise.go).
type memory struct {
	host     []byte // page-locked, or memory of the program (imported)
	imported bool
	local    uint64 // address of memory of the card; 0: none
}

// grain is what sizes are multiples of, in bytes: kernels read 16 bytes at a time, and more where that lies in the
// buffer for sure.
const grain = 256

func (d *device) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	whole := max(grain, (size+grain-1)/grain*grain)
	if m == driver.Local {
		address, err := d.c.Allocate(whole)
		if err != nil {
			return nil, d.scarce(whole, err)
		}
		d.live.Add(1)
		return &driver.Buffer{Address: address, Size: size, Own: &memory{local: address}}, nil
	}
	host, err := d.c.AllocateHost(whole)
	if err != nil {
		return nil, d.scarce(whole, err)
	}
	b := &driver.Buffer{Address: cu.AddressOf(host), Size: size, Bytes: host[:size:size]}
	own := &memory{host: host}
	if b.Own = own; m == driver.Stepwise {
		if own.local, err = d.c.Allocate(whole); err != nil {
			return nil, errors.Join(d.scarce(whole, err), d.c.FreeHost(host))
		}
		b.Address = own.local
		d.stepwise.add(own)
	}
	d.live.Add(1)
	return b, nil
}

// scarce adds how much memory is free to an error of too little memory.
func (d *device) scarce(size uint64, err error) error {
	if !errors.Is(err, driver.ErrScarce) {
		return err
	}
	free, total, _ := d.c.Memory()
	return fmt.Errorf("%d MiB: %w: of %d MiB there %d are free", size>>20, err, total>>20, free>>20)
}

func (d *device) Import(bytes []byte) (*driver.Buffer, error) {
	if len(bytes) == 0 {
		return nil, errors.New("there is nothing to import")
	}
	if err := registered.add(d.c, bytes); err != nil {
		return nil, err
	}
	d.live.Add(1)
	return &driver.Buffer{Address: cu.AddressOf(bytes), Size: uint64(len(bytes)), Bytes: bytes,
		Own: &memory{host: bytes, imported: true}}, nil
}

// Reach implements driver.Reacher.
func (d *device) Reach(other driver.Device, b *driver.Buffer) (*driver.Buffer, error) {
	o, ok := other.(*device)
	if !ok {
		return nil, fmt.Errorf("%s is no CUDA device: %w", other.Facts().Name, errors.ErrUnsupported)
	}
	if err := d.c.Reach(o.c); err != nil {
		return nil, fmt.Errorf("%w: have the cards compute layers (--device cuda:0,1)", err)
	}
	d.live.Add(1)
	return &driver.Buffer{Address: b.Address, Size: b.Size, Own: &memory{}}, nil
}

func (d *device) Free(all ...*driver.Buffer) {
	for _, b := range all {
		if b == nil {
			continue
		}
		m := b.Own.(*memory)
		b.Bytes = nil
		d.live.Add(-1)
		d.stepwise.remove(m)
		d.rest.Release(func() { // these fail only if the card is lost, with all its memory
			if m.imported {
				_ = registered.remove(d.c, m.host)
			} else if m.host != nil {
				_ = d.c.FreeHost(m.host)
			}
			if m.local != 0 {
				_ = d.c.Free(m.local)
			}
		})
	}
}

func (d *device) Submit(all []driver.Recording, waits []driver.Point, signal driver.Point) error {
	stream := d.streams[all[0].(*recording).queue]
	return d.c.Within(func() error {
		for _, p := range waits {
			if err := d.waitFor(stream, p); err != nil {
				return err
			}
		}
		for _, r := range all {
			if err := r.(*recording).run(stream); err != nil {
				return err
			}
		}
		return d.raise(stream, signal)
	})
}

// waitFor makes a stream wait for a timeline, by a kernel if the driver cannot.
func (d *device) waitFor(s *cu.Stream, p driver.Point) error {
	word := p.Timeline.(*timeline).word
	if d.c.Facts.Words {
		return s.WaitFor(word, p.Value)
	}
	return d.word(s, "await", word, p.Value)
}

func (d *device) raise(s *cu.Stream, p driver.Point) error {
	word := p.Timeline.(*timeline).word
	if d.c.Facts.Words {
		return s.Write(word, p.Value)
	}
	return d.word(s, "raise", word, p.Value)
}

func (d *device) word(s *cu.Stream, kernel string, word *uint64, value uint64) error {
	l, err := d.kernels.prepare("queue", kernel, one, 1, 0, bytesOf(&wordArgs{addressOf(word), value}))
	if err != nil {
		return err
	}
	return s.Launch(&l)
}

// fault returns the error of a card that is lost; nil: it works.
func (d *device) fault() error {
	for _, s := range d.streams {
		if _, err := s.Idle(); err != nil {
			return err
		}
	}
	return nil
}

// Calibrate implements driver.Device.
func (d *device) Calibrate() (tick uint64, from, to time.Time, ok bool) {
	words, err := d.words.take(1)
	if err != nil {
		return 0, from, to, false
	}
	defer d.words.give(words)
	atomic.StoreUint64(&words[0], 0)
	l, err := d.kernels.prepare("queue", "stamp", one, 1, 0, bytesOf(&stampArgs{addressOf(&words[0])}))
	if err != nil {
		return 0, from, to, false
	}
	from = time.Now()
	if d.c.Within(func() error { return d.clock.Launch(&l) }) != nil || d.clock.Rest() != nil {
		return 0, from, to, false
	}
	return atomic.LoadUint64(&words[0]), from, time.Now(), true
}

// Submissions are meant to take half a second at most. A card that the CPU emulates may wait long for its cores.
const (
	usualPatience = 10 * time.Second
	longPatience  = 2 * time.Minute
)

func (d *device) Patience() time.Duration {
	if d.facts.Software {
		return longPatience
	}
	return usualPatience
}
