package backendtest

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
)

// Embeddings compares the vectors of all rows with those of transformers, within factor times each fixture's tolerance;
// a text beside others must have the bits that it has alone.
func Embeddings(t *testing.T, d backend.Device, open Loader, factor float64) {
	dir := filepath.Join(testref.Dir(t), "fixtures")
	for _, name := range []string{"bert", "nomicbert", "qwen3emb"} {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, filepath.Join(dir, name+".json"))
			m := open(t, filepath.Join(dir, name+".gguf"), nil)
			require.NotEqual(t, ir.PoolNone, m.Pooling)
			f.Vocab = m.OutputWidth() // of the rows that are compared
			want := readFloats(t, filepath.Join(dir, name+".embd.f32"))
			require.Len(t, want, len(f.Tokens)*m.Width)
			got := Logits(t, d, m, f.Tokens)
			f.near(t, got, want, factor*f.Tolerance)
			Beside(t, d, m, f.Tokens, got)
		})
	}
}

// Beside runs a text between two others, and wants the rows that it has alone.
func Beside(t *testing.T, d backend.Device, m *Model, tokens []int32, alone []float32) {
	t.Helper()
	n, before := len(tokens), tokens[:len(tokens)/2]
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 64),
		MaxRows: 3 * n, MaxWanted: 3 * n}})
	all := l.step(t, rows{before, 0, table(n, 0)}, rows{tokens, 0, table(n, 20)}, rows{tokens[n/3:], 0, table(n, 40)})
	w := m.OutputWidth()
	sameBits(t, "beside others", w, all[len(before)*w:][:n*w], alone)
}

// BothWays compares texts of many blocks, whose rows see those after them, with the oracle.
func BothWays(t *testing.T, d, oracle backend.Device, sizes ...int) {
	bothWaysWithin(t, d, oracle, 0, 0, sizes...)
}

// WithinReach is BothWays where rows see so many positions on each side.
func WithinReach(t *testing.T, d, oracle backend.Device, sizes ...int) {
	for _, reach := range []int{1, 5, 63, 64, 100, 600} {
		t.Run(strconv.Itoa(reach), func(t *testing.T) { bothWaysWithin(t, d, oracle, reach, 0, sizes...) })
	}
}

// ByDistance is BothWays where scores have biases by distance.
func ByDistance(t *testing.T, d, oracle backend.Device, sizes ...int) {
	bothWaysWithin(t, d, oracle, 0, 32, sizes...)
}

func bothWaysWithin(t *testing.T, d, oracle backend.Device, reach, buckets int, sizes ...int) {
	for _, kvHeads := range []int{1, 4} {
		p, err := EncoderLayer(kvHeads, reach, buckets).Program(1024)
		require.NoError(t, err)
		m, err := made(judge.Random(p, 3, judge.All(quant.F32)))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(7, 8))
		for _, n := range sizes {
			tokens := make([]int32, n)
			for i := range tokens {
				tokens[i] = rng.Int32N(50)
			}
			want := bothWays(t, oracle, m, tokens)
			got := bothWays(t, d, m, tokens)
			worst, at := distance(got, want)
			require.LessOrEqualf(t, worst, 1e-4, "%d rows, %d KV heads: row %d", n, kvHeads, at/64)
			Beside(t, d, m, tokens, got)
		}
	}
}

func bothWays(t *testing.T, d backend.Device, m *Model, tokens []int32) []float32 {
	n := len(tokens)
	blocks := (n + backend.BlockSize - 1) / backend.BlockSize
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, blocks),
		MaxRows: n, MaxWanted: n}})
	return l.step(t, rows{tokens, 0, table(n, 0)})
}
