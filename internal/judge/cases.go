package judge

import (
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// CaseWidth is the width of an op's input in its cases, and the vocabulary.
const CaseWidth = 128

// OfCase makes a model around a case of an op, with random weights in float32.
func OfCase(c ir.Case) (*Model, error) {
	p, err := Around(CaseWidth, func(b *ir.Builder, x ir.Value) ir.Value { return c.Build(b, x, CaseWidth) })
	if err != nil {
		return nil, err
	}
	return Random(p, 3, All(quant.F32))
}

// Around records a program that computes op, which may open segments of layer 0, between an embedding and logits.
// Values pass unchanged but for a factor of a half and one of two. Vocabulary and width are both n, and so must be the
// width of op's result.
func Around(n int, op func(b *ir.Builder, x ir.Value) ir.Value) (*ir.Program, error) {
	b := ir.NewBuilder("op", func(string) bool { return true })
	x := b.Embed("token_embd", n, n)
	b.Layer(0)
	x = op(b, x)
	b.Layer(1)
	b.FFN()
	x = b.Scale(x, 0.5)
	b.Logits(b.Scale(b.Rows(x), 2))
	return b.Program(1 << 10)
}

// OpBound is how far a device may be from what the oracle has of an op in float32.
func OpBound(want float32) float64 { return 2e-5 * (1 + math.Abs(float64(want))) }

// Product records logits = W·x, with x of cols features straight from the embedding, and makes random weights for it.
func Product(typ quant.Type, vocab, cols int) (*Model, error) {
	b := ir.NewBuilder("product", func(name string) bool { return name == "output.weight" })
	b.Head(b.Rows(b.Embed("token_embd", vocab, cols)), "output", "")
	p, err := b.Program(1 << 10)
	if err != nil {
		return nil, err
	}
	return Random(p, 6, Matrices(typ))
}

// ProductBounds returns how far a device may be from the oracle in each of the logits of a Product.
func ProductBounds(m *Model, typ quant.Type, tokens []int32) (func(i int) float64, error) {
	table, err := m.Decode(0)
	if err != nil {
		return nil, err
	}
	weights, err := m.Decode(1)
	if err != nil {
		return nil, err
	}
	cols, vocab := m.Program.Weights[0].Cols, m.Vocab
	return func(i int) float64 {
		return productBound(typ, weights[i%vocab*cols:][:cols], table[int(tokens[i/vocab])*cols:][:cols])
	}, nil
}

// productBound: a device may quantise activations to int8 in the type's blocks, rounded to nearest: that explains a
// difference of Σ_blocks amax/254 · Σ|w|, and float32 sums a little more.
func productBound(typ quant.Type, w, x []float32) float64 {
	bound, sum := 0.0, 0.0
	for i := range x {
		sum += math.Abs(float64(w[i]) * float64(x[i]))
	}
	if n := typ.Block(); n > 1 {
		for at := 0; at < len(x); at += n {
			amax, weight := 0.0, 0.0
			for i := at; i < at+n; i++ {
				amax = math.Max(amax, math.Abs(float64(x[i])))
				weight += math.Abs(float64(w[i]))
			}
			bound += amax / 254 * weight
		}
	}
	return 1.01*bound + 1e-5*sum + 1e-6
}

// Heads is a shape of attention that models have: sizes of heads, and query heads for each KV head.
type Heads struct {
	Dim, KVHeads, Group, Window, SoftCap int
	Sinks                                bool
}

// AllHeads are the shapes that devices are compared with.
func AllHeads() []Heads {
	return []Heads{
		{Dim: 64, KVHeads: 3, Group: 1},
		{Dim: 64, KVHeads: 1, Group: 8, Window: 70},
		{Dim: 80, KVHeads: 2, Group: 2},
		{Dim: 96, KVHeads: 1, Group: 3, SoftCap: 5},
		{Dim: 128, KVHeads: 2, Group: 4},
		{Dim: 64, KVHeads: 2, Group: 8, Window: 128, Sinks: true},
		{Dim: 128, KVHeads: 1, Group: 3, Window: 3},
		{Dim: 256, KVHeads: 1, Group: 2, Window: 100, SoftCap: 20},
	}
}

// Width is the width of what attends, and the vocabulary of Attention.
func (h Heads) Width() int { return h.KVHeads * h.Group * h.Dim }

// Attention makes a model that attends in a shape.
func Attention(h Heads) (*Model, error) {
	a := ir.AttendArgs{
		Heads: h.KVHeads * h.Group, KVHeads: h.KVHeads, KDim: h.Dim, VDim: h.Dim,
		Scale: float32(2 / math.Sqrt(float64(h.Dim))), Window: h.Window, SoftCap: float32(h.SoftCap),
	}
	p, err := Around(h.Width(), func(b *ir.Builder, x ir.Value) ir.Value {
		if h.Sinks {
			kv := h.KVHeads * h.Dim
			return b.AttendSinks(x, b.Slice(x, h.Width()-kv, kv), b.Slice(x, 0, kv), "sinks", a)
		}
		return ir.CaseAttend(b, x, a)
	})
	if err != nil {
		return nil, err
	}
	return Random(p, 3, All(quant.F32))
}

// AttentionBound returns how far a device may be from the oracle, which rounds to the same types of caches. A device
// that also rounds what is multiplied with halves may differ by what that explains: 2^-12 of a weight, and the error of
// its score, which is a sum of products with that error each.
func AttentionBound(d backend.Device, kv backend.KV) func(want float32) float64 {
	tolerance := 2e-5
	if kv.Format == backend.KVF16.Format && d.Traits().Halves {
		tolerance = 1.0 / 512
	}
	return func(want float32) float64 { return tolerance * (1 + math.Abs(float64(want))) }
}
