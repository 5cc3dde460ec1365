package backendtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Adapters checks steps of sequences with adapters, other ones, several and none: they have the oracle's logits, and by
// bits those that each sequence has alone.
func Adapters(t *testing.T, d, oracle backend.Device) {
	adaptersOf(t, d, oracle, "llama", func(a *adaptable, t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
			a.rowAlone(t, rapid.IntRange(1, 30).Draw(t, "rows"), order)
		})
	})
	for _, name := range []string{"gemma", "mixture"} { // a tied head, experts
		adaptersOf(t, d, oracle, name, func(a *adaptable, t *testing.T) { a.rowsAlone(t, 1, 9, 30) })
	}
}

// adaptersOf is Adapters for one model.
func adaptersOf(t *testing.T, d, oracle backend.Device, name string, alone func(a *adaptable, t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		m, err := Adaptable(name)
		require.NoError(t, err)
		a := newAdaptable(t, d, oracle, m)
		t.Run("Oracle", a.nearOracle)
		t.Run("Zero", a.zero)
		t.Run("Refuses", a.refuses)
		t.Run("RowAlone", func(t *testing.T) { alone(a, t) })
	})
}

// Adaptable is a family's small model that takes adapters, in float32.
func Adaptable(family string) (*Model, error) {
	s := small{layers: 2, width: 64, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 32, used: 3, adapts: true}
	for i := range models {
		if models[i].name == family {
			p, err := models[i].record(s)
			if err != nil {
				return nil, err
			}
			return made(judge.Random(p, 19, judge.All(quant.F32)))
		}
	}
	return nil, fmt.Errorf("%q is no family of small models", family)
}

// adaptable is a model with adapters, on a device and on the oracle.
type adaptable struct {
	here, there *loaded
	sets        [][]ir.Applied // that sequences may have
}

// adaptedRows are rows of one sequence with its adapters.
type adaptedRows struct {
	rows
	adapters []ir.Applied
}

func newAdaptable(t *testing.T, d, oracle backend.Device, m *Model) *adaptable {
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 8), MaxRows: 200,
		MaxWanted: 200}}
	a := &adaptable{here: load(t, d, m, c), there: load(t, oracle, m, c)}
	rng := rand.New(rand.NewPCG(7, 7))
	few, most := RandomAdapter(rng, m.Program, 3, 0.4), RandomAdapter(rng, m.Program, 20, 1)
	a.sets = [][]ir.Applied{nil, {{Adapter: few, Scale: 1}}, {{Adapter: most, Scale: 0.5}},
		{{Adapter: most, Scale: -0.25}, {Adapter: few, Scale: 2}}}
	return a
}

// RandomAdapter has updates for a share of the program's sites, every second one in halves.
func RandomAdapter(rng *rand.Rand, p *ir.Program, rank int, share float64) *ir.Adapter {
	a := &ir.Adapter{Updates: make([]*ir.Update, len(p.Sites))}
	for i := range p.Sites {
		if rng.Float64() < share {
			s := &p.Sites[i]
			halves := i%2 == 0
			a.Updates[i] = &ir.Update{Rank: rank, Scale: 0.5, A: factor(rng, s.In, rank, halves),
				B: factor(rng, rank, s.Out, halves)}
		}
	}
	return a
}

func factor(rng *rand.Rand, rows, columns int, halves bool) ir.Factor {
	stride := ir.Padded(columns)
	f := ir.Factor{Floats: make([]float32, rows*stride)}
	for r := range rows {
		for c := range columns {
			f.Floats[r*stride+c] = float32(rng.NormFloat64() * 0.1)
		}
	}
	if !halves {
		return f
	}
	h := ir.Factor{Halves: make([]uint16, len(f.Floats))}
	for i, x := range f.Floats {
		h.Halves[i] = quant.F32ToF16(x)
	}
	return h
}

// adapted computes rows of several sequences in one step.
func (l *loaded) adapted(t rapid.TB, parts ...adaptedRows) []float32 {
	t.Helper()
	s := l.Steps()[0]
	s.Tokens, s.Spans, s.Wanted = nil, nil, nil
	for _, p := range parts {
		s.Spans = append(s.Spans, backend.Span{Row: len(s.Tokens), Rows: len(p.tokens), Pos: p.pos,
			Tables: Tables(l.m.Program, p.table), Adapters: p.adapters})
		for i := range p.tokens {
			s.Wanted = append(s.Wanted, int32(len(s.Tokens)+i))
		}
		s.Tokens = append(s.Tokens, p.tokens...)
	}
	require.NoError(t, l.run(s))
	return append([]float32(nil), s.Logits[:len(s.Tokens)*l.m.OutputWidth()]...)
}

