package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// storeOp appends K and V of rows to the cache. K of a position lies in as many cache lines as it has features, so a
// short span, one that attention computes in one piece for each head, is left to attention: workers share the heads
// there, and what is stored is in the cache of the one who reads it next.
type storeOp struct {
	cache *cache
	k, v  place
	short int // rows of the longest short span
}

func (b *binder) store(n *ir.Node) *storeOp {
	return &storeOp{
		cache: &b.m.caches[n.Attend.KV], k: b.layout.place(n.In[1]), v: b.layout.place(n.In[2]),
		short: rowsTogether(n.Attend.Heads / n.Attend.KVHeads),
	}
}

func (o *storeOp) row(m *model, worker, r int) error {
	if m.step.Spans[m.span[r]].Rows <= o.short {
		return nil
	}
	for h := range o.cache.KVHeads {
		if err := o.head(m, worker, r, h); err != nil {
			return err
		}
	}
	return nil
}

// head appends K and V of one head of a row.
func (o *storeOp) head(m *model, worker, r, h int) error {
	c := o.cache
	key, value := m.at(&o.k, r)[h*c.KDim:][:c.KDim], m.at(&o.v, r)[h*c.VDim:][:c.VDim]
	if err := m.storable(key, "K"); err != nil {
		return fmt.Errorf("head %d: %w", h, err)
	}
	if err := m.storable(value, "V"); err != nil {
		return fmt.Errorf("head %d: %w", h, err)
	}
	isa, w := m.device.isa, &m.workers[worker]
	at := m.pos[r] % backend.BlockSize
	head := int(m.step.Spans[m.span[r]].Tables[c.Class].At(m.pos[r]/backend.BlockSize))*c.KVHeads + h
	switch m.config.KV {
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
func (m *model) storable(x []float32, what string) error {
	const half = 65520 // from here on the nearest half is infinite
	largest := m.device.isa.Largest(x)
	if largest < half || largest <= math.MaxFloat32 && m.config.KV != backend.KVF16 {
		return nil
	}
	if err := m.finite(x, what); err != nil {
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
