package ref_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func TestFixtures(t *testing.T) { backendtest.Fixtures(t, ref.New(), archtest.Open, 1) }

func TestEmbeddings(t *testing.T) { backendtest.Embeddings(t, ref.New(), archtest.Open, 1) }

// TestEmbeddedModel runs one recorded answer of a trained model in K-quants.
func TestEmbeddedModel(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	backendtest.Golden(t, ref.New(), archtest.Model(t, f), "mini-Q4_K_M", 0.15, "chat-capital")
}
