package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Teamed checks a device whose cards have parts of each matrix: dense programs are near the oracle and keep the laws by
// bits, also where cards have different parts, and blocks of caches come back. Others are refused by their names.
func Teamed(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	s := divisible
	model := func(t *testing.T, record func(small) (*ir.Program, error)) *Model {
		p, err := record(s)
		require.NoError(t, err)
		m, err := made(judge.Random(p, 9, inTurn(narrowest(matrixTypes))))
		require.NoError(t, err)
		return m
	}
	t.Run("biased", func(t *testing.T) { teamed(t, d, oracle, model(t, biasedLike), s.vocab) })
	for _, f := range models {
		t.Run(f.name, func(t *testing.T) {
			m := model(t, f.record)
			if f.name == "llama" || f.name == "gemma" {
				teamed(t, d, oracle, m, s.vocab)
				return
			}
			_, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
				Blocks: Blocks(m.Program, 1), MaxRows: 8, MaxWanted: 8}})
			require.ErrorContains(t, err, "its matrices cannot be divided among cards")
			require.ErrorContains(t, err, "have the cards compute layers")
		})
	}
}

// divisible are sizes that two or three cards share.
var divisible = small{layers: 2, width: 64, ffn: 160, vocab: 384, heads: 12, kvHeads: 6, head: 16, used: 3}

// Divisible is a dense model whose matrices two or three cards share.
func Divisible(typ quant.Type) (*Model, error) {
	p, err := llamaLike(divisible)
	if err != nil {
		return nil, err
	}
	return made(judge.Random(p, 41, judge.All(typ)))
}

// biasedLike has a bias for each product but the head, a feed-forward part without gate, and both parts of a layer read
// the same rows.
func biasedLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("biased-like", func(name string) bool { return name != "token_embd.bias" })
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.LayerNorm(x, "attn_norm", 1e-5)
		q := ir.CaseRope(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, false, "")
		k := ir.CaseRope(b, b.Linear(n, "attn_k", s.kvHeads*s.head), s.head, s.head, false, "")
		o := b.Linear(b.Attend(q, k, b.Linear(n, "attn_v", s.kvHeads*s.head), a), "attn_output", s.width)
		up := b.Act(ir.GELU, b.Linear(n, "ffn_up", s.ffn))
		x = b.Add(b.Add(x, o), b.Linear(up, "ffn_down", s.width))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", 1e-5), "token_embd", "token_embd")
	return b.Program(1 << 10)
}

func teamed(t *testing.T, d, oracle backend.Device, m *Model, vocab int) {
	got, want := both(t, d, oracle, m, backend.KVF32, prompt(8, 22, vocab))
	require.LessOrEqual(t, judge.Relative(got, want), 0.08)
	w := newLawful(t, d, m)
	w.fewTimes(t)
	t.Run("ChunkFree", func(t *testing.T) {
		sameBits(t, "row by row", m.Vocab, w.sequence(t, w.tokens, table(len(w.tokens), 0), 1), w.want)
	})
	t.Run("RowAlone", w.wanted)
	t.Run("Recompute", func(t *testing.T) { // in other blocks, after others were in its own
		w.step(t, rows{prompt(11, 70, m.Vocab), 0, []int32{0, 1}})
		sameBits(t, "once more", m.Vocab, w.sequence(t, w.tokens, []int32{9, 0, 4}, 31), w.want)
	})
	t.Run("Blocks", func(t *testing.T) { w.moved(t, len(m.Classes)) })
	t.Run("Pieces", func(t *testing.T) {
		model, err := d.Compile(m.Bound, w.config)
		require.NoError(t, err)
		defer func() { require.NoError(t, model.Close()) }()
		inPieces(t, model, m)
		l := &loaded{Model: model, m: m, config: w.config}
		sameBits(t, "uploaded in pieces", m.Vocab, l.sequence(t, w.tokens, table(len(w.tokens), 0), 40), w.want)
		require.Error(t, model.Upload(ir.Ref(len(m.Weights)), 0, nil))
		require.Error(t, model.Upload(0, 0, make([]byte, 5)))
	})
}
