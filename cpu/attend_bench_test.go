package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// large is what no processor's own cache holds.
const large = 512 << 20

// attending is a model of little else than attention: layers of the given shape, so many that their caches of context
// positions fill so many bytes in f16, or more.
func attending(b *testing.B, threads int, kv backend.KV, heads, kvHeads, dim, context, rows, large int) *model {
	const width = 32
	rec := ir.NewBuilder("attending", func(string) bool { return false })
	x := rec.Embed("token_embd", 64, width)
	each := context * kvHeads * dim * 4
	for l := range max(1, large/each) {
		rec.Layer(l)
		a := ir.AttendArgs{Heads: heads, KVHeads: kvHeads, KDim: dim, VDim: dim, Scale: 0.1}
		q, k := rec.Linear(x, "attn_q", heads*dim), rec.Linear(x, "attn_k", kvHeads*dim)
		x = rec.Add(x, rec.Linear(rec.Attend(q, k, rec.Linear(x, "attn_v", kvHeads*dim), a), "attn_output", width))
		rec.FFN()
		x = rec.Scale(x, 0.5)
	}
	rec.Head(rec.Rows(x), "output", "token_embd")
	p, err := rec.Program(context)
	require.NoError(b, err)
	p = kv.Sealing(p)
	bound := &ir.Bound{Program: p, Types: make([]quant.Type, len(p.Weights))}
	for r := range p.Weights {
		bound.Types[r] = quant.Q8_0
	}
	d, err := New(threads, "")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, d.Close()) })
	blocks := []int{context / backend.BlockSize, backend.BlocksFor(rows) + 1}
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: blocks[:len(p.Classes)], MaxRows: rows, MaxWanted: 1}}
	compiled, err := d.Compile(bound, c)
	require.NoError(b, err)
	m := compiled.(*model)
	b.Cleanup(func() { require.NoError(b, m.Close()) })
	m.fillCaches()
	return m
}

// fillCaches puts ordinary numbers where K and V lie.
func (m *model) fillCaches() {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range m.caches {
		for _, c := range m.caches[i].parts() {
			rows := make([]float32, backend.BlockSize*max(c.KDim, c.VDim))
			for j := range rows {
				rows[j] = float32(r.IntN(64)-32) / 16
			}
			values := slices.Clone(rows[:backend.BlockSize*c.VDim])
			c.store(m.device.isa, &m.workers[0], 0, 0, rows[:backend.BlockSize*c.KDim], values)
			for head := range m.config.Blocks[c.Class] * c.KVHeads {
				copy(c.memory[c.key(head):], c.memory[:c.head])
				copy(c.scales[head*c.scaled:], c.scales[:c.scaled])
			}
		}
	}
}

// BenchmarkAttend runs a step behind a depth of cached positions. GB/s are the bytes of K and V that a decode must
// read; GFLOP/s count two for each multiplication with a score or a weight that a row needs.
func BenchmarkAttend(b *testing.B) {
	for _, shape := range []struct{ heads, kvHeads, dim int }{{32, 32, 64}, {32, 8, 128}} {
		for _, c := range []struct{ depth, rows int }{
			{512, 1}, {8192, 1}, {32704, 1}, {0, 512}, {8192, 512}, {32256, 512},
		} {
			for _, kv := range []backend.KV{backend.KVF16, backend.KVQ8} {
				for _, threads := range []int{1, 2} {
					b.Run(fmt.Sprintf("%dx%dx%d/depth=%d/rows=%d/%s/threads=%d", shape.heads, shape.kvHeads, shape.dim,
						c.depth, c.rows, kv, threads), func(b *testing.B) {
						context := (c.depth + c.rows + 63) &^ 63
						m := attending(b, threads, kv, shape.heads, shape.kvHeads, shape.dim, context, c.rows, large)
						m.benchmark(b, c.depth, c.rows, shape.heads*shape.dim)
					})
				}
			}
		}
	}
}

func (m *model) benchmark(b *testing.B, depth, rows, features int) {
	run := m.stepper(b, depth, rows)
	run()
	for b.Loop() {
		run()
	}
	seconds := b.Elapsed().Seconds() / float64(b.N)
	if rows == 1 {
		b.ReportMetric(float64(len(m.kvMemory))/1e9/seconds, "GB/s")
		return
	}
	pairs := float64(rows) * (float64(depth) + float64(rows+1)/2)
	b.ReportMetric(4*pairs*float64(features*len(m.caches))/1e9/seconds, "GFLOP/s")
}

// stepper computes rows behind a depth of cached positions, whenever it is called.
func (m *model) stepper(b *testing.B, depth, rows int) func() {
	step := backend.Step{Tokens: make([]int32, rows), Spans: []backend.Span{{Rows: rows, Pos: depth}}}
	for class, n := range m.config.Blocks {
		var table backend.Table
		for i := range n {
			table.Blocks = append(table.Blocks, int32(i))
		}
		if class > 0 { // of open blocks
			table.First = depth / backend.BlockSize
		}
		step.Spans[0].Tables = append(step.Spans[0].Tables, table)
	}
	return func() {
		step.Restart()
		for i := range m.segments {
			require.NoError(b, backend.Enqueue(m, i, &step))
		}
	}
}

// BenchmarkAttendTypes is the time of attention in each type of cache by that in f16, behind 8192 positions: the median
// of pairs that follow each other, as machines are seldom quiet, on one thread, which waits for no other.
func BenchmarkAttendTypes(b *testing.B) {
	for _, shape := range []struct{ heads, kvHeads, dim, rows int }{
		{32, 32, 64, 1}, {32, 8, 128, 1}, {32, 32, 64, 128}, {32, 8, 128, 128},
	} {
		for _, names := range [][2]string{{"q8", "q8"}, {"q5", "q5"}, {"q4", "q4"}, {"tq4", "tq4"}, {"tq3", "tq3"}, {"q8", "tq2"}} {
			kv, err := backend.MixKV(names[0], names[1])
			require.NoError(b, err)
			b.Run(fmt.Sprintf("%dx%dx%d/rows=%d/%s", shape.heads, shape.kvHeads, shape.dim, shape.rows, kv), func(b *testing.B) {
				const depth, large = 8192, 200 << 20
				var turns [2]func()
				for i, kv := range []backend.KV{backend.KVF16, kv} {
					m := attending(b, 1, kv, shape.heads, shape.kvHeads, shape.dim, depth+(shape.rows+63)&^63, shape.rows, large)
					turns[i] = m.stepper(b, depth, shape.rows)
					turns[i]()
				}
				var ratios []float64
				for b.Loop() {
					var took [2]time.Duration
					for i, turn := range turns {
						start := time.Now()
						turn()
						took[i] = time.Since(start)
					}
					ratios = append(ratios, float64(took[1])/float64(took[0]))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "of-f16")
			})
		}
	}
}
