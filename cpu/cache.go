package cpu

import (
	"fmt"
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// cache is K and V of one attention layer, [block][KV head] of two small matrices: K transposed, [KDim][64 positions],
// and V, [64 positions][stride]. Both are the right operand of a product (vec.Product) as they lie there.
type cache struct {
	ir.KVLayer
	stride int // of V: VDim in whole groups of vec.Lanes
	whole  []float32
	halves []uint16 // instead of whole
}

// head is the number of elements of one head in one block.
func (c *cache) head() int { return backend.BlockSize * (c.KDim + c.stride) }

// layCaches takes the memory of all layers; the system gives pages when they are first written.
func (m *model) layCaches(p *ir.Bound) error {
	size := 2
	if m.config.KV == backend.KVF32 {
		size = 4
	}
	m.caches = make([]cache, len(p.KV))
	total := 0
	for i, kv := range p.KV {
		c := &m.caches[i]
		c.KVLayer, c.stride = kv, (kv.VDim+vec.Lanes-1)&^(vec.Lanes-1)
		total += m.config.Blocks * kv.KVHeads * c.head() * size
	}
	memory, err := mem.Alloc(int64(total))
	if err != nil {
		return fmt.Errorf("KV cache: %w", err)
	}
	m.kvMemory = memory
	for i := range m.caches {
		c := &m.caches[i]
		n := m.config.Blocks * c.KVHeads * c.head()
		if at := unsafe.Pointer(unsafe.SliceData(memory)); size == 4 {
			c.whole = unsafe.Slice((*float32)(at), n)
		} else {
			c.halves = unsafe.Slice((*uint16)(at), n)
		}
		memory = memory[n*size:]
	}
	return nil
}

// storeOp appends K and V of a row to the cache.
type storeOp struct {
	cache *cache
	k, v  place
}

func (b *binder) store(n *ir.Node) *storeOp {
	return &storeOp{&b.m.caches[n.Attend.KV], b.room.place(n.In[1]), b.room.place(n.In[2])}
}

func (o *storeOp) row(m *model, worker, r int) error {
	c, k, v := o.cache, m.at(&o.k, r), m.at(&o.v, r)
	if err := m.finite(k, "K"); err != nil {
		return err
	}
	if err := m.finite(v, "V"); err != nil {
		return err
	}
	at := m.pos[r] % backend.BlockSize
	for h := range c.KVHeads {
		from := (int(m.block[r])*c.KVHeads + h) * c.head()
		key, value := k[h*c.KDim:][:c.KDim], v[h*c.VDim:][:c.VDim]
		if c.whole != nil {
			c.storeWhole(c.whole[from:][:c.head()], at, key, value)
		} else if err := c.storeHalves(m, worker, c.halves[from:][:c.head()], at, key, value); err != nil {
			return err
		}
	}
	return nil
}

func (c *cache) storeWhole(block []float32, at int, key, value []float32) {
	for i, x := range key {
		block[i*backend.BlockSize+at] = x
	}
	copy(block[backend.BlockSize*c.KDim+at*c.stride:], value)
}

func (c *cache) storeHalves(m *model, worker int, block []uint16, at int, key, value []float32) error {
	const infinite = 0x7c00
	halves := m.workers[worker].halves[:len(key)]
	m.device.isa.Halve(halves, key)
	for i, h := range halves {
		if h&infinite == infinite {
			return fmt.Errorf("value %v of K does not fit: a half holds at most 65504: keep the cache in f32", key[i])
		}
		block[i*backend.BlockSize+at] = h
	}
	halves = block[backend.BlockSize*c.KDim+at*c.stride:][:len(value)]
	m.device.isa.Halve(halves, value)
	for i, h := range halves {
		if h&infinite == infinite {
			return fmt.Errorf("value %v of V does not fit: a half holds at most 65504: keep the cache in f32", value[i])
		}
	}
	return nil
}
