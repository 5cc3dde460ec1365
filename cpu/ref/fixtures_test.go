package ref_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func TestFixtures(t *testing.T) { backendtest.Fixtures(t, ref.New(), archtest.Open, 1) }

func TestEmbeddings(t *testing.T) { backendtest.Embeddings(t, ref.New(), archtest.Open, 1) }

var update = flag.Bool("update", false, "compute the margins of recorded answers again, all of them, in a minute")

// TestMargins: those that other devices are measured by are the oracle's.
func TestMargins(t *testing.T) {
	const file = "../../" + testref.ExactFile
	all := map[string]map[string][]float64{}
	if !*update {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &all))
	}
	for _, name := range []string{"mini-Q4_K_M", "moe-Q4_K_M"} {
		m := archtest.Open(t, filepath.Join(testref.Dir(t), "models", name+".gguf"), nil)
		if *update {
			all[name] = backendtest.Margins(t, ref.New(), m, name)
			for _, margins := range all[name] {
				for i := range margins {
					margins[i] = math.Round(1e4*margins[i]) / 1e4
				}
			}
			continue
		}
		for prompt, margins := range backendtest.Margins(t, ref.New(), m, name, "chat-capital", "chat-turns") {
			require.InDeltaSlice(t, all[name][prompt], margins, 1e-3, "%s %s", name, prompt)
		}
	}
	if *update {
		text, err := json.Marshal(all)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
	}
}

// TestEmbeddedModel runs one recorded answer of a trained model in K-quants.
func TestEmbeddedModel(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	backendtest.Golden(t, ref.New(), archtest.Model(t, f), "mini-Q4_K_M", (*testref.Answer).Sure, "chat-capital")
}
