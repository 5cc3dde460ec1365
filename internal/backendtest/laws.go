package backendtest

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// laws checks, by bits, that what a row's logits are depends on its own sequence only.
func laws(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	for i, f := range models {
		typ := matrixTypes[i%len(matrixTypes)]
		t.Run(f.name+" "+typ.String(), func(t *testing.T) {
			s := small{layers: 2, width: 64, ffn: 96, vocab: 99, heads: 4, kvHeads: 2, head: 16}
			if typ.Block() > 32 {
				s = small{layers: 1, width: 256, ffn: 256, vocab: 99, heads: 8, kvHeads: 1, head: 32}
			}
			p, err := f.record(s)
			require.NoError(t, err)
			m, err := randomModel(p, 9, all(typ))
			require.NoError(t, err)
			newLawful(t, d, m).all(t)
		})
	}
}

// lawful is a model with one sequence, long enough to end in its third KV block, and its logits.
type lawful struct {
	*loaded
	tokens []int32
	want   []float32
}

const lawBlocks = 12

func newLawful(t *testing.T, d backend.Device, m *Model) *lawful {
	n := 2*backend.BlockSize + 5
	c := backend.Config{KV: backend.KVF16, Blocks: lawBlocks, MaxRows: 2 * n, MaxWanted: 2 * n}
	w := &lawful{loaded: load(t, d, m, c), tokens: prompt(10, n, m.Vocab)}
	w.want = w.sequence(t, w.tokens, table(n, 0), n)
	return w
}

func (w *lawful) all(t *testing.T) {
	t.Run("ChunkFree", func(t *testing.T) { rapid.Check(t, w.chunkFree) })
	t.Run("RowAlone", func(t *testing.T) { rapid.Check(t, w.rowAlone) })
	t.Run("Wanted", func(t *testing.T) { rapid.Check(t, w.wanted) })
}

// chunkFree: a prompt in any chunks, in any blocks, has the logits of the whole one.
func (w *lawful) chunkFree(t *rapid.T) {
	first := rapid.SliceOfN(rapid.IntRange(1, 70), 0, 3).Draw(t, "chunks")
	chunks := append(first, rapid.IntRange(8, 140).Draw(t, "other chunks"))
	blocks := rapid.Permutation(table(lawBlocks*backend.BlockSize, 0)).Draw(t, "blocks")
	sameBits(t, "in chunks", w.m.Vocab, w.sequence(t, w.tokens, blocks[:3], chunks...), w.want)
}

// rowAlone: with other sequences before and after it in a step, a row is as it is alone.
func (w *lawful) rowAlone(t *rapid.T) {
	n := len(w.tokens)
	done := rapid.IntRange(0, n-1).Draw(t, "done")
	end := rapid.IntRange(done+1, n).Draw(t, "end")
	blocks := rapid.Permutation(table(lawBlocks*backend.BlockSize, 0)).Draw(t, "blocks")
	if done > 0 {
		w.step(t, rows{w.tokens[:done], 0, blocks[:3]})
	}
	var parts []rows
	before, after := rapid.IntRange(0, 40).Draw(t, "before"), rapid.IntRange(0, 40).Draw(t, "after")
	if before > 0 {
		parts = append(parts, rows{prompt(11, before, w.m.Vocab), 0, blocks[3:4]})
	}
	parts = append(parts, rows{w.tokens[done:end], done, blocks[:3]})
	if after > 0 {
		parts = append(parts, rows{prompt(12, after, w.m.Vocab), 0, blocks[4:5]})
	}
	v := w.m.Vocab
	got := w.step(t, parts...)[before*v:][:(end-done)*v]
	sameBits(t, "beside others", v, got, w.want[done*v:end*v])
}

// wanted: asking for the logits of some rows gives those rows' logits.
func (w *lawful) wanted(t *rapid.T) {
	n, v := len(w.tokens), w.m.Vocab
	flags := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "wanted")
	s := backend.Step{Tokens: w.tokens, Spans: []backend.Span{{Rows: n, Table: table(n, 0)}}}
	var want []float32
	for i, flag := range flags {
		if flag {
			s.Wanted = append(s.Wanted, int32(i))
			want = append(want, w.want[i*v:(i+1)*v]...)
		}
	}
	s.Logits = make([]float32, len(want))
	for i := range w.m.Segments {
		require.NoError(t, w.Run(i, &s))
	}
	sameBits(t, "wanted rows", v, s.Logits, want)
}

// uploads: weights that arrive in pieces, in any order and several at once, are the same weights.
func uploads(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	for _, typ := range matrixTypes {
		t.Run(typ.String(), func(t *testing.T) {
			p, err := llamaLike(small{layers: 1, width: 256, ffn: 256, vocab: 101, heads: 8, kvHeads: 1, head: 32})
			require.NoError(t, err)
			m, err := randomModel(p, 13, all(typ))
			require.NoError(t, err)
			tokens := prompt(14, 9, m.Vocab)
			c := backend.Config{KV: backend.KVF32, Blocks: 1, MaxRows: 9, MaxWanted: 9}
			want := load(t, d, m, c).sequence(t, tokens, table(9, 0), 9)

			model, err := d.Compile(m.Bound, c)
			require.NoError(t, err)
			defer model.Close()
			inPieces(t, model, m)
			got := (&loaded{Model: model, m: m, config: c}).sequence(t, tokens, table(9, 0), 9)
			sameBits(t, "uploaded in pieces", m.Vocab, got, want)
			mem := model.Memory()
			require.Positive(t, mem.Weights)
			require.Positive(t, mem.KV)
		})
	}
}

type piece struct {
	ref       ir.Ref
	row, rows int
}

func inPieces(t *testing.T, model backend.Model, m *Model) {
	rng := rand.New(rand.NewPCG(15, 0))
	grain := model.RowGrain()
	require.Positive(t, grain)
	var pieces []piece
	for r, w := range m.Program.Weights {
		for row := 0; row < w.Rows; {
			n := min(grain*(1+rng.IntN(4)), w.Rows-row)
			pieces = append(pieces, piece{ir.Ref(r), row, n})
			row += n
		}
	}
	rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	errs := make([]error, len(pieces))
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < len(pieces); i += 4 {
				p := pieces[i]
				size := m.rowBytes(p.ref)
				data := append([]byte(nil), m.Weights[p.ref][p.row*size:(p.row+p.rows)*size]...)
				errs[i] = model.Upload(p.ref, p.row, data)
				clear(data) // it is not kept
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
