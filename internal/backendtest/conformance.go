package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Conformance compares d with the oracle, and checks the laws on it, with matrices of the given types.
func Conformance(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	t.Run("Ops", func(t *testing.T) { ops(t, d, oracle, nil) })
	t.Run("Attention", func(t *testing.T) { Attention(t, d, oracle) })
	t.Run("Types", func(t *testing.T) { Products(t, d, oracle, matrixTypes) })
	t.Run("Models", func(t *testing.T) { wholeModels(t, d, oracle, matrixTypes) })
	t.Run("Heads", func(t *testing.T) { Heads(t, d, oracle) })
	t.Run("Pictures", func(t *testing.T) { Pictures(t, d, oracle) })
	heldToLaws(t, d, oracle, matrixTypes)
}

// Oracle checks the oracle as Conformance does a device, without the tests that would compare it with itself.
func Oracle(t *testing.T, oracle backend.Device, matrixTypes []quant.Type) {
	heldToLaws(t, oracle, oracle, matrixTypes)
}

// heldToLaws is the part of Conformance that finds faults of a device even if the oracle has the same ones.
func heldToLaws(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	t.Run("Orders", func(t *testing.T) { allOrders(t, d, oracle, matrixTypes) })
	t.Run("Adapters", func(t *testing.T) { Adapters(t, d, oracle) })
	t.Run("Inputs", func(t *testing.T) { inputs(t, d, oracle) })
	t.Run("Stored", func(t *testing.T) { stored(t, d, oracle) })
	t.Run("Laws", func(t *testing.T) { laws(t, d, matrixTypes) })
	if _, both := d.(split); !both { // whose programs are in parts, all of them
		t.Run("Parts", func(t *testing.T) { parts(t, d, matrixTypes) })
	}
	t.Run("Slots", func(t *testing.T) { Slots(t, d, matrixTypes) })
	t.Run("Windows", func(t *testing.T) { windows(t, d) })
	t.Run("Blocks", func(t *testing.T) { Blockwise(t, d, backend.KVF32, backend.KVF16, backend.KVQ8) })
	t.Run("Seals", func(t *testing.T) { Seals(t, d, oracle) })
	t.Run("Sealed", func(t *testing.T) { Sealed(t, d, oracle) })
	t.Run("Mixes", func(t *testing.T) { Mixes(t, d, oracle) })
	t.Run("Uploads", func(t *testing.T) { uploads(t, d, matrixTypes) })
	t.Run("Errors", func(t *testing.T) { Errors(t, d, matrixTypes) })
}

// Slice is Conformance for a device that takes seconds to compile a kernel: all ops except experts in float32; one
// mixture of one type whose groups share slots; adapters of one model; pictures; blocks that move; and refusals.
func Slice(t *testing.T, d, oracle backend.Device, typ quant.Type) {
	t.Run("Ops", func(t *testing.T) { ops(t, d, oracle, []ir.Op{ir.Experts}) })
	t.Run("Slots", func(t *testing.T) {
		p, err := mixtureLike(small{layers: 1, width: 32, ffn: 96, vocab: 300, heads: 2, kvHeads: 1, head: 16, used: 3})
		require.NoError(t, err)
		m, err := made(judge.Random(p, 31, judge.All(typ)))
		require.NoError(t, err)
		m.InSlots(t, d, 1)
	})
	t.Run("Adapters", func(t *testing.T) {
		adaptersOf(t, d, oracle, "llama", func(a *adaptable, t *testing.T) { a.rowsAlone(t, 3) })
	})
	t.Run("Pictures", func(t *testing.T) { Pictures(t, d, oracle) })
	t.Run("Blocks", func(t *testing.T) { Blockwise(t, d, backend.KVF32) })
	t.Run("Errors", func(t *testing.T) { Errors(t, d, []quant.Type{typ}) })
}

// prompt is n tokens below vocab.
func prompt(seed uint64, n, vocab int) []int32 {
	rng := rand.New(rand.NewPCG(seed, 2))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(rng.IntN(vocab))
	}
	return tokens
}

// ops compares every op on its own, except those in but.
func ops(t *testing.T, d, oracle backend.Device, but []ir.Op) {
	for _, op := range ir.Ops() {
		if !slices.Contains(but, op) {
			Op(t, d, oracle, op)
		}
	}
}

