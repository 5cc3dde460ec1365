package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// pixels makes a legal program of a convolution and a norm over a picture.
func pixels(t *testing.T) *Program {
	t.Helper()
	b := NewBuilder("test", func(string) bool { return true })
	x := b.Input("picture", 12, true)
	b.Block()
	x = b.Conv2D(x, "w", Conv2DArgs{Size: 3, Side: 2, Up: 1, Stride: 1}, 4)
	b.Output("out", b.Leaky(b.GridNorm(x, "n", 4, 2, 1e-6), 0.2))
	p, err := b.Program(0)
	require.NoError(t, err)
	return p
}

func TestPicturesText(t *testing.T) {
	require.Contains(t, pixels(t).String(), `
  %1[16] = conv2d %0  w.weight  w.bias  size=3 side=2 up=1 stride=1
  %2[16] = grid norm %1  n.weight  n.bias  eps=1e-06 group=2
  %3[16] = leaky %2  0.2
`)
}

// TestCheckFindsFaultsOfPictures: whatever contradicts a convolution's arguments, or a norm's, is found.
func TestCheckFindsFaultsOfPictures(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(p *Program, n []Node)
		want string
	}{
		{"even", func(_ *Program, n []Node) { n[0].Conv2D.Size = 2 }, "a window of 2"},
		{"no cell", func(_ *Program, n []Node) { n[0].Conv2D.Side = 0 }, "cells of 0"},
		{"larger", func(_ *Program, n []Node) { n[0].Conv2D.Up = 3 }, "3 times as large"},
		{"both", func(_ *Program, n []Node) { n[0].Conv2D.Up, n[0].Conv2D.Stride = 2, 2 }, "a stride of 2"},
		{"odd cell", func(_ *Program, n []Node) { n[0].Conv2D.Side, n[0].Conv2D.Stride = 1, 2 }, "a stride of 2"},
		{"cells", func(_ *Program, n []Node) { n[0].Conv2D.Side = 5 }, "do not tile 12 and 16"},
		{"matrix", func(_ *Program, n []Node) { n[0].Conv2D.Side = 1 }, "w.weight is 4×27, want 16×108"},
		{"bias", func(p *Program, n []Node) { p.Weights[n[0].B].Cols = 5 }, "w.bias is 1×5"},
		{"arguments", func(_ *Program, n []Node) { n[0].Conv2D = nil }, "no arguments"},
		{"of another", func(_ *Program, n []Node) { n[1].Conv2D = n[0].Conv2D }, "has arguments of conv2d"},
		{"pieces", func(p *Program, _ []Node) { p.Whole = false }, "need whole texts or pictures"},
		{"groups", func(_ *Program, n []Node) { n[1].Norm.Group = 3 }, "groups of 3 do not tile 4 channels"},
		{"channels", func(p *Program, n []Node) { p.Weights[n[1].W].Cols = 6 }, "do not tile"},
		{"eps", func(_ *Program, n []Node) { n[1].Norm.Eps = -1 }, "eps is -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pixels(t)
			c.edit(p, p.Segments[0].Nodes)
			require.ErrorContains(t, Check(p), c.want)
		})
	}
}

// TestSource: what taps read, of a line of three rows of two pixels.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		name string
		Conv2DArgs
		at   int
		want []int
	}{
		{"edge", Conv2DArgs{Size: 3, Side: 2, Up: 1, Stride: 1}, 0, []int{-1, 0, 1}},
		{"end", Conv2DArgs{Size: 3, Side: 2, Up: 1, Stride: 1}, 5, []int{4, 5, -1}},
		{"one", Conv2DArgs{Size: 1, Side: 2, Up: 1, Stride: 1}, 5, []int{5}},
		{"up", Conv2DArgs{Size: 3, Side: 2, Up: 2, Stride: 1}, 4, []int{1, 2, 2}},
		{"up end", Conv2DArgs{Size: 3, Side: 2, Up: 2, Stride: 1}, 11, []int{5, 5, -1}},
		{"down", Conv2DArgs{Size: 3, Side: 2, Up: 1, Stride: 2}, 0, []int{0, 1, 2}},
		{"down end", Conv2DArgs{Size: 3, Side: 2, Up: 1, Stride: 2}, 2, []int{4, 5, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for tap, want := range c.want {
				require.Equal(t, want, c.Source(c.at, tap, 3))
			}
		})
	}
}
