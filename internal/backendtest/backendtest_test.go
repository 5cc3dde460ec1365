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
			m, err := CaseModel(c)
			require.NoError(t, err, c.Name)
			require.True(t, has(m.Program, op), "case %s has no %s", c.Name, op)
		}
	}
}
