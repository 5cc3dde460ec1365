package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// paint makes a legal program of two blocks: a picture in, its features and a picture out.
func paint(t *testing.T) *Program {
	b := NewBuilder("paint", nil)
	x := b.Input("picture", 3, true)
	b.Block()
	x = b.Output("features", b.Act(SiLU, b.Convolution(x, "in", 3, 8)))
	b.Block()
	b.Output("painted", b.Convolution(x, "out", 3, 3))
	p, err := b.Program(0)
	require.NoError(t, err)
	return p
}

func TestBlocks(t *testing.T) {
	p := paint(t)
	require.Equal(t, Blocks, p.Form())
	require.Equal(t, `paint: width 0, vocab 0, context 0
takes picture %0[3]
block 0
  %1[27] = around %0  size=3
  %2[8] = linear %1  in.weight
  %3[8] = glu %2  silu
block 1
  %4[72] = around %3  size=3
  %5[3] = linear %4  out.weight
features %3
painted %5
`, p.String())
	require.True(t, p.Grid && p.Whole)
	require.False(t, p.TakesTokens())
	require.Equal(t, NoValue, p.End())
	require.Zero(t, p.OutputWidth())
	in, ok := p.Input("picture")
	require.True(t, ok)
	require.Equal(t, []Value{in}, p.Takes(0))
	require.Equal(t, []Value{3}, p.Takes(1))
	require.Equal(t, []Value{5}, p.Handed(1))
	require.Equal(t, AllRows, p.Axis(5))
	_, ok = p.Output("other")
	require.False(t, ok)
}

// TestFormsFindFaults: a program that is no text is judged by its own checker, and names by all.
func TestFormsFindFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(p *Program)
		want string
	}{
		{"a layer among blocks", func(p *Program) { p.Segments[1].Kind = SegMix }, "segment 1 is mix 1, want block 1"},
		{"no inputs", func(p *Program) { p.Inputs = nil }, "0 inputs, want rows of floats and no token ids"},
		{"tokens", func(p *Program) { p.Inputs = append(p.Inputs, Input{"tokens", NoValue}) },
			"2 inputs, want rows of floats and no token ids"},
		{"no outputs", func(p *Program) { p.Outputs = nil }, "no outputs"},
		{"an output without a name", func(p *Program) { p.Outputs[0].Name = "" }, `output "", %3, has no name of its own`},
		{"two of a name", func(p *Program) { p.Outputs[0].Name = "painted" }, `output "painted", %5, has no name of its own`},
		{"an output that is an input", func(p *Program) { p.Outputs[0].Value = 0 },
			"output features is value 0, which no node writes"},
		{"an output of nowhere", func(p *Program) { p.Outputs[1].Value = 9 }, "output painted is value 9"},
		{"an input that is written", func(p *Program) { p.Inputs[0].Value = 1 }, "writes value 1 a second time"},
		{"an input of nowhere", func(p *Program) { p.Inputs[0].Value = 9 }, "input picture is value 9 of 6"},
		{"an input that is not read", func(p *Program) {
			p.Widths, p.Inputs = append(p.Widths, 4), append(p.Inputs, Input{"other", 6})
		}, "input other is not read"},
		{"an output that is not carried", func(p *Program) { p.Segments[1].Carries = nil },
			"block 1 carries, and later segments read %5"},
		{"an even size", func(p *Program) { p.Segments[0].Nodes[0].Size = 2 }, "27 features of 2 × 2 rows of 3"},
		{"parts of pictures", func(p *Program) { p.Whole = false }, "need whole texts or pictures"},
	} {
		p := paint(t)
		c.edit(p)
		require.ErrorContains(t, Check(p), c.want, c.name)
	}
	p := record(t, nil)
	p.Inputs = nil
	require.ErrorContains(t, Check(p), "embed, node 0, embed: token ids are no input", "a text without tokens")
}

// TestGridAround: what is beyond an edge is not there, and neighbours in a line are no neighbours across its ends.
func TestGridAround(t *testing.T) {
	g := Grid{Height: 3, Width: 4}
	require.Equal(t, []int{-1, -1, -1, -1, 0, 1, -1, 4, 5}, g.Around(12, 0, 3, nil))
	require.Equal(t, []int{0, 1, 2, 4, 5, 6, 8, 9, 10}, g.Around(12, 5, 3, nil))
	require.Equal(t, []int{2, 3, -1, 6, 7, -1, 10, 11, -1}, g.Around(12, 7, 3, nil))
	require.Equal(t, []int{-1, -1, -1, 2, 3, 4, -1, -1, -1}, Grid{}.Around(12, 3, 3, nil), "a line")
}
