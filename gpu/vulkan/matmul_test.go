//go:build cgo && linux

package vulkan

import (
	"fmt"
	"testing"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// mulPaths are the ways that a device has to multiply many columns.
func (g *gpu) mulPaths() map[string]func() {
	paths := map[string]func(){"plain": func() { g.k.Plain, g.k.Matrix = true, false }}
	if g.d.Facts.Has.Dot4 {
		paths["dot"] = func() { g.k.Plain, g.k.Matrix = false, false }
	}
	if hasMatrix(&g.d.Facts) {
		paths["matrix"] = func() { g.k.Plain, g.k.Matrix = false, true }
	}
	return paths
}

// TestMatMul compares many columns with groups of a few, by bits, with all that may follow a product.
func TestMatMul(t *testing.T) {
	g := open(t)
	defer func() { g.k.Plain, g.k.Matrix = !g.d.Facts.Has.Dot4, hasMatrix(&g.d.Facts) }()
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q3_K, quant.Q5_K} {
		for _, c := range []struct {
			rows, cols, columns int
			glue                Glue
		}{{300, 768, 17, Store}, {130, 256, 70, Store}, {70, 512, 40, SwiGLU}, {300, 256, 33, SwiGLUToInt8}} {
			if g.d.Facts.Kind == vk.CPU && c.columns != 17 && typ != quant.Q4_K {
				continue // compiling takes seconds
			}
			t.Run(fmt.Sprint(typ, c), func(t *testing.T) { testMatMul(g.with(t), typ, c.rows, c.cols, c.columns, c.glue) })
		}
	}
}

func testMatMul(g *gpu, typ quant.Type, rows, cols, columns int, glue Glue) {
	m, err := NewMatrix(typ, rows, cols, glue != Store)
	require.NoError(g.t, err)
	m.Address = g.room(m.Bytes()).Address
	for i := range 2 {
		if file, _ := randomWeights(g.t, typ, rows, cols, uint64(i)); i == 0 || m.Pair {
			from := g.bytes(recoded(g.t, typ, cols, file))
			g.run(func(r *vk.Recording) { require.NoError(g.t, g.k.Pack(r, &m, from.Address, 0, rows, i == 1)) })
		}
	}
	var xs [][]float32
	for c := range columns {
		xs = append(xs, randomRow(cols, uint64(c)))
	}
	stride := PaddedWidth(rows)
	v := MatVec{W: &m, Columns: columns, X: g.activations(typ, xs).Address, YStride: stride, Glue: glue,
		Count: g.words(uint32(columns - 1)).Address}
	if glue == Store {
		v.Bias = g.floats(randomRow(rows, 90)).Address
		v.Residual = g.floats(randomRow(stride*columns, 91)).Address
	}
	run := func(v MatVec) []float32 {
		y := g.room(uint64(4 * stride * columns))
		v.Y = y.Address
		g.run(func(r *vk.Recording) { require.NoError(g.t, g.k.MatVec(r, &v)) })
		return floats(y.Bytes)
	}
	few := v
	few.Groups = 1 << 20 // not by matmul.comp
	g.mulPaths()["plain"]()
	want := run(few)
	for name, choose := range g.mulPaths() {
		if name == "plain" && g.d.Facts.Kind == vk.CPU && typ != quant.Q8_0 {
			continue
		}
		choose()
		_, wide := g.k.mulOf(&v)
		require.Positive(g.t, wide)
		require.True(g.t, g.sameBits(want, run(v)), "by %s, %d wide", name, wide)
	}
}
