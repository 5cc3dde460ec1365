//go:build cgo && linux

package vulkan

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/arch"
	"github.com/sluice-ai/sluice/stages/ftype"
	"github.com/sluice-ai/sluice/stages/synth"
	"github.com/stretchr/testify/require"
)

// shaped is a model of a known shape on a device, as it is planned, with so few layers that it is there at once.
type shaped struct {
	g *gpu
	*model
	layers int
}

// benchLayers are more than caches hold.
const benchLayers = 8

// bound is a known shape's program in a file type.
func bound(t testing.TB, name, file string, small bool) *ir.Bound {
	c, err := synth.Find(name)
	require.NoError(t, err)
	c.Layers = benchLayers
	if small { // it shows that the benchmark runs
		c.Layers, c.Vocab = 1, 1024
		c.Experts, c.ExpertFFN = min(c.Experts, 16), min(c.ExpertFFN, 256)
		if c.Heads > 0 { // the heads of a state space divide its width
			c.Width, c.FFN, c.Heads, c.KVHeads, c.HeadDim = 512, 512, 4, 2, 128
		}
	}
	md := c.Meta(name)
	p, err := arch.Record(md, c.Has, arch.Options{})
	require.NoError(t, err)
	var before []ftype.Tensor
	for _, x := range c.Tensors(p) {
		typ := quant.F16
		if x.Vector {
			typ = quant.F32
		}
		before = append(before, ftype.Tensor{Name: x.Name, Type: typ, Shape: x.Shape})
	}
	recipe, ok := ftype.Find(file)
	require.True(t, ok)
	types, err := recipe.Types(md, before, ftype.Options{})
	require.NoError(t, err)
	var tensors []ir.Tensor
	for i, x := range before {
		tensors = append(tensors, ir.Tensor{Name: x.Name, Type: types[i], Shape: x.Shape})
	}
	b, err := ir.Bind(p, tensors)
	require.NoError(t, err)
	return b
}

// shaped compiles it. Its weights are small numbers, all the same; embeddings and routers are random, so that rows
// choose experts of their own.
func (g *gpu) shaped(name, file string, rows, depth int) *shaped {
	p := bound(g.t, name, file, g.d.Facts.Kind == vk.CPU)
	each := (depth + rows + backend.BlockSize - 1) / backend.BlockSize
	d := g.device()
	d.ahead = false // only what is measured
	x, err := d.Compile(p, backend.Config{KV: backend.KVF16, MaxRows: rows, MaxWanted: min(rows, 8),
		Blocks: backendtest.Blocks(p.Program, each*min(rows, 8))})
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, x.Close()) })
	m := x.(*model)
	tables := map[uint64]bool{m.drawn.Address: true} // what must be right
	for _, t := range m.experts {
		tables[t.Address] = true
	}
	require.NoError(g.t, m.device.queue.once(func(r *vk.Recording) error {
		for _, b := range m.memory.all {
			if b.Bytes == nil && !tables[b.Address] {
				r.Fill(b, 0x0c220c11) // two halves of 0.00025
			}
		}
		return nil
	}))
	for r := range p.Weights {
		w := &p.Weights[r]
		switch {
		case w.Use&ir.Table != 0:
			data, _ := randomWeights(g.t, p.Types[r], 512, w.Cols, 1)
			require.NoError(g.t, m.Upload(ir.Ref(r), 0, data))
		case strings.Contains(w.Name, "ffn_gate_inp"):
			data, _ := randomWeights(g.t, p.Types[r], w.Rows, w.Cols, uint64(r))
			require.NoError(g.t, m.Upload(ir.Ref(r), 0, data))
		case strings.HasSuffix(w.Name, "norm.weight"):
			data := make([]float32, w.Cols)
			for i := range data {
				data[i] = 1
			}
			require.NoError(g.t, m.Upload(ir.Ref(r), 0, unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), 4*len(data))))
		}
	}
	return &shaped{g, m, p.Segments[len(p.Segments)-2].Layer + 1}
}

// step prepares one: so many sequences with a row each, or one with all of them.
func (w *shaped) step(rows, depth int, alone bool) *slot {
	x := w.slots[0]
	s := x.step
	s.Tokens, s.Wanted, s.Spans, s.Draws, s.Prompt = nil, nil, nil, nil, !alone
	block := int32(0)
	span := func(rows, pos int) {
		var blocks []int32
		for range (pos + rows + backend.BlockSize - 1) / backend.BlockSize {
			blocks = append(blocks, block)
			block++
		}
		s.Spans = append(s.Spans, backend.Span{Row: len(s.Tokens), Rows: rows, Pos: pos,
			Tables: backendtest.Tables(w.program, blocks)})
		for range rows {
			s.Tokens = append(s.Tokens, int32(len(s.Tokens)))
		}
		s.Wanted, s.Draws = append(s.Wanted, int32(len(s.Tokens)-1)), append(s.Draws, backend.Draw{TopP: 1})
	}
	if alone {
		for range rows {
			span(1, depth-1)
		}
	} else {
		span(rows, depth)
	}
	require.NoError(w.g.t, s.Check(w.program, &w.config, 0))
	w.fill(x)
	x.shape.from, x.shape.to = 0, len(w.program.Segments)-1
	return x
}

