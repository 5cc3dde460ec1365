package backendtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestEveryOp fails when an Op is added without a case here.
func TestEveryOp(t *testing.T) {
	covered := map[ir.Op]bool{}
	for _, c := range opCases {
		p, err := around(128, func(b *ir.Builder, x ir.Value) ir.Value { return c.build(b, x, 128) })
		require.NoError(t, err, c.name)
		for _, s := range p.Segments {
			for _, n := range s.Nodes {
				covered[c.op] = covered[c.op] || n.Op == c.op
			}
		}
		require.True(t, covered[c.op], "case %s has no %s", c.name, c.op)
	}
	for _, op := range ir.Ops() {
		require.True(t, covered[op] || op == ir.Route || op == ir.Experts, "no case for %s", op)
	}
}

// TestEveryCodec fails when a decoder is added for which no random weights can be made, and checks that those of
// the others have about the size asked for.
func TestEveryCodec(t *testing.T) {
	makes := map[quant.Type]bool{}
	for _, typ := range codecs() {
		makes[typ] = true
		data, err := encode(rand.New(rand.NewPCG(1, 1)), typ, 16, 512, 0.5)
		require.NoError(t, err)
		x := make([]float32, 16*512)
		require.NoError(t, quant.Dequantize(typ, x, data))
		square := 0.0
		for _, v := range x {
			square += float64(v) * float64(v)
		}
		rms := math.Sqrt(square / float64(len(x)))
		require.InDelta(t, 0.5, rms, 0.3, "%s", typ)
	}
	for typ := range quant.Type(64) {
		require.Equal(t, quant.HasCodec(typ), makes[typ], "%s", typ)
	}
}
