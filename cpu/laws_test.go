package cpu_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// toy is a small model of two layers: one sees all positions, one a window. Its matrices have the given type; the
// embedding is tied.
func toy(t testing.TB, typ quant.Type, window int) *backendtest.Model {
	t.Helper()
	return toyOf(t, typ, window, 16)
}

// toyOf has heads of so many features.
func toyOf(t testing.TB, typ quant.Type, window, dim int) *backendtest.Model {
	t.Helper()
	const vocab, width, ffn = 300, 64, 96
	b := ir.NewBuilder("toy", func(string) bool { return false })
	freq := make([]float64, dim/2)
	for i := range freq {
		freq[i] = math.Pow(10000, -float64(i)/float64(len(freq)))
	}
	rope := ir.RoPEArgs{HeadDim: dim, Dims: dim, Freq: freq, Mscale: 1}
	x := b.Embed("token_embd", vocab, width)
	for l := range 2 {
		const kvHeads = 14 // on one thread several for a chunk of attention, and some are left
		heads := kvHeads * (l + 1)
		a := ir.AttendArgs{Heads: heads, KVHeads: kvHeads, KDim: dim, VDim: dim, Scale: 0.4, Window: window * l}
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q, k := b.Linear(n, "attn_q", heads*dim), b.Linear(n, "attn_k", kvHeads*dim)
		o := b.Attend(b.Rope(q, rope, ""), b.Rope(k, rope, ""), b.Linear(n, "attn_v", kvHeads*dim), a)
		x = b.Add(x, b.Linear(o, "attn_output", width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		x = b.Add(x, b.Linear(b.SwiGLU(b.Linear(n, "ffn_gate", ffn), b.Linear(n, "ffn_up", ffn)), "ffn_down", width))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p, err := b.Program(1 << 14)
	require.NoError(t, err)
	return random(t, p, typ)
}

// random binds a program to normal random weights: matrices of the type, vectors in float32.
func random(t testing.TB, p *ir.Program, typ quant.Type) *backendtest.Model {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 12))
	var tensors []ir.Tensor
	var data [][]byte
	for _, w := range p.Weights {
		tensor := ir.Tensor{Name: w.Name, Type: typ, Shape: w.Shape()}
		if w.Use == ir.Vector {
			tensor.Type = quant.F32
		}
		values := make([]float32, w.Rows*w.Cols)
		for i := range values {
			values[i] = float32(r.NormFloat64() / 4)
		}
		size, err := tensor.Type.RowBytes(len(values))
		require.NoError(t, err)
		bytes := make([]byte, size)
		require.NoError(t, quant.Quantize(tensor.Type, bytes, values))
		tensors, data = append(tensors, tensor), append(data, bytes)
	}
	m, err := backendtest.NewModel(p, tensors, func(i int, use func([]byte) error) error { return use(data[i]) })
	require.NoError(t, err)
	return m
}

// device is closed with the test.
func device(t testing.TB, threads int, force string) backend.Device {
	t.Helper()
	d, err := cpu.New(threads, force)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// logits runs n positions in chunks whose sizes next gives, and returns the bits of all logits.
func logits(t rapid.TB, r *running, n int, next func() int) []uint32 {
	t.Helper()
	var all []uint32
	for pos := 0; pos < n; {
		rows := min(next(), n-pos)
		r.at(pos, rows, rows)
		require.NoError(t, r.run())
		for _, v := range r.step.Logits[:rows*r.vocab] {
			all = append(all, math.Float32bits(v))
		}
		pos += rows
	}
	return all
}

// positions is long enough for three stretches of attention, so that single rows are split over workers.
const positions = 1100

// mixed is a cache of one type for K and another for V.
func mixed(t *testing.T, k, v string) backend.KV {
	t.Helper()
	kv, err := backend.MixKV(k, v)
	require.NoError(t, err)
	return kv
}

// TestChunkFree: any chunks and numbers of threads give the same bits, over several stretches.
func TestChunkFree(t *testing.T) {
	for _, kv := range []backend.KV{backend.KVF16, backend.KVF32, backend.KVQ8, mixed(t, "q8", "f16")} {
		for _, window := range []int{1, 600} {
			m := toy(t, quant.Q8_0, window)
			whole := start(t, device(t, 1, ""), m, kv, positions, positions)
			want := logits(t, whole, positions, func() int { return positions })
			require.NoError(t, whole.Close())
			for _, threads := range []int{1, 2, 3} {
				r := start(t, device(t, threads, ""), m, kv, positions, 200)
				for seed := range uint64(2) {
					rng := rand.New(rand.NewPCG(seed, uint64(threads)))
					sizes := []int{1, 1, 2, 3, 17, 31, 63, 64, 65, 200}
					got := logits(t, r, positions, func() int { return sizes[rng.IntN(len(sizes))] })
					same(t, want, got, m.Vocab)
				}
				require.NoError(t, r.Close())
			}
		}
	}
}

// TestEndOfCache: what is fetched ahead at the last position of the last block is not beyond the cache.
func TestEndOfCache(t *testing.T) {
	for _, kv := range []backend.KV{backend.KVF16, backend.KVF32, backend.KVQ8} {
		for _, window := range []int{1, 600} {
			r := start(t, device(t, 1, ""), toyOf(t, quant.Q8_0, window, 96), kv, backend.BlockSize, backend.BlockSize)
			for _, rows := range []int{1, 3, backend.BlockSize} {
				logits(t, r, backend.BlockSize, func() int { return rows })
			}
			require.NoError(t, r.Close())
		}
	}
}

// TestOracleOverStretches: attention over several stretches, split and not, is that of the plain loops.
func TestOracleOverStretches(t *testing.T) {
	m := toy(t, quant.F32, 600)
	oracle := start(t, device(t, 0, "ref"), m, backend.KVF32, positions, positions)
	defer oracle.Close()
	want := logits(t, oracle, positions, func() int { return positions })
	for _, rows := range []int{1, positions} {
		r := start(t, device(t, 2, ""), m, backend.KVF32, positions, positions)
		for i, got := range logits(t, r, positions, func() int { return rows }) {
			require.InDelta(t, math.Float32frombits(want[i]), math.Float32frombits(got), 1e-3)
		}
		require.NoError(t, r.Close())
	}
}

// TestRowAlone: three sequences in one step, two of them split over workers, give what each gives alone.
func TestRowAlone(t *testing.T) {
	m := toy(t, quant.Q8_0, 600)
	lengths := []int{1030, 5, 700}
	together := start(t, device(t, 3, ""), m, backend.KVF16, 2000, 1030)
	defer together.Close()
	var tables [3][]int32
	next := int32(0)
	for i, n := range lengths {
		for range n/backend.BlockSize + 1 {
			tables[i] = append(tables[i], next)
			next++
		}
		together.table = tables[i]
		logits(t, together, n, func() int { return 1030 })
	}
	step := backend.Step{Logits: make([]float32, 5*m.Vocab), Wanted: []int32{0, 1, 2, 3, 4}}
	for i, n := range lengths { // two rows of the first and the last
		span := backend.Span{Row: len(step.Tokens), Rows: 1 + (i+1)%2, Pos: n}
		span.Tables = backendtest.Tables(m.Program, tables[i])
		step.Spans = append(step.Spans, span)
		for j := range span.Rows {
			step.Tokens = append(step.Tokens, token(n+j, m.Vocab))
		}
	}
	for i := range m.Segments {
		require.NoError(t, backend.Enqueue(together, i, &step))
	}
	for i, n := range lengths {
		alone := start(t, device(t, 1, ""), m, backend.KVF16, n+2, n+2)
		rows := step.Spans[i].Rows
		all := logits(t, alone, n+rows, func() int { return n + rows })
		from := step.Spans[i].Row * m.Vocab
		var got []uint32
		for _, v := range step.Logits[from : from+rows*m.Vocab] {
			got = append(got, math.Float32bits(v))
		}
		same(t, all[n*m.Vocab:], got, m.Vocab)
		require.NoError(t, alone.Close())
	}
}

// TestTwin: every set of kernels gives the bits of plain Go, for a whole model of K-quants.
func TestTwin(t *testing.T) {
	const n = 12
	m := openMini(t)
	var want []uint32
	for _, set := range kernels.Sets() {
		r := start(t, device(t, 2, set.Name), m, backend.KVF16, n, n)
		got := logits(t, r, n, func() int { return 5 })
		require.NoError(t, r.Close())
		if want == nil {
			want = got
		}
		same(t, want, got, m.Vocab)
	}
}

// TestNoAlloc: a step allocates nothing, be it a decode, whose attention is split, or a prefill.
func TestNoAlloc(t *testing.T) {
	for _, c := range []struct {
		kv    backend.KV
		model *backendtest.Model
	}{
		{backend.KVF16, toy(t, quant.Q8_0, 600)}, {backend.KVF32, toy(t, quant.F32, 1)}, {backend.KVQ8, toy(t, quant.Q8_0, 1)},
	} {
		r := start(t, device(t, 2, ""), c.model, c.kv, positions, 100)
		r.fill(t, positions-100)
		for _, rows := range []int{1, 3, 100} {
			r.at(positions-100, rows, 1)
			require.Zero(t, allocated(t, r), "%d rows, %s", rows, c.kv)
		}
		require.NoError(t, r.Close())
	}
}

// allocated is what each step allocates. The runtime allocates a little whenever it starts a thread, which on a busy
// machine can add up to one allocation per step; it does so once, and steps do it each time.
func allocated(t *testing.T, r *running) (n float64) {
	for range 5 {
		n = testing.AllocsPerRun(20, func() {
			if err := r.run(); err != nil {
				t.Error(err)
			}
		})
		if n == 0 {
			break
		}
	}
	return n
}

// TestBrokenNumbersAreNamed: weights that give NaN end a step with an error that says where, and spoil no later step.
func TestBrokenNumbersAreNamed(t *testing.T) {
	m := toy(t, quant.F32, 1)
	r := start(t, device(t, 2, ""), m, backend.KVF16, 64, 8)
	defer r.Close()
	for ref, w := range m.Program.Weights {
		good := m.Weights[ref]
		bad := slices.Clone(good)
		copy(bad, []byte{0, 0, 0xc0, 0x7f}) // the first value is NaN
		require.NoError(t, r.Upload(ir.Ref(ref), 0, bad))
		r.at(0, 8, 8)
		r.step.Tokens[3] = 0 // the row of a broken embedding
		err := r.run()
		require.Error(t, err, w.Name)
		require.Regexp(t, `^(mix|ffn|head)( \d)?: row \d: .*(is NaN|are not finite)`, err.Error(), w.Name)
		require.NoError(t, r.Upload(ir.Ref(ref), 0, good))
		require.NoError(t, r.run(), w.Name)
	}
}

// TestHalfCacheOverflow: K and V that a half cannot hold are an error that says what to do.
func TestHalfCacheOverflow(t *testing.T) {
	m := toy(t, quant.F32, 1)
	for ref, w := range m.Program.Weights {
		if w.Name != "blk.0.attn_v.weight" {
			continue
		}
		values := make([]float32, w.Rows*w.Cols)
		for i := range values {
			values[i] = 1e5
		}
		require.NoError(t, quant.Quantize(quant.F32, m.Weights[ref], values))
	}
	r := start(t, device(t, 1, ""), m, backend.KVF16, 64, 8)
	defer r.Close()
	r.at(0, 1, 1)
	require.ErrorContains(t, r.run(), "a half holds at most 65504: keep the cache in f32")
}

func same(t rapid.TB, want, got []uint32, width int) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("position %d, logit %d: %v, want %v", i/width, i%width, math.Float32frombits(got[i]),
				math.Float32frombits(want[i]))
		}
	}
}
