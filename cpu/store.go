package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// storeOp stores K and V of rows in the cache. K of a position touches as many cache lines as it has features, so short
// spans, those that attention computes in one chunk for each head, are left to attention: there workers share the
// heads, and what is stored is in the cache of the core that reads it next.
type storeOp struct {
	cache *cache
	index int // of the cache, in the program
	k, v  place
	short int // rows of the longest short span
	side  ir.Side
	zeros []float32 // by worker: what is kept of rows that nobody sees
}

func (o *storeOp) row(ex *execution, worker, r int) error {
	if ex.step.Spans[ex.span[r]].Rows <= o.short {
		return nil
	}
	for h := range o.cache.KVHeads {
		if err := o.head(ex, worker, r, h); err != nil {
			return err
		}
	}
	return nil
}

// head stores K and V of one head of a row.
func (o *storeOp) head(ex *execution, worker, r, h int) error {
	c := o.cache
	key, value := ex.at(&o.k, r)[h*c.KDim:][:c.KDim], ex.at(&o.v, r)[h*c.VDim:][:c.VDim]
	if !o.side.Keeps(ex.step.Spans[ex.span[r]].Heard, ex.pos[r]) {
		zeros := o.zeros[worker*max(c.KDim, c.VDim):]
		key, value = zeros[:c.KDim], zeros[:c.VDim]
	}
	if err := ex.storable(key, c.format.K.Open, "K"); err != nil {
		return fmt.Errorf("head %d: %w", h, err)
	}
	if err := ex.storable(value, c.format.V.Open, "V"); err != nil {
		return fmt.Errorf("head %d: %w", h, err)
	}
	if ex.config.Stored != nil {
		ex.config.Stored(o.index, h, key, value)
	}
	at := ex.pos[r] % backend.BlockSize
	head := int(ex.step.Spans[ex.span[r]].Tables[c.Class].At(ex.pos[r]/backend.BlockSize))*c.KVHeads + h
	c.store(ex.device.isa, &ex.workers[worker], head, at, key, value)
	return nil
}

// storable checks that values fit the form of the cache.
func (ex *execution) storable(x []float32, form backend.Form, what string) error {
	const half = 65520 // from here on the nearest half is infinite
	largest := ex.device.isa.Largest(x)
	if largest < half || largest <= math.MaxFloat32 && form != (backend.Half{}) {
		return nil
	}
	if err := ex.finite(x, what); err != nil {
		return err
	}
	return fmt.Errorf("a value of %s is as large as %v, a half holds at most 65504: keep the cache in f32 or q8",
		what, largest)
}
