package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// attending is a model of little else than attention: layers of the given shape, so many that their caches of context
// positions fill half a gigabyte or more, which no processor's own cache holds.
func attending(b *testing.B, threads int, kv backend.KV, heads, kvHeads, dim, context, rows int) *model {
	const width, large = 32, 512 << 20
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
	bound := &ir.Bound{Program: p, Types: make([]quant.Type, len(p.Weights))}
	for r := range p.Weights {
		bound.Types[r] = quant.Q8_0
	}
	d, err := New(threads, "")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, d.Close()) })
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: []int{context / backend.BlockSize}, MaxRows: rows,
		MaxWanted: 1}}
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
		c := m.caches[i]
		row := make([]float32, max(c.KDim, c.VDim))
		for at := range backend.BlockSize {
			for j := range row {
				row[j] = float32(r.IntN(64)-32) / 16
			}
			c.store(m.device.isa, &m.workers[0], 0, at, row[:c.KDim], row[:c.VDim])
		}
		for head := range m.config.Blocks[c.Class] * c.KVHeads {
			copy(c.memory[c.key(head):], c.memory[:c.head])
			copy(c.scales[head*c.scaled:], c.scales[:c.scaled])
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
						m := attending(b, threads, kv, shape.heads, shape.kvHeads, shape.dim, context, c.rows)
						m.benchmark(b, c.depth, c.rows, shape.heads*shape.dim)
					})
				}
			}
		}
	}
}

func (m *model) benchmark(b *testing.B, depth, rows, features int) {
	step := backend.Step{Tokens: make([]int32, rows), Spans: []backend.Span{{Rows: rows, Pos: depth}}}
	var blocks []int32
	for i := range m.config.Blocks[0] {
		blocks = append(blocks, int32(i))
	}
	step.Spans[0].Tables = []backend.Table{{Blocks: blocks}}
	run := func() {
		step.Restart()
		for i := range m.segments {
			require.NoError(b, backend.Enqueue(m, i, &step))
		}
	}
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