func (a *adaptable) parts(n int) (parts []adaptedRows) {
	for i, set := range a.sets {
		parts = append(parts, adaptedRows{rows{prompt(uint64(20+i), n+i, a.here.m.Vocab), 0, []int32{int32(i)}}, set})
	}
	return parts
}

func (a *adaptable) nearOracle(t *testing.T) {
	parts := a.parts(7)
	got, want := a.here.adapted(t, parts...), a.there.adapted(t, parts...)
	for i := range got {
		near(t, got, want, i, a.here.m.OutputWidth(), 2e-3)
	}
	parts[1].adapters = nil
	require.NotEqual(t, want, a.there.adapted(t, parts...), "an adapter that changes nothing tests nothing")
}

// zero checks that a sequence without adapters has the bits that the program has that takes none, and that one with a
// factor of 0 has their values.
func (a *adaptable) zero(t *testing.T) {
	part := a.parts(9)[0]
	want := a.here.adapted(t, part)
	part.adapters = []ir.Applied{{Adapter: a.sets[2][0].Adapter}}
	require.Equal(t, want, a.here.adapted(t, part))
}

func (a *adaptable) refuses(t *testing.T) {
	s := a.here.Steps()[0]
	s.Tokens, s.Wanted = []int32{1}, nil
	s.Spans = []backend.Span{{Rows: 1, Tables: Tables(a.here.m.Program, []int32{0}),
		Adapters: []ir.Applied{{Adapter: &ir.Adapter{}}}}}
	require.ErrorContains(t, a.here.run(s), "an adapter of 0 matrices")
}

// rowsAlone is rowAlone for some numbers of rows.
func (a *adaptable) rowsAlone(t *testing.T, rows ...int) {
	for _, n := range rows {
		a.rowAlone(t, n, []int{2, 0, 3, 1})
	}
}

// rowAlone checks that rows have the same bits beside sequences with other adapters, in some order, as alone.
func (a *adaptable) rowAlone(t rapid.TB, n int, order []int) {
	parts := a.parts(n)
	var want [][]float32
	for _, p := range parts {
		want = append(want, a.here.adapted(t, p))
	}
	done := 0
	var mixed []adaptedRows
	for _, i := range order {
		mixed = append(mixed, parts[i])
	}
	got, v := a.here.adapted(t, mixed...), a.here.m.OutputWidth()
	for _, i := range order {
		n := len(parts[i].tokens)
		sameBits(t, "beside others", v, got[done*v:][:n*v], want[i])
		done += n
	}
	for i, p := range parts { // the last row alone, after the others
		n := len(p.tokens)
		if n > 1 {
			a.here.adapted(t, adaptedRows{rows{p.tokens[:n-1], 0, p.table}, p.adapters})
			last := a.here.adapted(t, adaptedRows{rows{p.tokens[n-1:], n - 1, p.table}, p.adapters})
			sameBits(t, "in chunks", v, last, want[i][(n-1)*v:])
		}
	}
}

// Adapted returns the logits that a sequence with adapters has at all its positions, and checks that they are the same
// in chunks, and beside a sequence without.
func Adapted(t *testing.T, d backend.Device, m *Model, adapters []ir.Applied, tokens []int32) []float32 {
	t.Helper()
	n := len(tokens)
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 4),
		MaxRows: 2 * n, MaxWanted: 2 * n}})
	blocks, other := table(n, 0), rows{tokens, 0, table(n, 2)}
	whole := l.adapted(t, adaptedRows{rows{tokens, 0, blocks}, adapters})
	both := l.adapted(t, adaptedRows{other, nil}, adaptedRows{rows{tokens, 0, blocks}, adapters})
	sameBits(t, "beside one without", m.OutputWidth(), both[len(whole):], whole)
	var chunks []float32
	for pos := 0; pos < n; pos += 5 {
		chunks = append(chunks, l.adapted(t, adaptedRows{rows{tokens[pos:min(pos+5, n)], pos, blocks}, adapters})...)
	}
	sameBits(t, "in chunks", m.OutputWidth(), chunks, whole)
	return whole
}
