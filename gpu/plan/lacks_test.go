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
	lacking := map[string]bool{"affine heads": true, "attend alibi": true, "attend buckets": true,
		"attend every": true, "attend far apart": true, "attend sums": true, "attend sums with sinks": true,
		"attend what was heard": true, "attend what was said": true,
		"balance": true, "clipped silu": true, "compress": true, "compress overlapping": true, "conv spread": true,
		"exceed": true, "exceed mean": true, "exp": true, "experts situ": true, "experts situ, up as it is": true,
		"experts within": true, "gram": true, "level": true, "level heads": true, "mul heads": true, "reglu": true,
		"root": true, "rope shifted": true, "route neighbours": true, "route roots": true, "route told": true,
		"silu clipped": true, "softplus": true, "token": true}
	for _, op := range []ir.Op{ir.Mul, ir.GLU, ir.Experts, ir.Exceed, ir.Level, ir.RoPE, ir.Affine,
		ir.CausalConv, ir.Token, ir.Gram, ir.Route, ir.Attend, ir.Compress, ir.Balance} {
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
