package vision

import (
	"github.com/sluice-ai/sluice/internal/ir"
)

// Pixtral and Mistral 3: RMS norms, networks with a gate, RoPE by lines and columns; Mistral 3 joins squares of patches
// to one row. After each line of rows but the last, texts have a token of their own. Paper: arXiv:2410.07073; checked
// against llama.cpp, pixtral.
func pixtral(r *outline) {
	const joined = "mm.patch_merger"
	if r.shapes[joined+".weight"] != nil {
		r.Merge, r.inner = r.countOr("spatial_merge_size", mostSide, 1), true
	}
	r.Break = "v.token_embd.img_break"
	b := r.patches
	b.Ignore("v.token_embd.")
	x := b.Input(Patches, 3*r.Patch*r.Patch, true)
	b.Block()
	x = r.byRMS(b.Linear(x, patchMatrix, r.width), "v.pre_ln")
	x = r.record(x, layer{norm: r.byRMS, turn: r.alternate(), needs: []string{"ffn_gate"}})
	if r.inner {
		x = r.byRMS(x, "mm.input_norm")
		r.rows.Ignore("mm.input_norm.")
	}
	b.Output(Patches, x)

	b = r.rows
	x = b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	if r.inner {
		x = b.Linear(x, joined, r.outputs(joined))
	}
	x = b.Act(ir.GELUErf, b.Linear(x, "mm.1", r.outputs("mm.1")))
	r.last = b.Output(Rows, b.Linear(x, "mm.2", r.outputs("mm.2")))
	if s := r.shapes[r.Break]; len(s) != 1 || s[0] != b.Width(r.last) {
		r.faultf("tensor %s has the shape %v, want %d values", r.Break, s, b.Width(r.last))
	}
}

// alternate is RoPE of neighbours: every second frequency turns the first half by lines, the others the second half by
// columns.
func (r *outline) alternate() func(x ir.Value) ir.Value {
	return r.neighbours(func(half, i int) (exponent int, axis uint8) { return 2 * (2*i + half), uint8(1 + half) })
}
