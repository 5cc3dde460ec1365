package backendtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Toy is a cache format for tests: open blocks hold halves; sealed blocks hold K in negated bytes, and V in a byte for
// two features. Classes with a window keep f16.
func Toy() backend.KV {
	return backend.KV{Format: backend.Format{Name: "toy", K: backend.Side{Open: backend.Half{}, Sealed: negated{}},
		V: backend.Side{Open: backend.Half{}, Sealed: nibbles{}}}, Windowed: backend.KVF16.Format}
}

// negated keeps −round(x·16) in a byte.
type negated struct{}

func (negated) Bytes(features int) int { return backend.BlockSize * features }

func (negated) Put(block []byte, features, at int, rows []float32) {
	for i, x := range rows {
		block[at*features+i] = byte(-int8(min(max(math.RoundToEven(float64(x*16)), -127), 127)))
	}
}

func (negated) Get(rows []float32, block []byte, features, at int) {
	for i := range rows {
		rows[i] = -float32(int8(block[at*features+i])) / 16
	}
}

// nibbles keeps a value in 4 bits, in units of the block's largest value: it must see all 64 rows at once.
type nibbles struct{}

func (nibbles) Bytes(features int) int { return 4 + (backend.BlockSize*features+1)/2 }

func (nibbles) Put(block []byte, features, at int, rows []float32) {
	if at != 0 || len(rows) != backend.BlockSize*features {
		panic("a block that is sealed before it is full")
	}
	most := float32(0)
	for _, x := range rows {
		most = max(most, x, -x)
	}
	binary.LittleEndian.PutUint32(block, math.Float32bits(most))
	clear(block[4:])
	for i, x := range rows {
		if most > 0 {
			block[4+i/2] |= byte(math.RoundToEven(float64(x/most*7))+8) << (i % 2 * 4)
		}
	}
}

func (nibbles) Get(rows []float32, block []byte, features, at int) {
	most := math.Float32frombits(binary.LittleEndian.Uint32(block))
	for i := range rows {
		n := at*features + i
		if most > 0 {
			rows[i] = (float32(block[4+n/2]>>(n%2*4)&15) - 8) * (most / 7)
		} else {
			rows[i] = 0
		}
	}
}

// Seals tests a cache format, unknown to d, that seals full blocks in fewer bits, in one class of two: results are the
// oracle's, and the laws hold.
func Seals(t *testing.T, d, oracle backend.Device) {
	s := small{layers: 3, width: 32, ffn: 96, vocab: 51, heads: 4, kvHeads: 2, head: 16, window: 70}
	p, err := gemmaLike(s)
	require.NoError(t, err)
	classes, kv := len(p.Classes), Toy()
	p = kv.Sealing(p)
	require.Len(t, p.Classes, classes+1, "a class with a window keeps its format")
	m, err := made(judge.Random(p, 9, judge.All(quant.F32)))
	require.NoError(t, err)
	tokens := prompt(10, 3*backend.BlockSize+5, m.Vocab)
	got, want := both(t, d, oracle, m, kv, tokens)
	require.LessOrEqual(t, judge.Relative(got, want), 0.005) // where a value is rounded to another nibble
	open := kv
	open.Format.K.Sealed, open.Format.V.Sealed = nil, nil
	plain, err := gemmaLike(s)
	require.NoError(t, err)
	halves, err := made(judge.Random(plain, 9, judge.All(quant.F32)))
	require.NoError(t, err)
	unsealed, _ := both(t, d, oracle, halves, open, tokens)
	block := backend.BlockSize * m.Vocab
	sameBits(t, "rows that see no sealed block", m.Vocab, got[:block], unsealed[:block])
	require.Greater(t, judge.Relative(got[block:], unsealed[block:]), 0.015, "what is sealed has fewer bits")

	n := len(tokens)
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(p, lawBlocks), MaxRows: 2 * n, MaxWanted: 2 * n}}
	w := &lawful{loaded: load(t, d, m, c), tokens: tokens[:2*backend.BlockSize+5]}
	w.want = w.sequence(t, w.tokens, table(n, 0), n)
	w.fewTimes(t)
	t.Run("ChunkFree", func(t *testing.T) { rapid.Check(t, w.chunkFree) })
	t.Run("RowAlone", func(t *testing.T) { rapid.Check(t, w.rowAlone) })
	t.Run("Recompute", func(t *testing.T) { // in other blocks, after others were in its own
		w.step(t, rows{prompt(11, 70, m.Vocab), 0, []int32{0, 1}})
		sameBits(t, "once more", m.Vocab, w.sequence(t, w.tokens, []int32{9, 0, 4}, 31), w.want)
	})
	t.Run("Rejected", func(t *testing.T) { w.rejected(t) })
	t.Run("Blocks", func(t *testing.T) { w.moved(t, len(p.Classes)) })
}

