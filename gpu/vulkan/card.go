//go:build cgo && linux

package vulkan

import (
	"errors"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// card is an opened device with what its models share: kernels, one queue, and the memory that weights travel through.
type card struct {
	lib     *vk.Library
	d       *vk.Device
	kernels *Kernels
	queue   *queue
	stages  chan *stage // those that no upload uses

	computing, copying *clock // of the queues
	calibrates         bool   // the device tells its time
	cache              string // folder of compiled kernels; empty: none
	closed             bool
}

func openCard(p pick, o Options) (*card, error) {
	lib, err := vk.OpenWith(o.library())
	if err != nil {
		return nil, err
	}
	d, err := openPicked(lib, p)
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	cache := o.Cache
	if cache != "" && OpenCache(d, cache) != nil {
		cache = "" // it only saves time: a folder that cannot be read is none
	}
	c, err := newCard(lib, d) // what it asks the device it asks by kernels
	if err != nil {
		return nil, errors.Join(err, d.Close(), lib.Close())
	}
	c.kernels.Halves, c.cache = o.FastPrefill, cache
	c.loadChoices()
	return c, nil
}

// library is how Vulkan is opened.
func (o *Options) library() vk.Options { return vk.Options{Trial: o.Trial, Without: o.Without} }

func openPicked(lib *vk.Library, p pick) (*vk.Device, error) {
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

// newCard takes over an opened device, and its library.
func newCard(lib *vk.Library, d *vk.Device) (*card, error) {
	q, err := newQueue(d)
	if err != nil {
		q.closeLines()
		return nil, err
	}
	c := &card{lib: lib, d: d, kernels: NewKernels(d), queue: q, stages: make(chan *stage, uploadStages)}
	for range uploadStages {
		c.stages <- &stage{}
	}
	c.times()
	return c, nil
}

// close closes it, once.
func (c *card) close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.letGo()
	c.kernels.Close()
	return errors.Join(c.d.Close(), c.lib.Close())
}

// letGo frees what the card has made itself.
func (c *card) letGo() {
	for range uploadStages {
		(<-c.stages).free(c.d)
	}
	c.queue.closeLines()
}
