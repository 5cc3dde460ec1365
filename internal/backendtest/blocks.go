package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Blockwise moves the blocks of a sequence: out to memory and back into other blocks, while the old ones are
// overwritten, and from one block to another. Afterwards the sequence must go on with the same bits.
func Blockwise(t *testing.T, d backend.Device, formats ...backend.KV) {
	for _, f := range models {
		if f.name != "gemma" && f.name != "hybrid" { // a class with a window beside one without, and one of states
			continue
		}
		for _, kv := range formats {
			t.Run(f.name+" "+kv.String(), func(t *testing.T) {
				p, err := f.record(small{layers: 2, width: 32, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 16, used: 3})
				require.NoError(t, err)
				m, err := randomModel(p, 9, all(quant.F32))
				require.NoError(t, err)
				n := 2*backend.BlockSize + 5
				c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(p, lawBlocks), MaxRows: n, MaxWanted: n}}
				w := &lawful{loaded: load(t, d, m, c), tokens: prompt(10, n, m.Vocab)}
				w.want = w.sequence(t, w.tokens, table(n, 0), n)
				w.moved(t, len(p.Classes))
				w.refused(t, len(p.Classes))
			})
		}
	}
}

// moved computes all but three rows in some blocks, and the three in copies of these blocks or in blocks that they were
// moved to.
func (w *lawful) moved(t *testing.T, classes int) {
	n, v, from := len(w.tokens), w.m.OutputWidth(), []int32{4, 3, 2}
	w.step(t, rows{w.tokens[:n-3], 0, from})
	for i, b := range from {
		for class := range classes {
			require.NoError(t, w.CopyBlock(class, int32(9+i), b))
			kept := make([]byte, w.BlockBytes(class))
			require.NotEmpty(t, kept)
			require.NoError(t, w.ReadBlock(class, b, kept))
			require.NoError(t, w.WriteBlock(class, b, make([]byte, len(kept))))
			require.NoError(t, w.WriteBlock(class, int32(6+i), kept))
			again := make([]byte, len(kept))
			require.NoError(t, w.ReadBlock(class, int32(6+i), again))
			require.Equal(t, kept, again)
		}
	}
	for what, to := range map[string][]int32{"written": {6, 7, 8}, "copied": {9, 10, 11}} {
		sameBits(t, what, v, w.step(t, rows{w.tokens[n-3:], n - 3, to}), w.want[(n-3)*v:])
	}
	w.step(t, rows{prompt(12, 5, w.m.Vocab), 0, from[:1]}) // blocks that were moved out hold another sequence
}

// refused checks that blocks and sizes that do not exist are refused.
func (w *lawful) refused(t *testing.T, classes int) {
	some := make([]byte, w.BlockBytes(0))
	require.ErrorContains(t, w.ReadBlock(classes, 0, some), "cache class")
	require.ErrorContains(t, w.ReadBlock(-1, 0, some), "cache class")
	require.ErrorContains(t, w.WriteBlock(0, lawBlocks, some), "block 12 of cache class 0, which has 12")
	require.ErrorContains(t, w.ReadBlock(0, -1, some), "block -1")
	require.ErrorContains(t, w.CopyBlock(0, 0, lawBlocks), "block 12")
	require.ErrorContains(t, w.CopyBlock(classes, 0, 0), "cache class")
	require.ErrorContains(t, w.ReadBlock(0, 0, some[1:]), "bytes for a block of cache class 0")
}
