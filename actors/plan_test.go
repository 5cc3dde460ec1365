package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// The plan of the KV cache for a model of one layer with 2 heads of 64: 32 KiB a block in f16.
func TestPlanKV(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name        string
		cfg         Config
		seqs        int
		available   int64
		ctx, blocks int
		err         string
	}{
		{name: "one sequence gets the trained context", seqs: 1, available: 1024 * mib, ctx: 4096, blocks: 64},
		{name: "several get room for four", seqs: 8, available: 1024 * mib, ctx: 4096, blocks: 256},
		{name: "little memory, a shorter context", seqs: 8, available: 4 * mib, ctx: 2048, blocks: 32},
		{name: "hardly any memory, but it runs", seqs: 1, available: mib / 2, ctx: 512, blocks: 8},
		{name: "what is asked for may take all", cfg: Config{Context: 8000}, seqs: 1, available: 4 * mib, ctx: 8000, blocks: 125},
		{name: "and no more", cfg: Config{Context: 100_000}, seqs: 1, available: 4 * mib,
			err: "a context of 100000 tokens needs a KV cache of 48 MiB with what else was asked for, 4 MiB are available: " +
				"ask for a context of at most 8192 tokens"},
		{name: "blocks count too", cfg: Config{Context: 640, Blocks: 1000}, seqs: 1, available: 4 * mib,
			err: "a context of 640 tokens needs a KV cache of 31 MiB with what else was asked for, 4 MiB are available: " +
				"ask for a context of at most 64 tokens"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := &core{bound: &ir.Bound{Program: &ir.Program{
				Context: 4096, KV: []ir.KVLayer{{KVHeads: 2, KDim: 64, VDim: 64}}, Classes: []ir.Class{{}},
			}}}
			k.layout.KV = backend.KVF16
			err := k.planKV(&test.cfg, test.seqs, test.available)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.ctx, k.ctx)
			require.Equal(t, []int{test.blocks}, k.layout.Blocks)
		})
	}
}
