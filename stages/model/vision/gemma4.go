package vision

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Gemma 4: RMS norms around attention and network, a position of each axis, of which each turns half of a head, means
// of squares of patches. Small towers have limits of what matrices take and give; large ones a bias and a factor for
// each feature of the means, and rows that see each other in the text. Checked against llama.cpp, gemma4v.
func gemma4(r *outline) {
	r.Merge = r.countOr("projector.scale_factor", mostSide, 3)
	s := r.table(3)
	r.learned, r.grid, r.centered = byAxis, s[1], true
	if s[2] != 2 {
		r.faultf("tensor %s is %v, want positions of two axes", PositionTable, s)
	}
	b, d := r.patches, r.width/r.heads
	x := b.Input(Patches, 3*r.Patch*r.Patch, true)
	at := b.Input(Positions, r.width, true)
	b.Block()
	x = b.Add(b.Linear(x, patchMatrix, r.width), at)
	x = r.record(x, layer{norm: r.byRMS, turn: r.halves(), scale: 1,
		needs:  []string{"attn_q_norm", "attn_k_norm", "attn_post_norm", "ffn_gate", "ffn_post_norm"},
		values: func(x ir.Value) ir.Value { return b.BareHeadNorm(x, d, r.eps) }})
	b.Output(Patches, x)

	b.Ignore("v.std_bias", "v.std_scale")
	const bias, factor = "v.std_bias", "v.std_scale"
	if r.Both = r.shapes[bias] != nil; r.Both != (r.shapes[factor] != nil) {
		r.faultf("of the tensors %s and %s one is missing", bias, factor)
	}
	b = r.rows
	x = b.Input(Patches, r.Merge*r.Merge*r.width, true)
	ones := ir.NoValue
	if r.Both {
		ones = r.ones(b, r.width)
	}
	b.Block()
	x = r.mean(x, float32(math.Sqrt(float64(r.width))))
	if r.Both {
		x = b.Affine(b.Add(x, b.Scale(b.Affine(ones, bias, r.width, "", 0), -1)), factor, r.width, "", 0)
	}
	const name = "mm.input_projection"
	r.last = b.Output(Rows, r.linear(b, b.BareHeadNorm(x, r.width, r.eps), name, r.outputs(name)))
}

// halves turns the first half of each head by columns, and the second one by lines, each as a head of its own.
func (r *outline) halves() func(x ir.Value) ir.Value {
	const base = 100
	b, d := r.patches, r.width/r.heads
	if d%4 != 0 {
		r.faultf("heads have %d values, want a multiple of 4", d)
		return nil
	}
	by := func(x ir.Value, from int, axis uint8) ir.Value {
		a := ir.RoPEArgs{HeadDim: d / 2, Dims: d / 2, Mscale: 1}
		for i := range d / 4 {
			a.Freq = append(a.Freq, math.Pow(base, -4*float64(i)/float64(d)))
			a.Axes = append(a.Axes, axis)
		}
		return b.Rope(b.HeadSlice(x, r.heads, from, d/2), a, "")
	}
	return func(x ir.Value) ir.Value { return b.HeadJoin(by(x, 0, 2), by(x, d/2, 1), r.heads) }
}
