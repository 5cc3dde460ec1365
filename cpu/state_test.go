package cpu_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// eachRecurrent runs a test with models whose layers go on from states.
func eachRecurrent(t *testing.T, test func(t *testing.T, m *backendtest.Model)) {
	for _, name := range []string{"mamba2", "lfm2", "qwen3next", "jamba", "rwkv6", "rwkv7", "kimi-linear", "kimi-k3",
		"bailingmoe3", "minimax-01", "qwen4exp", "deepseek4"} {
		t.Run(name, func(t *testing.T) {
			path := archtest.Specimen(t, name)
			if path == "" {
				path = filepath.Join(testref.Dir(t), "fixtures", name+".gguf")
			}
			test(t, archtest.Open(t, path, nil))
		})
	}
}

// Law NoAlloc, for states: neither a decode nor a prompt that passes borders of blocks allocates.
func TestNoAllocStates(t *testing.T) {
	eachRecurrent(t, func(t *testing.T, m *backendtest.Model) {
		const n = 3*backend.BlockSize + 9
		r := start(t, device(t, 2, ""), m, backend.KVF16, n, 150)
		r.fill(t, n-150)
		for _, rows := range []int{1, 3, 150} {
			r.at(n-150, rows, 1)
			require.Zero(t, allocated(t, r), "%d rows", rows)
		}
		require.NoError(t, r.Close())
	})
}

// Law Twin, for states: every set of kernels and any number of threads gives the same bits, over borders of blocks.
func TestTwinStates(t *testing.T) {
	eachRecurrent(t, func(t *testing.T, m *backendtest.Model) {
		const n = backend.BlockSize + 21
		var want []uint32
		for _, set := range kernels.Sets() {
			for threads := 1; threads <= 3; threads += 2 {
				r := start(t, device(t, threads, set.Name), m, backend.KVF16, n, n)
				got := logits(t, r, n, func() int { return 50 })
				require.NoError(t, r.Close())
				if want == nil {
					want = got
				}
				same(t, want, got, m.Vocab)
			}
		}
	})
}
