package exec

import (
	"errors"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// uploadStages is how many pieces of weights are uploaded at a time: as many as the program brings at once.
const uploadStages = 8

// card is an opened device with what its models share: one queue, and the memory that weights travel through.
type card struct {
	d       driver.Device
	kernels driver.Kernels
	queue   *queue
	stages  chan *stage // free stages

	computing, copying *clock // of the timestamps of each queue
	calibrates         bool   // Device.Calibrate works
	closed             bool
	models             atomic.Int64 // how many are compiled, or being compiled
}

// newCard makes a card of an opened device, and closes the device if it fails.
func newCard(d driver.Device) (*card, error) {
	q, err := newQueue(d)
	if err != nil {
		q.closeLines()
		return nil, errors.Join(err, d.Close(false))
	}
	f := d.Facts()
	c := &card{d: d, kernels: d.Kernels(), queue: q, stages: make(chan *stage, uploadStages), calibrates: true,
		computing: &clock{tick: f.Tick, bits: f.Stamps}, copying: &clock{tick: f.Tick, bits: f.CopyStamps}}
	for range uploadStages {
		c.stages <- &stage{}
	}
	return c, nil
}

// close closes the card, once. The driver keeps what it compiled, unless the card is lost.
func (c *card) close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	for range uploadStages {
		(<-c.stages).free(c.d)
	}
	c.queue.closeLines()
	return c.d.Close(c.queue.alive(nil) == nil)
}
