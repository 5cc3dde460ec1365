package backendtest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// parts checks that a program divided over two models, which hand on the values that cross between them, gives the bits
// of the whole program.
func parts(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	s := small{layers: 3, width: 32, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 16, used: 3}
	for _, f := range models {
		p, err := f.record(s)
		require.NoError(t, err)
		m, err := made(judge.Random(p, 21, inTurn(narrowest(matrixTypes))))
		require.NoError(t, err)
		t.Run(f.name, func(t *testing.T) { m.inParts(t, d) })
	}
	for _, o := range orders {
		p, err := ordered(s, o.record)
		require.NoError(t, err)
		m, err := made(judge.Random(p, 21, inTurn(narrowest(matrixTypes))))
		require.NoError(t, err)
		t.Run(o.name, func(t *testing.T) { m.inParts(t, d) })
	}
	t.Run("Refused", func(t *testing.T) { badParts(t, d) })
}

// narrowest are the types whose blocks fit 32 features.
func narrowest(all []quant.Type) (narrow []quant.Type) {
	for _, typ := range all {
		if typ.Block() <= 32 {
			narrow = append(narrow, typ)
		}
	}
	return narrow
}

func (m *Model) inParts(t *testing.T, d backend.Device) {
	const n = 20
	tokens := prompt(22, n, m.Vocab)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1), MaxRows: n,
		MaxWanted: n}}
	want := load(t, d, m, c).sequence(t, tokens, table(n, 0), n)
	rng := rand.New(rand.NewPCG(23, 0))
	for range 4 {
		part := make([]int, len(m.Segments)) // by segment, which of two models computes it
		for i := range part {
			part[i] = rng.IntN(2)
		}
		part[0], part[len(part)-1] = 0, 1
		Together(m.Program, part)
		x := m.split(t, d, c, part)
		var got []float32
		for _, chunk := range [][2]int{{0, 13}, {13, n}} {
			got = append(got, x.step(t, tokens[chunk[0]:chunk[1]], chunk[0])...)
		}
		sameBits(t, "in parts", m.OutputWidth(), got, want)
	}
}

// Together changes part so that segments that attend to a cache are on the device of the segment that fills it.
func Together(p *ir.Program, part []int) {
	filler := make([]int, len(p.KV))
	for s := range p.Segments {
		for _, n := range p.Segments[s].Nodes {
			switch {
			case n.Op != ir.Attend:
			case len(n.In) > 1:
				filler[n.Attend.KV] = s
			default:
				part[s] = part[filler[n.Attend.KV]]
			}
		}
	}
}

// halves are two models that share the segments of a program.
type halves struct {
	m    *Model
	of   [2]backend.Model
	part []int
	kept map[ir.Value][]float32 // values that crossed so far
}

func (m *Model) split(t *testing.T, d backend.Device, c backend.Config, part []int) *halves {
	x := &halves{m: m, part: part, kept: map[ir.Value][]float32{}}
	var memory [2]backend.Memory
	for i := range x.of {
		c.Segments = nil
		for s, p := range part {
			if p == i {
				c.Segments = append(c.Segments, s)
			}
		}
		model, err := compile(t, d, m, c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, model.Close()) })
		used, _, _ := m.Only(c.Segments).Used()
		for r, here := range used {
			err := model.Upload(ir.Ref(r), 0, m.Weights[r])
			require.Equal(t, here, err == nil, "weight %s: %v", m.Program.Weights[r].Name, err)
		}
		x.of[i], memory[i] = model, model.Memory()
	}
	whole, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: c.KV, Blocks: c.Blocks,
		MaxRows: c.MaxRows}})
	require.NoError(t, err)
	defer whole.Close()
	require.Equal(t, whole.Memory().KV, memory[0].KV+memory[1].KV, "every layer's cache is in one of them")
	return x
}

// step runs rows of one sequence through both models.
func (x *halves) step(t *testing.T, tokens []int32, pos int) []float32 {
	var steps [2]*backend.Step
	for i, model := range x.of {
		s := model.Steps()[0]
		s.Tokens, s.Wanted = tokens, nil
		s.Spans = []backend.Span{{Rows: len(tokens), Pos: pos, Tables: Tables(x.m.Program, table(pos+len(tokens), 0)),
			Heard: Heard(x.m.Program)}}
		for r := range tokens {
			s.Wanted = append(s.Wanted, int32(r))
		}
		steps[i] = s
	}
	for seg, i := range x.part {
		for _, v := range x.m.Only([]int{seg}).Taken() {
			require.NoError(t, x.of[i].In(v, steps[i], x.kept[v]))
		}
		require.NoError(t, backend.Enqueue(x.of[i], seg, steps[i]))
		for _, v := range x.m.Handed(seg) {
			x.kept[v] = make([]float32, len(tokens)*x.m.Widths[v])
			require.NoError(t, x.of[i].Out(v, steps[i], x.kept[v]))
		}
	}
	for i, model := range x.of {
		require.NoError(t, finish(model, steps[i]))
	}
	return append([]float32(nil), steps[1].Logits[:len(tokens)*x.m.OutputWidth()]...)
}

// badParts checks that segments which are not compiled are refused, and so are values that do not cross.
func badParts(t *testing.T, d backend.Device) {
	m := tiny(t)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1), MaxRows: 2,
		MaxWanted: 2}, Layout: backend.Layout{Segments: []int{0, 2}}}
	model, err := compile(t, d, m, c)
	require.NoError(t, err)
	defer model.Close()
	s := model.Steps()[0]
	s.Tokens, s.Spans = []int32{1}, []backend.Span{{Rows: 1, Tables: Tables(m.Program, []int32{0})}}
	require.Error(t, backend.Enqueue(model, 1, s), "a segment of others")
	require.Error(t, model.Out(m.End(), s, make([]float32, m.OutputWidth())), "a value of others")
	require.NoError(t, finish(model, s))
	flight := d.Traits().Flight
	require.Positive(t, flight)
	require.Len(t, model.Steps(), 1)
	c.Flight = flight + 1
	_, err = d.Compile(m.Bound, c)
	require.ErrorContains(t, err, "in flight")
	c.Flight = flight
	most, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	require.Len(t, most.Steps(), flight)
	require.NoError(t, most.Close())
}
