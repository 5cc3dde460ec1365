package backendtest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/judge"
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
				m, err := made(judge.Random(p, 9, judge.All(quant.F32)))
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
			require.NoError(t, w.Carry([]backend.Carriage{{Class: class, Block: b, Out: true, Memory: kept}}))
			gone, before, again := make([]byte, len(kept)), make([]byte, len(kept)), make([]byte, len(kept))
			require.NoError(t, w.Carry([]backend.Carriage{ // in this order
				{Class: class, Block: b, Memory: gone}, {Class: class, Block: int32(6 + i), Memory: gone},
				{Class: class, Block: int32(6 + i), Out: true, Memory: before},
				{Class: class, Block: int32(6 + i), Memory: kept},
				{Class: class, Block: int32(6 + i), Out: true, Memory: again},
			}))
			require.Equal(t, gone, before)
			require.Equal(t, kept, again)
			w.reached(t, class, int32(6+i), kept)
			many := make([]backend.Carriage, 3*lawBlocks) // more than all blocks have together
			for n := range many {
				many[n] = backend.Carriage{Class: class, Block: int32(6 + i), Out: true, Memory: make([]byte, len(kept))}
			}
			require.NoError(t, w.Carry(many))
			for n := range many {
				require.Equal(t, kept, many[n].Memory, "copy %d", n)
			}
		}
	}
	for what, to := range map[string][]int32{"written": {6, 7, 8}, "copied": {9, 10, 11}} {
		sameBits(t, what, v, w.step(t, rows{w.tokens[n-3:], n - 3, to}), w.want[(n-3)*v:])
	}
	w.step(t, rows{prompt(12, 5, w.m.Vocab), 0, from[:1]}) // blocks that were moved out hold another sequence
}

// reached checks that a block whose memory is the program's has its bytes there, and takes what is written there.
func (w *lawful) reached(t *testing.T, class int, block int32, want []byte) {
	parts, err := w.Parts(class, block)
	require.NoError(t, err)
	if len(parts) == 0 {
		return
	}
	require.Equal(t, want, bytes.Join(parts, nil))
	for i := range parts {
		parts[i][0]++
	}
	changed := make([]byte, len(want))
	require.NoError(t, w.Carry([]backend.Carriage{{Class: class, Block: block, Out: true, Memory: changed}}))
	require.Equal(t, bytes.Join(parts, nil), changed)
	require.NotEqual(t, want, changed)
	for i := range parts {
		parts[i][0]--
	}
}

// refused checks that blocks and sizes that do not exist are refused.
func (w *lawful) refused(t *testing.T, classes int) {
	some := make([]byte, w.BlockBytes(0))
	carry := func(class int, block int32, memory []byte, out bool) error {
		return w.Carry([]backend.Carriage{{Class: class, Block: block, Memory: memory, Out: out}})
	}
	require.NoError(t, w.Carry(nil))
	require.ErrorContains(t, carry(classes, 0, some, true), "cache class")
	require.ErrorContains(t, carry(-1, 0, some, true), "cache class")
	require.ErrorContains(t, carry(0, lawBlocks, some, false), "block 12 of cache class 0, which has 12")
	require.ErrorContains(t, carry(0, -1, some, true), "block -1")
	require.ErrorContains(t, w.CopyBlock(0, 0, lawBlocks), "block 12")
	require.ErrorContains(t, w.CopyBlock(classes, 0, 0), "cache class")
	require.ErrorContains(t, carry(0, 0, some[1:], true), "bytes for a block of cache class 0")
	_, err := w.Parts(classes, 0)
	require.ErrorContains(t, err, "cache class")
	_, err = w.Parts(0, lawBlocks)
	require.ErrorContains(t, err, "block 12 of cache class 0, which has 12")
}
