//go:build cgo && linux

package vulkan

import (
	"errors"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// device is a driver.Device: an opened card of Vulkan's with its kernels.
type device struct {
	*vk.Device
	lib     *vk.Library
	kernels *Kernels
	facts   driver.Facts
	cache   string // folder of compiled kernels; empty: none

	batch []*vk.Recording // of the submission at hand
	waits []vk.Point
}

// openDevice opens the device that p picks, with the kernels that were compiled before.
func openDevice(p pick, o *Options) (driver.Device, error) {
	lib, err := vk.OpenWith(o.library())
	if err != nil {
		return nil, err
	}
	d, err := openPhysical(lib, p)
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	cache := o.Cache
	if cache != "" && OpenCache(d, cache) != nil {
		cache = "" // the cache only saves time, so an unreadable folder is no error
	}
	x := newDevice(lib, d, NewKernels(d))
	x.kernels.Halves, x.cache = o.FastPrefill, cache
	if cache != "" {
		x.kernels.choices = choicesPath(cache, &d.Facts)
		x.kernels.loadChoices()
	}
	return x, nil
}

// library is the options of the Vulkan library.
func (o *Options) library() vk.Options { return vk.Options{Trial: o.Trial, Without: o.Without} }

func openPhysical(lib *vk.Library, p pick) (*vk.Device, error) {
	all, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	found, err := p(all)
	if err != nil {
		return nil, err
	}
	return found.Open()
}

// newDevice makes a device of an opened one, its library and its kernels, and closes them with it.
func newDevice(lib *vk.Library, d *vk.Device, k *Kernels) *device {
	f := &d.Facts
	x := &device{Device: d, lib: lib, kernels: k, facts: driver.Facts{API: "Vulkan", Name: f.Name, Driver: f.Driver,
		Software: f.Kind == vk.CPU, Free: free(f), Halves: k.attendSquares, Tick: f.Tick}}
	x.facts.Stamps, x.facts.CopyStamps = d.StampBits()
	return x
}

// free is how many bytes of the device's own memory were free when it was opened, as the driver says: other programs
// have the rest.
func free(f *vk.Facts) (most uint64) {
	for _, h := range f.Heaps {
		if h.Local && h.Budget > h.Used {
			most = max(most, h.Budget-h.Used)
		}
	}
	return most
}

func (d *device) Facts() *driver.Facts { return &d.facts }

func (d *device) Kernels() driver.Kernels { return d.kernels }

// places are package vk's kinds of memory.
var places = [...]vk.Place{driver.Local: vk.Local, driver.Stepwise: vk.Stepwise, driver.Staging: vk.Staging}

func (d *device) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	return buffer(d.Device.Allocate(places[m], size))
}

func (d *device) Import(memory []byte) (*driver.Buffer, error) {
	return buffer(d.Device.Import(memory))
}

func buffer(b *vk.Buffer, err error) (*driver.Buffer, error) {
	if err != nil {
		return nil, err
	}
	return &driver.Buffer{Address: b.Address, Size: b.Size, Bytes: b.Bytes, Own: b}, nil
}

// of is the vk.Buffer of a buffer.
func of(b *driver.Buffer) *vk.Buffer { return b.Own.(*vk.Buffer) }

func (d *device) Free(all ...*driver.Buffer) {
	for _, b := range all {
		if b != nil {
			d.Device.Free(of(b))
			b.Bytes = nil
		}
	}
}

func (d *device) Record(q driver.Queue, stamps int) (driver.Recording, error) {
	begin := d.Device.Record
	if q == driver.Copies {
		begin = d.RecordCopies
	}
	r, err := begin(stamps)
	if err != nil {
		return nil, err
	}
	return &recording{r}, nil
}

func (d *device) Submit(all []driver.Recording, waits []driver.Point, signal driver.Point) error {
	d.batch, d.waits = d.batch[:0], d.waits[:0]
	for _, r := range all {
		d.batch = append(d.batch, r.(*recording).Recording)
	}
	for _, p := range waits {
		d.waits = append(d.waits, point(p))
	}
	return d.Device.Submit(d.batch, d.waits, point(signal))
}

func point(p driver.Point) vk.Point {
	return vk.Point{Timeline: p.Timeline.(*vk.Timeline), Value: p.Value}
}

func (d *device) Timeline() (driver.Timeline, error) {
	line, err := d.NewTimeline()
	if err != nil {
		return nil, err
	}
	return line, nil
}

// Close closes the device and its library; with keep, the compiled kernels are saved for the next time.
func (d *device) Close(keep bool) error {
	if keep && d.cache != "" {
		_ = SaveCache(d.Device, d.cache) // as OpenCache: an error costs only time
	}
	d.kernels.Close()
	return errors.Join(d.Device.Close(), d.lib.Close())
}

// recording is a driver.Recording.
type recording struct{ *vk.Recording }

func (r *recording) Copy(to *driver.Buffer, at uint64, from *driver.Buffer, offset, n uint64) {
	r.Recording.Copy(of(to), at, of(from), offset, n)
}

func (r *recording) Fill(to *driver.Buffer, word uint32) { r.Recording.Fill(of(to), word) }

func (r *recording) Stamp() { r.Recording.Stamp() }
