package backendtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// windows checks that giving back blocks behind a window, which another sequence overwrites at once, changes no bit.
// Each class has its own number of blocks, and its own memory for them.
func windows(t *testing.T, d backend.Device) {
	const n, chunk = 5*backend.BlockSize + 9, 70
	for _, class := range []ir.Class{{Window: 1}, {Window: 20}, {Window: 64}, {Window: 65}, {Window: 130},
		{Window: 20, Chunked: true}, {Window: 128, Chunked: true}, {Window: 130, Chunked: true}} {
		for _, kv := range []backend.KV{backend.KVF32, backend.KVF16, backend.KVQ8} {
			window := class.Window
			t.Run(fmt.Sprintf("%+v %s", class, kv), func(t *testing.T) {
				p, err := gemmaLike(small{layers: 2, width: 32, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 16,
					window: window, chunked: class.Chunked})
				require.NoError(t, err)
				m, err := made(judge.Random(p, 9, judge.All(quant.F32)))
				require.NoError(t, err)
				require.Len(t, p.Classes, 2)
				require.Equal(t, class, p.Classes[0], "the first layer's")
				c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(p, 8), MaxRows: chunk + 9,
					MaxWanted: chunk + 9}}
				tokens := prompt(10, n, m.Vocab)
				whole := load(t, d, m, c)
				want := whole.sequence(t, tokens, table(n, 0), chunk)

				c.Blocks = []int{backend.BlocksFor(window-1+chunk+2*(backend.BlockSize-1)) + 1, 8}
				few := load(t, d, m, c)
				require.Less(t, few.Memory().KV, whole.Memory().KV)
				sameBits(t, "blocks given back", m.Vocab, few.givingBack(t, tokens, chunk), want)
			})
		}
	}
}

// givingBack runs tokens in chunks, with only as many blocks of the first class as its window sees. In each step
// another sequence writes the blocks that the first one does not hold.
func (l *loaded) givingBack(t *testing.T, tokens []int32, chunk int) []float32 {
	window := l.m.Classes[0]
	free := table(l.config.Blocks[0]*backend.BlockSize, 0)
	rng := rand.New(rand.NewPCG(3, 4))
	var seen backend.Table
	var logits []float32
	for pos := 0; pos < len(tokens); pos += chunk {
		rows := tokens[pos:min(pos+chunk, len(tokens))]
		for window.First(pos)/backend.BlockSize > seen.First && len(seen.Blocks) > 0 {
			free, seen.First, seen.Blocks = append(free, seen.Blocks[0]), seen.First+1, seen.Blocks[1:]
		}
		rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		for seen.Room() < pos+len(rows) {
			seen.Blocks, free = append(seen.Blocks, free[0]), free[1:]
		}
		s := l.Steps()[0]
		s.Tokens = append(slices.Clone(rows), prompt(uint64(pos), 9, l.m.Vocab)...)
		s.Spans = []backend.Span{
			{Rows: len(rows), Pos: pos, Tables: []backend.Table{seen, {Blocks: table(len(tokens), 1)}}},
			{Row: len(rows), Rows: 9, Tables: []backend.Table{{Blocks: free[:1]}, {Blocks: []int32{0}}}},
		}
		s.Wanted = s.Wanted[:0]
		for i := range rows {
			s.Wanted = append(s.Wanted, int32(i))
		}
		for i := range l.m.Segments {
			require.NoError(t, backend.Enqueue(l, i, s))
		}
		require.NoError(t, finish(l.Model, s))
		logits = append(logits, s.Logits[:len(rows)*l.m.Vocab]...)
	}
	return logits
}
