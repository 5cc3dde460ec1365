package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// TestLacks: what only the processor computes is known before a card is asked, and nothing else of these ops is.
func TestLacks(t *testing.T) {
	lacking := map[string]bool{"mul heads": true, "reglu": true, "exp": true, "softplus": true, "silu clipped": true,
		"clipped silu": true, "experts within": true, "experts situ": true, "experts situ, up as it is": true, "exceed": true, "exceed mean": true, "level": true, "level heads": true,
		"root": true, "affine heads": true, "conv spread": true, "token": true, "gram": true, "route neighbours": true}
	for _, op := range []ir.Op{ir.Mul, ir.GLU, ir.Experts, ir.Exceed, ir.Level, ir.RoPE, ir.Affine,
		ir.CausalConv, ir.Token, ir.Gram, ir.Route} {
		for _, c := range op.Cases() {
			m, err := backendtest.CaseModel(c)
			require.NoError(t, err)
			if err := plan.Lacks(m.Program); lacking[c.Name] {
				require.ErrorIs(t, err, plan.ErrNoKernel, c.Name)
			} else {
				require.NoError(t, err, c.Name)
			}
			delete(lacking, c.Name)
		}
	}
	require.Empty(t, lacking)
}