// rejected checks that rows beyond the end of a sequence, which filled blocks and sealed them, leave nothing behind.
func (w *lawful) rejected(t *testing.T) {
	const kept = backend.BlockSize - 4
	v, blocks := w.m.Vocab, []int32{3, 8, 5}
	w.step(t, rows{w.tokens[:kept], 0, blocks})
	w.step(t, rows{prompt(13, backend.BlockSize+9, v), kept, blocks})
	got := w.step(t, rows{w.tokens[kept : kept+2], kept, blocks})
	sameBits(t, "after rows that were rejected", v, got, w.want[kept*v:][:2*v])
	w.step(t, rows{prompt(14, 3, v), kept + 2, blocks})
	got = w.step(t, rows{w.tokens[kept+2:], kept + 2, blocks})
	sameBits(t, "after more of them", v, got, w.want[(kept+2)*v:])
}

// Sealed tests cache formats that users can name and that seal blocks: results are the oracle's, and the laws hold.
func Sealed(t *testing.T, d, oracle backend.Device) {
	s := small{layers: 2, width: 32, ffn: 96, vocab: 51, heads: 4, kvHeads: 2, head: 16, window: 70}
	byLayer := [][2]string{{"q4", "q4"}, {"tq3", "q5"}, {"f16", "f16"}, {"q8", "q8"}, {"q8", "tq2"}}
	for _, types := range [][][2]string{{{"q4", "q4"}}, {{"tq3", "q5"}}, {{"q5", "tq4"}}, {{"q8", "tq2"}}, byLayer} {
		t.Run(fmt.Sprint(types), func(t *testing.T) {
			s := s
			kv, err := backend.MixKV(types[0][0], types[0][1])
			if len(types) > 1 { // in either class some caches seal blocks, and others do not
				s.layers = len(types)
				kv, err = backend.LayersKV("mixed", types)
			}
			require.NoError(t, err)
			p, err := gemmaLike(s)
			require.NoError(t, err)
			p = kv.Sealing(p)
			m, err := made(judge.Random(p, 9, judge.All(quant.F32)))
			require.NoError(t, err)
			tokens := prompt(10, 2*backend.BlockSize+5, m.Vocab)
			got, want := both(t, d, oracle, m, kv, tokens)
			require.LessOrEqual(t, judge.Relative(got, want), 0.02) // where a value is rounded to another code
			n := len(tokens)
			c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(p, lawBlocks), MaxRows: 2 * n, MaxWanted: 2 * n}}
			w := &lawful{loaded: load(t, d, m, c), tokens: tokens}
			w.want = w.sequence(t, w.tokens, table(n, 0), n)
			sameBits(t, "in chunks, in other blocks", m.Vocab, w.sequence(t, w.tokens, []int32{9, 0, 4}, 31), w.want)
			w.rejected(t)
			w.moved(t, len(p.Classes))
		})
	}
}

// Mixes tests caches with K in one format and V in another, in both orders: results are the oracle's.
func Mixes(t *testing.T, d, oracle backend.Device) {
	s := small{layers: 2, width: 32, ffn: 96, vocab: 51, heads: 4, kvHeads: 2, head: 16, window: 70}
	p, err := gemmaLike(s)
	require.NoError(t, err)
	m, err := made(judge.Random(p, 9, judge.All(quant.F32)))
	require.NoError(t, err)
	tokens := prompt(10, backend.BlockSize+5, m.Vocab)
	exact, _ := both(t, d, oracle, m, backend.KVF32, tokens)
	for _, names := range [][2]string{{"q8", "f32"}, {"f32", "q8"}, {"q8", "f16"}} {
		t.Run(names[0]+" "+names[1], func(t *testing.T) {
			kv, err := backend.MixKV(names[0], names[1])
			require.NoError(t, err)
			got, want := both(t, d, oracle, m, kv, tokens)
			require.LessOrEqual(t, judge.Relative(got, want), 1e-4)
			require.Greater(t, judge.Relative(got, exact), 1e-4, "one of both is rounded")
		})
	}
}
