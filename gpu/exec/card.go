package exec

import (
	"errors"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// uploadStages is the pieces of weights under way: as many as the program brings at once.
const uploadStages = 8

// card is an opened device with what its models share: one queue, and the memory that weights travel through.
type card struct {
	d       driver.Device
	kernels driver.Kernels
	queue   *queue
	stages  chan *stage // those that no upload uses

	computing, copying *clock // of the queues
	calibrates         bool   // the device tells its time
	closed             bool
	models             atomic.Int64 // that are compiled, or are being
}

// newCard takes over an opened device.
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

// close closes it, once. What was compiled is kept, if the card is not lost.
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
