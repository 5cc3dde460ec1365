package measure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/storage/store"
)

// Every suggestion can be pulled by its name, and has a shape; the smallest comes first.
func TestSuggestions(t *testing.T) {
	published := map[string]int64{ // bytes of the files on the Hub, with metadata and vocabulary
		"smollm3-3b": 1_915_305_312, "gpt-oss-120b": 63_387_346_208,
	}
	var before int64
	for _, g := range suggestions {
		n, err := store.ParseName(g.pull)
		require.NoError(t, err, g.pull)
		require.Equal(t, store.HuggingFace, n.Host)
		require.Contains(t, []string{"", g.quant}, n.Tag, g.pull)
		config, err := synth.Find(g.shape)
		require.NoError(t, err)
		recipe, ok := ftype.Find(g.quant)
		require.True(t, ok, g.quant)
		m, err := models.ShapedOf(g.shape, config, recipe)
		require.NoError(t, err, g.shape)
		require.Greater(t, m.Bytes, before, g.shape)
		before = m.Bytes
		require.Equal(t, config.Experts+config.LocalExpert == 0, m.Active == m.Parameters, g.shape)
		if real := published[g.shape]; real > 0 {
			require.InEpsilon(t, real, m.Bytes, 0.006, g.shape)
		}
	}
}