// Op compares an op in each of its cases, in float32, over more positions than a KV block holds.
func Op(t *testing.T, d, oracle backend.Device, op ir.Op) {
	const width, n = judge.CaseWidth, backend.BlockSize + 13
	require.NotEmpty(t, op.Cases(), "%s has no case", op)
	for _, c := range op.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			m, err := CaseModel(c)
			require.NoError(t, err)
			require.True(t, has(m.Program, op), "a case of %s without it", op)
			got, want := both(t, d, oracle, m, backend.KVF32, prompt(4, n, width))
			for i := range got {
				near(t, got, want, i, width, judge.OpBound(want[i]))
			}
		})
	}
}

// CaseModel is a model around a case of an op, with random weights in float32.
func CaseModel(c ir.Case) (*Model, error) { return made(judge.OfCase(c)) }

// has says whether a program has a node of an op.
func has(p *ir.Program, op ir.Op) bool {
	for s := range p.Segments {
		if slices.ContainsFunc(p.Segments[s].Nodes, func(n ir.Node) bool { return n.Op == op }) {
			return true
		}
	}
	return false
}

// both runs the tokens on the device and on the oracle, and returns the logits of either.
func both(t *testing.T, d, oracle backend.Device, m *Model, kv backend.KV, tokens []int32) (got, want []float32) {
	t.Helper()
	n := len(tokens)
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(m.Program, len(table(n, 0))), MaxRows: n,
		MaxWanted: n}}
	got = load(t, d, m, c).sequence(t, tokens, table(n, 0), n)
	want = load(t, oracle, m, c).sequence(t, tokens, table(n, 0), n)
	return got, want
}

func near(t testing.TB, got, want []float32, i, width int, tolerance float64) {
	t.Helper()
	if diff := math.Abs(float64(got[i]) - float64(want[i])); !(diff <= tolerance) {
		t.Fatalf("row %d, feature %d: %v, the oracle has %v: %.3g apart, want at most %.3g",
			i/width, i%width, got[i], want[i], diff, tolerance)
	}
}

// Products compares products with a matrix of each type that a device knows; Conformance has only some types of each
// kind.
func Products(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	const out, rows = 256, 17 // 256 is a block of K-quants
	for _, typ := range matrixTypes {
		for _, cols := range []int{256, 512} {
			t.Run(fmt.Sprintf("%s %d", typ, cols), func(t *testing.T) {
				m, err := made(judge.Product(typ, out, cols))
				require.NoError(t, err)
				got, want := both(t, d, oracle, m, backend.KVF32, prompt(5, rows, out))
				compareProducts(t, m, typ, got, want, prompt(5, rows, out))
			})
		}
	}
}

func compareProducts(t *testing.T, m *Model, typ quant.Type, got, want []float32, tokens []int32) {
	t.Helper()
	bound, err := judge.ProductBounds(m.Model, typ, tokens)
	require.NoError(t, err)
	for i := range got {
		near(t, got, want, i, m.Vocab, bound(i))
	}
}

// wholeModels compares models end to end. Errors of int8 activations add up over layers; with random weights they stay
// a few hundredths of the logits' size, where a wrong head, scale or mask makes tenths or more. No kernel depends on
// the types of both matrices and caches, so the first matrix type is tested with each cache, the others with one.
func wholeModels(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	s := small{layers: 2, width: 256, ffn: 256, vocab: 300, heads: 8, kvHeads: 2, head: 32}
	for _, f := range models {
		p, err := f.record(s)
		require.NoError(t, err)
		for i, typ := range matrixTypes {
			formats := []backend.KV{backend.KVF32, backend.KVF16, backend.KVQ8}
			if i > 0 {
				formats = formats[i%len(formats):][:1]
			}
			for _, kv := range formats {
				t.Run(fmt.Sprintf("%s %s %s", f.name, typ, kv), func(t *testing.T) {
					m, err := made(judge.Random(p, 7, judge.All(typ)))
					require.NoError(t, err)
					got, want := both(t, d, oracle, m, kv, prompt(8, 22, s.vocab))
					tolerance := 2e-4
					if typ.Block() > 1 {
						tolerance = 0.08
					}
					if kv.Format != backend.KVF32.Format {
						tolerance += 2e-3
					}
					require.LessOrEqual(t, judge.Relative(got, want), tolerance)
				})
			}
		}
	}
}
