//go:build cgo && linux

package vulkan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// profiled is a driver whose weights are small numbers, all the same, and whose recordings have a timestamp after each
// launch where that is asked for.
type profiled struct {
	borrowed
	line    *vk.Timeline
	reached uint64

	each bool          // launches are timed one by one
	last *profiledStep // what was submitted last
}

// profiledStep is a recording with the names of its launches.
type profiledStep struct {
	recording
	of    *profiled
	names []string
}

func (p *profiled) Kernels() driver.Kernels { return &profiledKernels{p.device.kernels, p} }

// Allocate fills what only kernels write with two halves of 0.00025: what must be right is written after that.
func (p *profiled) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	b, err := p.device.Allocate(m, size)
	if err != nil || m != driver.Local || p.line == nil {
		return b, err
	}
	r, err := p.device.Device.Record(0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.Fill(of(b), 0x0c220c11)
	if err := r.End(); err != nil {
		return nil, err
	}
	p.reached++
	if err := p.device.Device.Submit([]*vk.Recording{r}, nil, vk.Point{Timeline: p.line, Value: p.reached}); err != nil {
		return nil, err
	}
	return b, p.line.Wait(p.reached, p.Patience())
}

func (p *profiled) Record(q driver.Queue, stamps int) (driver.Recording, error) {
	const most = 4096 // launches of a step
	if q == driver.Compute {
		stamps += most
	}
	r, err := p.device.Record(q, stamps)
	if err != nil {
		return nil, err
	}
	return &profiledStep{recording: *r.(*recording), of: p}, nil
}

func (p *profiled) Submit(all []driver.Recording, waits []driver.Point, signal driver.Point) error {
	plain := make([]driver.Recording, len(all))
	for i, r := range all {
		p.last = r.(*profiledStep)
		plain[i] = &p.last.recording
	}
	return p.device.Submit(plain, waits, signal)
}

// stamp notes the time behind a launch.
func (r *profiledStep) stamp(name string) {
	r.Barrier()
	r.Stamp()
	r.names = append(r.names, name)
}

// End notes the time at the end, too.
func (r *profiledStep) End() error {
	if len(r.names) > 0 {
		r.Stamp()
	}
	return r.recording.End()
}

// profiledKernels time what they launch.
type profiledKernels struct {
	*Kernels
	of *profiled
}

func (k *profiledKernels) Launch(to driver.Recording, l kernel.Launch) error {
	r := to.(*profiledStep)
	_, packs := l.(*kernel.Pack)
	if len(r.names) == 0 && !packs {
		r.stamp("begin")
	}
	err := k.Kernels.Launch(&r.recording, l)
	if k.of.each && !packs {
		r.stamp(r.Bound())
	}
	return err
}

// shaped is a model of a known shape, with so few layers that it is there at once.
type shaped struct {
	backend.Model
	p      *ir.Bound
	driver *profiled
	layers int
}

// shaped compiles it. Embeddings and routers are random, so that rows choose experts of their own.
func (g *gpu) shaped(name, file string, rows, depth int) *shaped {
	p := bound(g.t, name, file, g.d.Facts.Kind == vk.CPU)
	each := (depth + rows + backend.BlockSize - 1) / backend.BlockSize
	b := &profiled{borrowed: borrowed{device: newDevice(g.lib, g.d, g.k)}}
	b.facts.Software = true // only what is measured is compiled, and a step is one submission
	var err error
	b.line, err = g.d.NewTimeline()
	require.NoError(g.t, err)
	g.t.Cleanup(b.line.Close)
	d, err := exec.New(func() (driver.Device, error) { return b, nil })
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, d.Close()) })
	x, err := d.Compile(p, backend.Config{Limits: backend.Limits{KV: backend.KVF16, MaxRows: rows,
		MaxWanted: min(rows, 8), Blocks: backendtest.Blocks(p.Program, each*min(rows, 8))}})
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, x.Close()) })
	for r := range p.Weights {
		w := &p.Weights[r]
		switch {
		case w.Use&ir.Table != 0:
			data, _ := randomWeights(g.t, p.Types[r], 512, w.Cols, 1)
			require.NoError(g.t, x.Upload(ir.Ref(r), 0, data))
		case strings.Contains(w.Name, "ffn_gate_inp"):
			data, _ := randomWeights(g.t, p.Types[r], w.Rows, w.Cols, uint64(r))
			require.NoError(g.t, x.Upload(ir.Ref(r), 0, data))
		case strings.HasSuffix(w.Name, "norm.weight"):
			data := slices.Repeat([]float32{1}, w.Cols)
			require.NoError(g.t, x.Upload(ir.Ref(r), 0, unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), 4*len(data))))
		}
	}
	return &shaped{x, p, b, p.Segments[len(p.Segments)-2].Layer + 1}
}

