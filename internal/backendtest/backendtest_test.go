package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

// TestEveryOp fails when an Op is added without a case.
func TestEveryOp(t *testing.T) {
	for _, op := range ir.Ops() {
		require.NotEmpty(t, op.Cases(), "no case for %s: it belongs to the op's file in internal/ir", op)
		for _, c := range op.Cases() {
			p, err := around(128, func(b *ir.Builder, x ir.Value) ir.Value { return c.Build(b, x, 128) })
			require.NoError(t, err, c.Name)
			require.True(t, has(p, op), "case %s has no %s", c.Name, op)
		}
	}
}
