package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
)

// storeOp appends K and V of rows to the cache. K of a position lies in as many cache lines as it has features, so a
// short span, one that attention computes in one piece for each head, is left to attention: workers share the heads
// there, and what is stored is in the cache of the one who reads it next.
type storeOp struct {
	cache *cache
	k, v  place
	short int // rows of the longest short span
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

// head appends K and V of one head of a row.
func (o *storeOp) head(ex *execution, worker, r, h int) error {
	c := o.cache
	key, value := ex.at(&o.k, r)[h*c.KDim:][:c.KDim], ex.at(&o.v, r)[h*c.VDim:][:c.VDim]
	if err := ex.storable(key, "K"); err != nil {
		return fmt.Errorf("head %d: %w", h, err)
	}
	if err := ex.storable(value, "V"); err != nil {
		return fmt.Errorf("head %d: %w", h, err)
	}
	isa, w := ex.device.isa, &ex.workers[worker]
	at := ex.pos[r] % backend.BlockSize
	head := int(ex.step.Spans[ex.span[r]].Tables[c.Class].At(ex.pos[r]/backend.BlockSize))*c.KVHeads + h
	switch ex.config.KV {
	case backend.KVF32:
		scatter(c.whole[c.key(head):], key, at)
		copy(c.whole[c.value(head, at):], value)
	case backend.KVF16:
		c.storeHalves(isa, w.halves, head, at, key, value)
	default:
		c.storeBytes(isa, w.bytes, head, at, key, value)
	}
	return nil
}

// scatter makes key a column of K.
func scatter[T float32 | uint16 | int8](block, key []T, at int) {
	for i, x := range key {
		block[i*backend.BlockSize+at] = x
	}
}

// storable checks values on their way into the cache.
func (ex *execution) storable(x []float32, what string) error {
	const half = 65520 // from here on the nearest half is infinite
	largest := ex.device.isa.Largest(x)
	if largest < half || largest <= math.MaxFloat32 && ex.config.KV != backend.KVF16 {
		return nil
	}
	if err := ex.finite(x, what); err != nil {
		return err
	}
	return fmt.Errorf("a value of %s is as large as %v, a half holds at most 65504: keep the cache in f32 or q8",
		what, largest)
}

func (c *cache) storeHalves(isa vec.ISA, buf []uint16, head, at int, key, value []float32) {
	halves := buf[:len(key)]
	isa.Halve(halves, key)
	scatter(c.halves[c.key(head):], halves, at)
	isa.Halve(c.halves[c.value(head, at):][:len(value)], value)
}

func (c *cache) storeBytes(isa vec.ISA, buf []int8, head, at int, key, value []float32) {
	for i := range c.keyScales() {
		from := i * backend.KVScaled
		to := min(from+backend.KVScaled, c.KDim)
		c.scale(head, i)[at] = isa.Bytes(buf[from:to], key[from:to], backend.KVTiny)
	}
	scatter(c.bytes[c.key(head):], buf[:c.KDim], at)
	c.scale(head, c.keyScales())[at] = isa.Bytes(c.bytes[c.value(head, at):][:len(value)], value, backend.KVTiny)
}