// step prepares one: so many sequences with a row each, or one with all of them.
func (w *shaped) step(rows, depth int, alone bool) *backend.Step {
	s := w.Steps()[0]
	s.Tokens, s.Wanted, s.Spans, s.Draws, s.Prompt = nil, nil, nil, nil, !alone
	block := int32(0)
	span := func(rows, pos int) {
		var blocks []int32
		for range (pos + rows + backend.BlockSize - 1) / backend.BlockSize {
			blocks = append(blocks, block)
			block++
		}
		s.Spans = append(s.Spans, backend.Span{Row: len(s.Tokens), Rows: rows, Pos: pos,
			Tables: backendtest.Tables(w.p.Program, blocks)})
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
	return s
}

// times are the medians of what lies between the timestamps of a step, in µs, with the launches before them. each has
// launches timed one by one; shape tells recordings apart.
func (w *shaped) times(b *testing.B, s *backend.Step, each bool) (us []float64, names []string) {
	w.driver.each = each
	var all [][]float64
	for range 9 + 2 {
		for i := range w.p.Segments {
			require.NoError(b, backend.Enqueue(w, i, s))
		}
		_ = finish(w, s) // what such weights give may be infinite
		r := w.driver.last
		stamps, err := r.Stamps()
		require.NoError(b, err)
		r.ResetStamps()
		for i := len(stamps) - 1; i > 0; i-- {
			stamps[i] = (stamps[i] - stamps[i-1]) / 1e3
		}
		all, names = append(all, stamps[1:]), r.names
	}
	for i := range all[0] {
		var column []float64
		for _, pass := range all[2:] {
			column = append(column, pass[i])
		}
		slices.Sort(column)
		us = append(us, column[len(column)/2])
	}
	return us, names
}

// part is a launch: its kernel, and how many of that its layer had before.
type part struct {
	name string
	nth  int
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
				for range b.N {
					g.with(b).measure(b, c.name, c.file, s.rows, s.depth, s.alone)
				}
			})
		}
	}
}

// measure makes a model for each way of timing: recordings are kept by shape.
func (g *gpu) measure(b *testing.B, name, file string, rows, depth int, alone bool) {
	w := g.shaped(name, file, rows, depth)
	us, _ := w.times(b, w.step(rows, depth, alone), false)
	b.ReportMetric(us[0], "µs")
	b.ReportMetric(float64(rows)*1e6/us[0], "t/s-of-these-layers")
	w = g.shaped(name, file, rows, depth)
	us, names := w.times(b, w.step(rows, depth, alone), true)
	sums, counts, order := map[part]float64{}, map[part]int{}, []part(nil)
	seen := map[string]int{}
	for i, name := range names[1:] {
		p := part{name, seen[name] / w.layers}
		if counts[p] == 0 {
			order = append(order, p)
		}
		seen[name]++
		sums[p] += us[i]
		counts[p]++
	}
	var table strings.Builder
	for _, p := range order { // on one line: more than ten are not shown
		fmt.Fprintf(&table, " | %s %d: %.1f×%d", p.name, p.nth, sums[p]/float64(counts[p]), counts[p])
	}
	b.Logf("%d launches of %d layers, each alone, µs×count%s", len(names)-1, w.layers, table.String())
}
