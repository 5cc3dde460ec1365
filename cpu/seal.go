package cpu

import "github.com/sluice-ai/sluice/internal/backend"

// sealing seals the blocks whose last rows the running step stored, before any row attends to them. A sealed block
// depends only on its 64 rows, not on which step stored the last one. If a row is stored again, since a proposal was
// rejected, the last row comes again, too, and the block is sealed again.
type sealing struct {
	ex    *execution
	cache *cache
	full  []fullBlock
}

// fullBlock is a position block of a span.
type fullBlock struct{ span, block int }

func newSealing(ex *execution, c *cache) *sealing {
	return &sealing{ex: ex, cache: c, full: make([]fullBlock, 0, ex.config.MaxRows)}
}

// run seals all blocks that the step filled.
func (s *sealing) run() {
	s.full = s.full[:0]
	for i := range s.ex.step.Spans {
		span := &s.ex.step.Spans[i]
		for b := span.Pos / backend.BlockSize; (b+1)*backend.BlockSize <= span.Pos+span.Rows; b++ {
			s.full = append(s.full, fullBlock{i, b})
		}
	}
	s.ex.device.pool.do(sealHeads{s}, len(s.full)*s.cache.KVHeads)
}

// sealHeads is the work of sealing: a chunk is one head of a block.
type sealHeads struct{ *sealing }

func (s sealHeads) run(worker, chunk int) {
	full, kvHeads := s.full[chunk/s.cache.KVHeads], s.cache.KVHeads
	tables, isa, w := s.ex.step.Spans[full.span].Tables, s.ex.device.isa, &s.ex.workers[worker]
	head := func(c *cache) int { return int(tables[c.Class].At(full.block))*kvHeads + chunk%kvHeads }
	c, open := s.cache, s.cache.open
	to, from := head(c), head(open)
	key, value, kept, keptValue := c.heldKey(to), c.heldValue(to), open.heldKey(from), open.heldValue(from)
	rows := w.queries.rows
	if c.format.K.Sealed == nil {
		key.copy(kept, c.keys.scales())
	} else {
		open.keys.load(rows[:backend.BlockSize*c.KDim], kept)
		c.keys.store(isa, w, key, 0, rows[:backend.BlockSize*c.KDim])
	}
	if c.format.V.Sealed == nil {
		value.copy(keptValue, c.values.scales())
	} else {
		open.values.load(rows[:backend.BlockSize*c.VDim], keptValue)
		c.values.store(isa, w, value, 0, rows[:backend.BlockSize*c.VDim])
	}
}

// copy copies the content of another block in the same form, with so many scales.
func (h held) copy(from held, scales int) {
	copy(h.block, from.block)
	copy(h.scaled[:scales*backend.BlockSize], from.scaled)
}
