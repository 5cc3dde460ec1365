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
		stack := &stack{}
		for e := range experts {
			stack.w, stack.groups = append(stack.w, &matrix), append(stack.groups, e)
		}
		m := &execution{device: &device{pool: &pool{workers: make([]worker, threads-1)}}}
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

func checkSlots(t *rapid.T, m *execution, experts, used, rows int) {
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
	m := &execution{scratch: []float32{1, 1, 1}}
	m.dispatch = newDispatch(expertShape{experts: 3, used: 2}, 1, 1)
	err := m.dispatch.sort(m, &place{stride: 3, width: 3}, 1, 2)
	require.EqualError(t, err, "row 0 has 3 experts, want at most 2")
}

// TestOddExperts: experts whose rows do not fill tiles are refused by name.
func TestOddExperts(t *testing.T) {
	oddExperts(t, "gate", "up", "blk.0.gate.weight: matrices of 24 rows for each expert: want a multiple of 16\n"+
		"blk.0.up.weight: matrices of 24 rows for each expert: want a multiple of 16")
	oddExperts(t, "both", "both", "blk.0.both.weight: two matrices of 24 rows for each expert: want a multiple of 16")
}

func oddExperts(t *testing.T, gate, up, want string) {
	t.Helper()
	b := ir.NewBuilder("odd", func(string) bool { return false })
	x := b.Embed("token_embd", 100, 64)
	b.Layer(0)
	x = b.Scale(x, 2)
	b.FFN()
	w := b.Route(b.Slice(x, 0, 4), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 4, Scale: 1})
	b.Head(b.Rows(b.Experts(x, w, gate, up, "down", 24, 4, ir.SiLU)), "output", "token_embd")
	p := bind(t, b)
	for r := range p.Types {
		p.Types[r] = quant.F32
	}
	d, err := New(1, "")
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Compile(p, backend.Config{Limits: backend.Limits{KV: backend.KVF32,
		Blocks: slices.Repeat([]int{1}, len(p.Classes)), MaxRows: 1}})
	require.EqualError(t, err, want)
}
