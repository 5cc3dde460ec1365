package backendtest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// laws checks, by bits, that a row's logits depend on its own sequence only. Small models have matrices of all types
// whose blocks fit 32 features; one with 256 features has all types, and runs only a few times.
func laws(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	narrow := narrowest(matrixTypes)
	s := small{layers: 2, width: 32, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 16, used: 3}
	for _, f := range models {
		t.Run(f.name, func(t *testing.T) {
			p, err := f.record(s)
			require.NoError(t, err)
			m, err := made(judge.Random(p, 9, inTurn(narrow)))
			require.NoError(t, err)
			w := newLawful(t, d, m)
			w.fewTimes(t)
			if !slices.Contains([]string{"gemma", "mixture", "hybrid", Keyed}, f.name) {
				return // these have all that masks, routers and states can have
			}
			w.all(t)
		})
	}
	t.Run("answering", func(t *testing.T) { answering(t, d, s, narrow) })
	t.Run("wide", func(t *testing.T) {
		p, err := llamaLike(small{layers: 2, width: 256, ffn: 512, vocab: 99, heads: 8, kvHeads: 2, head: 32})
		require.NoError(t, err)
		m, err := made(judge.Random(p, 9, inTurn(matrixTypes)))
		require.NoError(t, err)
		newLawful(t, d, m).fewTimes(t)
	})
}

// answering checks the laws of rows that see what an encoder read, where that ends within a block, whichever it is.
func answering(t *testing.T, d backend.Device, s small, types []quant.Type) {
	p, err := answeringLike(s)
	require.NoError(t, err)
	m, err := made(judge.Random(p, 9, inTurn(types)))
	require.NoError(t, err)
	for _, heard := range []int{7, backend.BlockSize + 6} {
		w := newHeard(t, d, m, heard)
		w.fewTimes(t)
		w.all(t)
	}
}

// all checks all laws.
func (w *lawful) all(t *testing.T) {
	t.Run("ChunkFree", func(t *testing.T) { rapid.Check(t, w.chunkFree) })
	t.Run("RowAlone", func(t *testing.T) { rapid.Check(t, w.rowAlone) })
	t.Run("Wanted", w.wanted)
	t.Run("Proposed", func(t *testing.T) { rapid.Check(t, w.proposed) })
}

// inTurn assigns the types to matrices one after another.
func inTurn(list []quant.Type) judge.Types {
	i := 0
	return func(*ir.Weight) quant.Type {
		i++
		return list[i%len(list)]
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
	return newHeard(t, d, m, Heard(m.Program))
}

// newHeard is newLawful of texts of which an encoder read so many positions.
func newHeard(t *testing.T, d backend.Device, m *Model, heard int) *lawful {
	n := 2*backend.BlockSize + 5
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: Blocks(m.Program, lawBlocks),
		MaxRows: 2 * n, MaxWanted: 2 * n}}
	w := &lawful{loaded: load(t, d, m, c), tokens: prompt(10, n, m.Vocab)}
	w.heard = heard
	w.want = w.sequence(t, w.tokens, table(n, 0), n)
	return w
}

// fewTimes checks both laws a few times, for models that take long to run.
func (w *lawful) fewTimes(t *testing.T) {
	sameBits(t, "in chunks", w.m.OutputWidth(), w.sequence(t, w.tokens, []int32{7, 2, 9}, 5, 60, 1, 3, 1), w.want)
	w.beside(t)
}

// beside checks that the last rows have the same logits beside other sequences.
func (w *lawful) beside(t *testing.T) {
	vocab, v, n := w.m.Vocab, w.m.OutputWidth(), len(w.tokens)
	w.step(t, rows{w.tokens[:n-3], 0, []int32{4, 3, 2}})
	got := w.step(t, rows{prompt(11, 6, vocab), 0, []int32{5}}, rows{w.tokens[n-3:], n - 3, []int32{4, 3, 2}},
		rows{prompt(12, 1, vocab), 0, []int32{6}})
	sameBits(t, "beside others", v, got[6*v:9*v], w.want[(n-3)*v:])
}

