package cpu

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// layWeights reports what cannot be used, or places all weights: those that are used in place where they are, the
// others in memory of their own.
func (m *model) layWeights(p *ir.Bound) error {
	var faults []error
	total := 0
	m.weights = make([]weight, len(p.Weights))
	used, _ := p.Used()
	for r := range p.Weights {
		w := &m.weights[r]
		if !used[r] {
			continue
		}
		if err := w.measure(&p.Weights[r], p.Types[r], m.config.InPlace != nil); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", p.Weights[r].Name, err))
		}
		total += align(w.size)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	memory, err := mem.Alloc(int64(total))
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	m.weightMemory = memory
	m.populated.Go(func() { mem.Populate(m.weightMemory, &m.closing) })
	for r := range m.weights {
		w := &m.weights[r]
		if !used[r] {
			continue
		}
		use, own := p.Weights[r].Use, memory[:w.size:w.size]
		if w.size > 0 {
			err = w.place(own, use)
		}
		if err == nil && m.config.InPlace != nil {
			err = w.adopt(m.config.InPlace[r], use)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		memory = memory[align(w.size):]
	}
	return nil
}

// layCaches takes the memory of all layers; the system gives pages when they are first written.
func (m *model) layCaches(p *ir.Bound) error {
	m.caches = make([]cache, len(p.KV))
	total := 0
	_, used := p.Used()
	for i, kv := range p.KV {
		c := &m.caches[i]
		if !used[i] {
			continue
		}
		c.KVLayer, c.stride = kv, (kv.VDim+vec.Lanes-1)&^(vec.Lanes-1)
		elements, scales := c.size(m.config)
		total += elements + 4*scales
	}
	memory, err := mem.Alloc(int64(total))
	if err != nil {
		return fmt.Errorf("KV cache: %w", err)
	}
	m.kvMemory = memory
	for i := range m.caches {
		if used[i] {
			memory = m.caches[i].lay(m.config, memory)
		}
	}
	return nil
}

// layStep makes the only step of the ring, with memory for its logits.
func (m *model) layStep() (err error) {
	if m.logitMemory, err = mem.Alloc(4 * int64(m.config.MaxWanted) * int64(m.program.OutputWidth())); err != nil {
		return fmt.Errorf("logits: %w", err)
	}
	m.ring = []*backend.Step{{Logits: floats(m.logitMemory)}}
	return nil
}

// layScratch takes the memory for values and for attention: each worker's largest queries, and what split rows leave.
func (m *model) layScratch(p *ir.Bound, values int) error {
	shape, experts, threads := shapeOfQueries(p), shapeOfExperts(p), m.device.pool.size()
	gathered, tiles := align(experts.gathered()*experts.rowBytes)/4, 0
	if gathered > 0 && m.device.set.Tiled() {
		tiles = align(kernels.TileBytes(experts.gathered(), experts.rowBytes)) / 4
	}
	size := values + threads*(shape.floats()+gathered+tiles) + splitQueries*(shape.stride+2)
	memory, err := mem.Alloc(4 * int64(size))
	if err != nil {
		return fmt.Errorf("activations: %w", err)
	}
	m.scratchMemory = memory
	a := &arena{floats(memory)}
	m.scratch = a.take(values)
	m.workers = make([]workspace, threads)
	for i := range m.workers {
		m.workers[i] = workspace{
			queries: shape.take(a), halves: make([]uint16, shape.dim), bytes: make([]int8, shape.dim),
			choice: newChoice(p), gathered: experts.gathered(), gatherFloats: a.take(gathered),
		}
		if tiles > 0 {
			m.workers[i].gatherTiles = bytesOf(a.take(tiles))
		}
	}
	m.dispatch = newDispatch(experts, m.config.MaxRows, threads)
	m.split = split{
		chunks:   make([]attendChunk, 0, m.config.MaxRows*shape.kvHeads+splitQueries),
		merges:   make([]merge, splitMerges),
		partials: newSoftmax(splitQueries, shape.stride, a),
	}
	return nil
}

// layStrips takes the memory in which workers pack strips of weights that are in place.
func (m *model) layStrips() error {
	if m.config.InPlace == nil {
		return nil
	}
	row := 0
	for i := range m.weights {
		if w := &m.weights[i]; w.matrix != nil {
			row = max(row, w.row)
		}
	}
	size := align(kernels.StripsBytes(row))
	memory, err := mem.Alloc(int64(size * len(m.workers)))
	if err != nil {
		return fmt.Errorf("strips of weights: %w", err)
	}
	m.stripMemory = memory
	for i := range m.workers {
		m.workers[i].strips = kernels.NewStrips(memory[i*size:][:size:size])
	}
	return nil
}