// part is a launch: its kernel, and how many of that its layer had before.
type part struct {
	name string
	nth  int
}

// recordStep records the step, with a timestamp after each launch if somebody wants to know their names.
func (w *shaped) recordStep(r *vk.Recording, x *slot, parts *[]part, timed bool) {
	sh := x.shape
	sh.detail = timed
	rec := &recorder{r: r, k: w.device.kernels, m: w.model, s: x, shape: &sh, timed: timed}
	r.Stamp()
	if parts != nil {
		layer, seen := -1, map[string]int{}
		rec.launched = func(segment int) {
			if l := w.program.Segments[segment].Layer; l != layer {
				layer = l
				clear(seen)
			}
			*parts = append(*parts, part{r.Bound(), seen[r.Bound()]})
			seen[r.Bound()]++
			r.Barrier()
			r.Stamp()
		}
	}
	require.NoError(w.g.t, w.model.record(rec))
	r.Stamp()
}

// BenchmarkModel is steps of known shapes, as they are planned: a layer's time, and with a timestamp after each launch
// what a layer's launches take, by their order. -test.bench 'Model/qwen3' chooses some.
func BenchmarkModel(b *testing.B) {
	type step struct {
		rows, depth int
		alone       bool
		fast        bool // in half precision, as files of floats are anyway
	}
	decode, deep, many := step{rows: 1, depth: 512, alone: true}, step{rows: 1, depth: 8192, alone: true},
		step{rows: 8, depth: 512, alone: true}
	prefill, later, fast := step{rows: 512}, step{rows: 512, depth: 3584}, step{rows: 512, fast: true}
	for _, c := range []struct {
		name, file string
		steps      []step
	}{
		{"qwen3-30b-a3b", "Q4_K_M", []step{decode, many, prefill}},
		{"llama-3.1-8b", "Q4_0", []step{decode, deep, prefill, fast, later}},
		{"llama-3.1-8b", "Q4_K_M", []step{decode, deep, many, prefill, fast}},
		{"llama-3.1-8b", "Q8_0", []step{decode, prefill}},
		{"llama-3.1-8b", "F16", []step{decode, prefill, later}},
		{"lfm2-1.2b", "Q8_0", []step{decode, many, prefill}},
		{"mamba2-2.7b", "Q4_K_M", []step{decode, many, prefill}},
		{"qwen3-next-80b-a3b", "Q4_K_M", []step{decode, many, prefill}},
	} {
		for _, s := range c.steps {
			name := fmt.Sprintf("%s/%s/rows%d/depth%d", c.name, c.file, s.rows, s.depth)
			if s.fast {
				name += "/fast"
			}
			b.Run(name, func(b *testing.B) {
				g := open(b)
				if g.d.Facts.Kind == vk.CPU {
					s.rows, s.depth = min(s.rows, 32), min(s.depth, 128)
				}
				g.k.Halves = s.fast
				w := g.shaped(c.name, c.file, s.rows, s.depth)
				for range b.N {
					w.measure(b, w.step(s.rows, s.depth, s.alone))
				}
			})
		}
	}
}

func (w *shaped) measure(b *testing.B, x *slot) {
	w.warm([]shape{x.shape})
	q, g := w.device.queue, w.g.with(b)
	g.line, *g.reached = q.line, q.last // the test goes on where the device was, and the device where the test was
	defer func() { q.last = *g.reached }()
	us := g.times(9, 2, func(r *vk.Recording) { w.recordStep(r, x, nil, false) })
	b.ReportMetric(us[0], "µs")
	sum := 0.0
	stamps := 2 + x.shape.to - x.shape.from + 2
	for _, each := range g.times(9, stamps, func(r *vk.Recording) { w.recordStep(r, x, nil, true) }) {
		sum += each
	}
	b.ReportMetric(sum, "µs-timed") // with a timestamp between segments, as one step of sixteen has
	b.ReportMetric(float64(x.shape.rows)*1e6/us[0], "t/s-of-these-layers")
	var parts []part
	dry, err := g.d.Record(len(w.launches) + 2)
	require.NoError(b, err)
	w.recordStep(dry, x, &parts, false)
	dry.Close()
	us = g.times(9, len(parts)+2, func(r *vk.Recording) { w.recordStep(r, x, &[]part{}, false) })
	parts = append(parts, part{"end", 0})
	sums, counts, order := map[part]float64{}, map[part]int{}, []part(nil)
	for i, p := range parts {
		if counts[p] == 0 {
			order = append(order, p)
		}
		sums[p] += us[i]
		counts[p]++
	}
	var table strings.Builder
	for _, p := range order { // on one line: more than ten are not shown
		fmt.Fprintf(&table, " | %s %d: %.1f×%d", p.name, p.nth, sums[p]/float64(counts[p]), counts[p])
	}
	b.Logf("%d launches of %d layers, each alone, µs×count%s", len(parts), w.layers, table.String())
}
