package ref

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// frame presents a step to the loops of ops, in the memory of this device.
func (m *model) frame(s *backend.Step) *ir.Frame {
	f := &ir.Frame{
		P: m.p.Program, Values: m.values, Tokens: s.Tokens, Wanted: s.Wanted, Spans: s.Frame(),
		Weights: weights(m.weights),
		Caches:  make([]ir.Cache, len(m.caches)), States: make([]ir.State, len(m.states)),
	}
	for i := range m.caches {
		f.Caches[i] = cacheOf{&m.caches[i], s.Spans, i, m.config.Stored}
	}
	for i := range m.states {
		f.States[i] = stateOf{&m.states[i], s.Spans}
	}
	if m.config.Inputs != nil {
		f.Observe = func(w ir.Ref, expert int, x []float32) { m.config.Inputs.Add(w, expert, 0, x) }
	}
	return f
}

// weights decodes weights, by Ref.
type weights []weight

func (w weights) Decode(r ir.Ref, i int, to []float32) { w[r].row(to, i) }

// cacheOf is a cache for the spans of a step, which reach it by their tables.
type cacheOf struct {
	*cache
	spans  []backend.Span
	index  int
	stored func(cache, head int, key, value []float32) // nil: nobody observes
}

func (c cacheOf) slot(in *cache, span, pos int) int {
	t := &c.spans[span].Tables[in.Class]
	return int(t.At(pos/backend.BlockSize))*backend.BlockSize + pos%backend.BlockSize
}

// Put stores a row, and seals the block that it is the last one of.
func (c cacheOf) Put(span, pos int, k, v []float32) {
	for h := range c.KVHeads {
		if c.stored != nil {
			c.stored(c.index, h, k[h*c.KDim:][:c.KDim], v[h*c.VDim:][:c.VDim])
		}
	}
	if c.open == nil {
		c.put(c.slot(c.cache, span, pos), k, v)
		return
	}
	slot := c.slot(c.open, span, pos)
	c.open.put(slot, k, v)
	if last := backend.BlockSize - 1; pos%backend.BlockSize == last {
		c.seal(c.slot(c.cache, span, pos)-last, slot-last)
	}
}

// seen is the cache where a row reads a position: the open one in the row's own block, the sealed one before it.
func (c cacheOf) seen(row, pos int) *cache {
	if c.open != nil && pos/backend.BlockSize >= row/backend.BlockSize {
		return c.open
	}
	return c.cache
}

func (c cacheOf) Key(span, row, pos, head int) []float32 {
	in := c.seen(row, pos)
	return in.key(c.slot(in, span, pos), head)
}

func (c cacheOf) Value(span, row, pos, head int) []float32 {
	in := c.seen(row, pos)
	return in.value(c.slot(in, span, pos), head)
}

// state is the state that a node keeps of sequences, by block of its class.
type state struct {
	ir.StateLayer
	slots []float32
	trial []float32 // the state after the newest proposed row
}

// stateOf is a state for the spans of a step.
type stateOf struct {
	*state
	spans []backend.Span
}

func (s stateOf) Before(span, pos int) []float32 {
	if pos == 0 {
		return make([]float32, s.Values)
	}
	return s.After(span, pos-1)
}

func (s stateOf) After(span, pos int) []float32 {
	p := &s.spans[span]
	if pos >= p.Pos+p.Kept() {
		return s.trial
	}
	at := int(p.Tables[s.Class].At(pos / backend.BlockSize))
	return s.slots[at*s.Values:][:s.Values]
}