// chunkFree checks that a prompt in any chunks and any blocks has the logits of the whole prompt.
func (w *lawful) chunkFree(t *rapid.T) {
	first := rapid.SliceOfN(rapid.IntRange(1, 70), 0, 3).Draw(t, "chunks")
	chunks := append(first, rapid.IntRange(8, 140).Draw(t, "other chunks"))
	blocks := rapid.Permutation(table(lawBlocks*backend.BlockSize, 0)).Draw(t, "blocks")
	sameBits(t, "in chunks", w.m.Vocab, w.sequence(t, w.tokens, blocks[:3], chunks...), w.want)
}

// rowAlone checks that a row has the same logits with other sequences before and after it in a step as alone.
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

// proposed checks that proposals change no kept row's logits. Proposed rows whose tokens turn out right must have the
// usual logits, and so must rows that are computed in place of wrong ones.
func (w *lawful) proposed(t *rapid.T) {
	n, v := len(w.tokens), w.m.Vocab
	tables := Tables(w.m.Program, table(n, 0))
	for done := 0; done < n; {
		kept := rapid.IntRange(1, min(70, n-done)).Draw(t, "kept")
		right := rapid.IntRange(0, min(8, n-done-kept)).Draw(t, "right")
		wrong := rapid.IntRange(0, min(3, n-done-kept-right)).Draw(t, "wrong")
		s := w.Steps()[0]
		s.Tokens, s.Wanted = append([]int32(nil), w.tokens[done:done+kept+right]...), nil
		for range wrong {
			s.Tokens = append(s.Tokens, rapid.Int32Range(0, int32(v)-1).Draw(t, "token"))
		}
		s.Spans = []backend.Span{{Rows: len(s.Tokens), Proposed: right + wrong, Pos: done, Tables: tables,
			Heard: w.heard}}
		for i := range s.Tokens {
			s.Wanted = append(s.Wanted, int32(i))
		}
		if err := w.run(s); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "with proposed rows behind", v, s.Logits[:(kept+right)*v], w.want[done*v:(done+kept+right)*v])
		done += kept
		if len(w.m.States) == 0 {
			done += right
		}
	}
}

// wanted checks that a row's logits do not depend on which other rows are wanted.
func (w *lawful) wanted(t *testing.T) {
	n, v := len(w.tokens), w.m.OutputWidth()
	rng := rand.New(rand.NewPCG(17, 0))
	s := w.Steps()[0]
	s.Tokens, s.Spans, s.Wanted = w.tokens, []backend.Span{{Rows: n, Tables: Tables(w.m.Program, table(n, 0)),
		Heard: w.heard}}, nil
	var want []float32
	for i := range n {
		if rng.IntN(3) == 0 {
			s.Wanted = append(s.Wanted, int32(i))
			want = append(want, w.want[i*v:(i+1)*v]...)
		}
	}
	require.NoError(t, w.run(s))
	sameBits(t, "wanted rows", v, s.Logits[:len(want)], want)
}

// uploads checks that weights uploaded in pieces, in any order and concurrently, give the same logits, and so do
// weights in place.
func uploads(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	for _, typ := range matrixTypes {
		t.Run(typ.String(), func(t *testing.T) {
			p, err := llamaLike(small{layers: 1, width: 256, ffn: 256, vocab: 101, heads: 8, kvHeads: 1, head: 32})
			require.NoError(t, err)
			m, err := made(judge.Random(p, 13, judge.All(typ)))
			require.NoError(t, err)
			tokens := prompt(14, 9, m.Vocab)
			c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1), MaxRows: 9,
				MaxWanted: 9}}
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

			if d.Traits().Memory != backend.HostMemory {
				return
			}
			c.Weights = backend.InPlace(m.Weights)
			still := load(t, d, m, c)
			sameBits(t, "in place", m.Vocab, still.sequence(t, tokens, table(9, 0), 9), want)
			sameBits(t, "in place, row by row", m.Vocab, still.sequence(t, tokens, table(9, 0), 1), want)
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
				size := m.RowBytes(p.ref)
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
