package backendtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/judge"
)

// Attention compares every shape with the oracle in every type of cache.
func Attention(t *testing.T, d, oracle backend.Device) {
	const n = 2*backend.BlockSize + 9
	for _, h := range judge.AllHeads() {
		m, err := made(judge.Attention(h))
		require.NoError(t, err)
		for _, kv := range []backend.KV{backend.KVF32, backend.KVF16, backend.KVQ8} {
			t.Run(fmt.Sprintf("%+v %s", h, kv), func(t *testing.T) {
				got, want := both(t, d, oracle, m, kv, prompt(4, n, h.Width()))
				bound := judge.AttentionBound(d, kv)
				for i := range got {
					near(t, got, want, i, h.Width(), bound(want[i]))
				}
			})
		}
	}
}
