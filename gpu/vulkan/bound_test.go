//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

// benchLayers are more than caches hold.
const benchLayers = 8

// bound is a known shape's program in a file type.
func bound(t testing.TB, name, file string, small bool) *ir.Bound {
	c, err := synth.Find(name)
	require.NoError(t, err)
	c.Layers = benchLayers
	if small { // it shows that the benchmark runs
		c.Layers, c.Vocab = 1, 1024
		c.Experts, c.ExpertFFN = min(c.Experts, 16), min(c.ExpertFFN, 256)
		if c.Heads > 0 { // the heads of a state space divide its width
			c.Width, c.FFN, c.Heads, c.KVHeads, c.HeadDim = 512, 512, 4, 2, 128
		}
	}
	md := c.Meta(name)
	p, err := arch.Record(md, c.Has, arch.Options{})
	require.NoError(t, err)
	var before []ftype.Tensor
	for _, x := range c.Tensors(p) {
		typ := quant.F16
		if x.Vector {
			typ = quant.F32
		}
		before = append(before, ftype.Tensor{Name: x.Name, Type: typ, Shape: x.Shape})
	}
	recipe, ok := ftype.Find(file)
	require.True(t, ok)
	types, err := recipe.Types(md, before, ftype.Options{})
	require.NoError(t, err)
	var tensors []ir.Tensor
	for i, x := range before {
		tensors = append(tensors, ir.Tensor{Name: x.Name, Type: types[i], Shape: x.Shape})
	}
	b, err := ir.Bind(p, tensors)
	require.NoError(t, err)
	return b
}
