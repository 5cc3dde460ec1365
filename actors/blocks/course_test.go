package blocks

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// halting records three segments, of which the second reads an input that comes after the first one's output, and a
// value of the first.
func halting(b *ir.Builder) {
	x, late := b.Input("in", 8, false), b.Input("late", 8, false)
	b.Block()
	x = b.Linear(x, "one", 8)
	b.Output("first", b.Scale(x, 2))
	b.Block()
	x = b.Affine(b.Add(x, late), "gate", 8, "", 0)
	b.Output("second", x)
	b.Block()
	b.Output("third", b.Linear(x, "two", 8))
}

// TestCourse: segments that are computed one by one leave what a whole step does, and a weight that was set counts from
// the next step on.
func TestCourse(t *testing.T) {
	processor, err := cpu.New(2, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	for _, d := range []backend.Device{ref.New(), processor} {
		p := random(t, halting, func(p *ir.Program) [][]int { return [][]int{p.All()} })
		in := map[string][]float32{"in": some(5 * 8), "late": some(5 * 8)}
		var before map[string][]float32
		for range 2 {
			want, err := p.Run(d, func(int) []ir.Grid { return []ir.Grid{{Height: 1, Width: 5}} }, nil, in)
			require.NoError(t, err)
			require.False(t, before != nil && slices.Equal(before["third"], want["third"]), "a weight that was set changes nothing")
			before = want
			c, err := p.Begin(d, 5, nil)
			require.NoError(t, err)
			got := map[string][]float32{}
			for _, name := range []string{"in", "late", ""} {
				out, err := c.Next(map[string][]float32{name: in[name]})
				require.NoError(t, err)
				require.Len(t, out, 1)
				maps.Copy(got, out)
			}
			require.NoError(t, c.End())
			require.Equal(t, want, got)
			require.NoError(t, p.Set("gate", []float32{1, 2, 3, 4, 5, 6, 7, 8}))
		}
		require.ErrorContains(t, p.Set("gate", nil), `no weight "gate" of 0 numbers`)
		c, err := p.Begin(d, 5, nil)
		require.NoError(t, err)
		_, err = c.Next(nil)
		require.Error(t, err, "an input is missing")
		require.Error(t, c.End())
		require.NoError(t, p.Close())
	}
	p := random(t, halting, each)
	_, err = p.Begin(ref.New(), 5, nil)
	require.ErrorContains(t, err, "a network of 3 runs, want one")
}
