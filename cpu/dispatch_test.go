package cpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// routedLayer has 8 experts, of which rows use 3, and, if asked, one that all rows share. The router is float32,
// what it chooses among is Q8_0 but for one matrix.
func routedLayer(t *testing.T, shared bool) *ir.Bound {
	const width, experts, used, ffn = 64, 8, 3, 32
	b := ir.NewBuilder("routed", func(string) bool { return false })
	x := b.Embed("token_embd", 100, width)
	b.Layer(0)
	a := ir.AttendArgs{Heads: 2, KVHeads: 2, KDim: 32, VDim: 32, Scale: 1}
	x = b.Add(x, b.AttendSinks(x, x, x, "attn_sinks", a))
	b.FFN()
	n := b.RMSNorm(x, "ffn_norm", 1e-5)
	both := n
	if shared {
		g := b.SwiGLU(b.Linear(n, "ffn_gate_shexp", ffn), b.Linear(n, "ffn_up_shexp", ffn))
		both = b.Linear(g, "ffn_down_shexp", width)
	}
	w := b.Route(b.Linear(n, "ffn_gate_inp", experts), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: used, Scale: 1})
	y := b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", ffn, used, ir.SiLU)
	x = b.Add(x, b.Add(y, both))
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p := bind(t, b)
	for r, w := range p.Weights {
		if w.Name == "blk.0.ffn_gate_inp.weight" || w.Name == "blk.0.ffn_up_exps.weight" {
			p.Types[r] = quant.F32
		}
	}
	return p
}

// TestScheduleExperts: the shared expert runs beside the router; the chosen ones take two phases. What they multiply
// is prepared in the route's last chain: the border costs no phase.
func TestScheduleExperts(t *testing.T) {
	_, alone := scheduleAll(routedLayer(t, false))
	require.Equal(t, `0 chain norm prepare
0 products linear
0 chain route prepare
1 experts expand
1 experts contract
1 chain experts add add
`, text(alone[2:4]))

	p := routedLayer(t, true)
	v, segments := scheduleAll(p)
	require.Equal(t, `0 chain embed
1 chain store
1 attended attend
1 chain add
2 chain norm prepare prepare
2 products linear linear linear
2 chain glu route prepare
2 products linear
3 experts expand
3 experts contract
3 chain experts add add
4 chain rows norm prepare
4 products linear
`, text(segments))
	c := backend.Config{KV: backend.KVF16, Blocks: slices.Repeat([]int{1}, len(p.Classes)), MaxRows: 7, MaxWanted: 3}
	apart(t, newLayout(p, v, segments, handed(p), c, true), c)
}

// TestDispatch: every slot is one row at one of its experts, slots of an expert lie together in the order of rows, and
// the chunks of a phase are all tiles of all experts that have rows, once.
func TestDispatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		experts := rapid.IntRange(1, 20).Draw(t, "experts")
		used := rapid.IntRange(1, min(experts, 5)).Draw(t, "used")
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		threads := rapid.IntRange(1, 4).Draw(t, "threads")
		matrix := kernels.Matrix{Type: quant.F32, Rows: 16 * rapid.IntRange(1, 70).Draw(t, "tiles"), Cols: 64}
		matrix.Data = make([]byte, 4*matrix.Rows*matrix.Cols)
		stack := make([]*kernels.Matrix, experts)
		for e := range stack {
			stack[e] = &matrix
		}
		m := &model{device: &device{pool: &pool{workers: make([]worker, threads-1)}}}
		m.dispatch = newDispatch(expertShape{experts: experts, used: used}, rows, threads)
		chunks := cap(m.dispatch.chunks)
		m.scratch = make([]float32, rows*experts)
		for r := range rows {
			for range used { // some fall on the same expert
				m.scratch[r*experts+rapid.IntRange(0, experts-1).Draw(t, "expert")] = 0.5
			}
		}
		at := place{stride: experts, width: experts}
		require.NoError(t, m.dispatch.sort(m, &at, rows, used))
		checkSlots(t, m, experts, used, rows)

		n := m.dispatch.divide(m, stack, stack)
		require.Equal(t, chunks, cap(m.dispatch.chunks), "chunks were allocated")
		done := make([]int, experts)
		for _, c := range m.dispatch.chunks[:n] {
			require.Equal(t, done[c.expert], c.from)
			require.Less(t, c.from, c.to)
			done[c.expert] = c.to
		}
		for e, to := range done {
			if from, end := m.dispatch.slots(e); from < end {
				require.Equal(t, matrix.Tiles(), to)
			} else {
				require.Zero(t, to)
			}
		}
	})
}

func checkSlots(t *rapid.T, m *model, experts, used, rows int) {
	next := make([]int, rows) // of the row's list
	for e := range experts {
		from, to := m.dispatch.slots(e)
		last := int32(-1)
		for slot := from; slot < to; slot++ {
			r := m.dispatch.row[slot]
			require.Greater(t, r, last)
			require.NotZero(t, m.scratch[int(r)*experts+e])
			require.EqualValues(t, slot, m.dispatch.slot[int(r)*used+next[r]])
			last = r
			next[r]++
		}
	}
	for r := range rows {
		n := 0
		for _, w := range m.scratch[r*experts:][:experts] {
			if w != 0 {
				n++
			}
		}
		require.Equal(t, n, next[r])
		for ; n < used; n++ {
			require.EqualValues(t, -1, m.dispatch.slot[r*used+n])
		}
	}
}

// TestTooManyExperts: a program whose weights choose more experts than it says is told, not run.
func TestTooManyExperts(t *testing.T) {
	m := &model{scratch: []float32{1, 1, 1}}
	m.dispatch = newDispatch(expertShape{experts: 3, used: 2}, 1, 1)
	err := m.dispatch.sort(m, &place{stride: 3, width: 3}, 1, 2)
	require.EqualError(t, err, "row 0 has 3 experts, want at most 2")
}

// TestOddExperts: experts whose rows do not fill tiles are refused by name.
func TestOddExperts(t *testing.T) {
	b := ir.NewBuilder("odd", func(string) bool { return false })
	x := b.Embed("token_embd", 100, 64)
	b.Layer(0)
	x = b.Scale(x, 2)
	b.FFN()
	w := b.Route(b.Slice(x, 0, 4), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 4, Scale: 1})
	b.Head(b.Rows(b.Experts(x, w, "gate", "up", "down", 24, 4, ir.SiLU)), "output", "token_embd")
	p := bind(t, b)
	for r := range p.Types {
		p.Types[r] = quant.F32
	}
	d, err := New(1, "")
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Compile(p, backend.Config{KV: backend.KVF32, Blocks: slices.Repeat([]int{1}, len(p.Classes)), MaxRows: 1})
	require.EqualError(t, err, "blk.0.gate.weight: matrices of 24 rows for each expert: want a multiple of 16\n"+
		"blk.0.up.weight: matrices of 24 rows for each expert: want a multiple of 16")
}
