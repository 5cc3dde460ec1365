package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// layWeights returns all weights that cannot be used, or places them: weights in place stay where they are, those in
// slots of their own get one area for all.
func (m *model) layWeights(p *ir.Bound) error {
	m.weights = make([]weight, len(p.Weights))
	own, groups := m.config.Own(len(m.parts.Groups)), m.parts.Groups
	var faults []error
	total := 0
	err := m.eachShare(p, func(group int, r ir.Ref, rows, _ int) error {
		w := &m.weights[r]
		if w.name == "" {
			w.byColumn = channelwise(p, r)
			err := errors.Join(w.measure(&p.Weights[r], p.Types[r], groups[group].Use), oddHalves(p, r))
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", w.name, err))
				w.row = 0
			}
		}
		if len(faults) == 0 && m.copied(w, own[group]) {
			total += align(w.size(rows))
		}
		return nil
	})
	if err = errors.Join(append(faults, err)...); err != nil {
		return err
	}
	memory, err := mem.Alloc(int64(total))
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	m.weightMemory = memory
	m.populated.Go(func() { mem.Populate(m.weightMemory, &m.closing) })
	inPlace, tables := m.config.InPlace(), m.config.Uploaded().Tables
	return m.eachShare(p, func(group int, r ir.Ref, rows, from int) (err error) {
		w := &m.weights[r]
		switch {
		case m.copied(w, own[group]):
			size := w.size(rows)
			err = w.add(group, rows, memory[:size:size])
			memory = memory[align(size):]
		case w.use == ir.Matrix && inPlace == nil:
			w.await(group, rows, groups[group].Expert != ir.Dense)
		}
		if err == nil && inPlace != nil {
			if data := inPlace[r]; len(data) != w.row*w.rows {
				err = fmt.Errorf("%d bytes in place, want %d", len(data), w.row*w.rows)
			} else {
				err = w.adopt(group, rows, data[from*w.row:][:rows*w.row])
			}
		}
		if !own[group] && int(r) < len(tables) {
			w.table = tables[r]
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		return nil
	})
}

// regions are a model's areas of memory, outside of the Go heap.
type regions struct {
	populated sync.WaitGroup // the goroutine that populates the weights' pages
	closing   atomic.Bool

	weightMemory, roomMemory, kvMemory, stateMemory, scratchMemory, stripMemory, logitMemory []byte
}

// free unmaps all areas.
func (r *regions) free() error {
	r.closing.Store(true)
	r.populated.Wait()
	return errors.Join(mem.Free(r.weightMemory), mem.Free(r.roomMemory), mem.Free(r.kvMemory), mem.Free(r.stateMemory),
		mem.Free(r.scratchMemory), mem.Free(r.stripMemory), mem.Free(r.logitMemory))
}

// eachShare visits the share that each group has of each of its weights: a number of rows, from row from on.
func (m *model) eachShare(p *ir.Bound, visit func(group int, r ir.Ref, rows, from int) error) error {
	for g := range m.parts.Groups {
		for _, r := range m.parts.Groups[g].Weights {
			from, to := m.parts.Groups[g].Rows(&p.Weights[r])
			if err := visit(g, r, to-from, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// copied says whether a group's share of a weight has memory of its own.
func (m *model) copied(w *weight, own bool) bool {
	return own && (m.config.InPlace() == nil || w.use == ir.Vector)
}

// layCaches allocates the memory of all layers; the system provides pages when they are first written.
func (m *model) layCaches(p *ir.Bound) error {
	m.caches, m.Areas = make([]*cache, len(p.KV)), make(backend.Areas, len(p.Classes))
	total := 0
	_, used, _ := p.Used()
	for i, kv := range p.KV {
		if !used[i] {
			continue
		}
		m.caches[i] = newCache(kv, m.config.KV.Of(i, p.Classes[kv.Class]))
		for _, c := range m.caches[i].parts() {
			elements, scales := c.size(m.config.Blocks[c.Class])
			total += elements + scales
		}
	}
	memory, err := mem.Alloc(int64(total))
	if err != nil {
		return fmt.Errorf("KV cache: %w", err)
	}
	m.kvMemory = memory
	for i := range m.caches {
		if !used[i] {
			continue
		}
		for _, c := range m.caches[i].parts() {
			n, scales := c.size(m.config.Blocks[c.Class])
			c.memory, memory = memory[:n:n], memory[n:]
			m.Areas[c.Class] = append(m.Areas[c.Class], backend.Area{Memory: c.memory, Each: c.key(c.KVHeads)})
			if scales > 0 {
				m.Areas[c.Class] = append(m.Areas[c.Class], backend.Area{Memory: memory[:scales], Each: 4 * c.KVHeads * c.scaled})
			}
			c.scales, memory = floats(memory[:scales]), memory[scales:]
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

// layScratch allocates memory for values and for attention: the workers' queries of the largest size, and partial
// results.
func (m *model) layScratch(p *ir.Bound, values int) error {
	shape, experts, threads := shapeOfQueries(p, m.caches), shapeOfExperts(p), m.device.pool.size()
	gathered, tiles := max(align(experts.gathered()*experts.rowBytes), align(4*windowsOf(p)))/4, 0
	if experts.gathered() > 0 && m.device.set.Tiled() {
		tiles = align(kernels.TileBytes(experts.gathered(), experts.rowBytes)) / 4
	}
	between, updated := 0, 0
	if len(p.Sites) > 0 {
		between, updated = ir.MostRank, adaptOutputs
	}
	size := values + threads*(shape.floats()+gathered+tiles+between+updated) + splitQueries*(shape.stride+2)
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
			between: a.take(between), updated: a.take(updated),
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

// layStrips allocates memory where workers pack strips of weights that are in place, or in shared slots.
func (m *model) layStrips() error {
	row := 0
	for i := range m.weights {
		w := &m.weights[i]
		if slices.ContainsFunc(w.parts, func(m *kernels.Matrix) bool { return m.FileOrder }) {
			row = max(row, w.row)
		}
	}
	if row == 0 {
		return nil
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
