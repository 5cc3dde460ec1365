package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
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
		require.True(t, covered[op], "no case for %s", op)
	}
}
