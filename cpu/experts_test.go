package cpu_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// mixture is a small model of two layers with 12 experts, of which a row uses 3.
func mixture(t testing.TB, typ quant.Type) *backendtest.Model {
	t.Helper()
	const vocab, width, experts, used, ffn = 300, 64, 12, 3, 96
	b := ir.NewBuilder("mixture", func(string) bool { return false })
	x := b.Embed("token_embd", vocab, width)
	for l := range 2 {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		a := ir.AttendArgs{Heads: 4, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.4}
		x = b.Add(x, b.AttendSinks(n, b.Slice(n, 0, 32), b.Slice(n, 32, 32), "attn_sinks", a))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		w := b.Route(b.Linear(n, "ffn_gate_inp", experts), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: used, Scale: 1})
		x = b.Add(x, b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", ffn, used, ir.SiLU))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p, err := b.Program(1 << 14)
	require.NoError(t, err)
	return random(t, p, typ)
}

// TestExpertsChunkFree: rows gathered by expert have the bits that they have alone, however they are gathered and
// whichever workers multiply them. One chunk is larger than what a worker gathers at once.
func TestExpertsChunkFree(t *testing.T) {
	const n = 700
	for _, typ := range []quant.Type{quant.Q8_0, quant.F32} {
		m := mixture(t, typ)
		whole := start(t, device(t, 1, ""), m, backend.KVF16, n, n)
		want := logits(t, whole, n, func() int { return n })
		require.NoError(t, whole.Close())
		for _, threads := range []int{1, 2, 3} {
			r := start(t, device(t, threads, ""), m, backend.KVF16, n, n)
			rng := rand.New(rand.NewPCG(1, uint64(threads)))
			sizes := []int{1, 2, 5, 31, 64, 400}
			same(t, want, logits(t, r, n, func() int { return sizes[rng.IntN(len(sizes))] }), m.Vocab)
			require.NoError(t, r.Close())
		}
	}
}

func TestExpertsNoAlloc(t *testing.T) {
	for _, typ := range []quant.Type{quant.Q8_0, quant.F32} {
		r := start(t, device(t, 2, ""), mixture(t, typ), backend.KVF16, 100, 100)
		for _, rows := range []int{1, 3, 100} {
			r.at(0, rows, 1)
			require.Zero(t, allocated(t, r), "%d rows", rows)
		}
		require.NoError(t, r.Close())
	}
}

// TestExpertsTwin: every set of kernels gives the bits of plain Go, for a trained mixture in K-quants.
func TestExpertsTwin(t *testing.T) {
	const n = 6
	m := archtest.Open(t, filepath.Join(testref.Dir(t), "models", "moe-Q4_K_M.gguf"), nil)
	var want []uint32
	for _, set := range kernels.Sets() {
		r := start(t, device(t, 2, set.Name), m, backend.KVF16, n, n)
		got := logits(t, r, n, func() int { return 4 })
		require.NoError(t, r.Close())
		if want == nil {
			want = got
		}
		same(t, want, got, m.Vocab)
	}
}

// TestExpertsBrokenNumbersAreNamed: a NaN in any matrix of an expert ends the step with an error that says where.
func TestExpertsBrokenNumbersAreNamed(t *testing.T) {
	m := mixture(t, quant.F32)
	r := start(t, device(t, 2, ""), m, backend.KVF16, 64, 64)
	defer r.Close()
	r.at(0, 64, 64)
	for ref, w := range m.Program.Weights {
		if w.Experts == 0 && w.Name != "blk.0.ffn_gate_inp.weight" {
			continue
		}
		bad := make([]float32, w.Rows*w.Cols)
		for i := range bad {
			bad[i] = float32(math.NaN())
		}
		data := make([]byte, 4*len(bad))
		require.NoError(t, quant.Quantize(quant.F32, data, bad))
		require.NoError(t, r.Upload(ir.Ref(ref), 0, data))
		require.ErrorContains(t, r.run(), "NaN", w.Name)
		require.NoError(t, r.Upload(ir.Ref(ref), 0, m.Weights[ref]))
		require.NoError(t, r.run(), w.Name)
	}
}
