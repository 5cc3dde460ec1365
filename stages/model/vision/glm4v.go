package vision

import "github.com/sluice-ai/sluice/internal/ir"

// GLM 4 V: as Qwen 2.5 VL, without windows; a norm of the patches, and learned positions between which others are found
// by cubic curves. Squares of patches become rows by a convolution, and a network with a gate follows. Paper:
// arXiv:2507.01006; checked against llama.cpp, glm4v, which finds positions between others by straight lines.
func glm4v(r *outline) {
	r.Merge, r.inner = r.countOr("spatial_merge_size", mostSide, 2), true
	r.square(cubic)
	b := r.patches
	x := r.byRMS(r.twoFrames(), "v.norm_embd")
	x = r.record(b.Add(x, b.Input(Positions, r.width, true)), layer{norm: r.byRMS, turn: r.axial(),
		needs: []string{"ffn_gate"}})
	b.Output(Patches, r.byRMS(x, "v.post_ln"))

	const eps = 1e-5 // that of the library's layer norms
	b = r.rows
	x = b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	x = b.Linear(x, "mm.patch_merger", r.outputs("mm.patch_merger"))
	x = b.LayerNorm(b.Linear(x, "mm.model.fc", r.outputs("mm.model.fc")), "mm.post_norm", eps)
	x = b.Act(ir.GELUErf, x)
	n := r.outputs("mm.gate")
	x = b.SwiGLU(b.Linear(x, "mm.gate", n), b.Linear(x, "mm.up", n))
	r.last = b.Output(Rows, b.Linear(x, "mm.down", r.outputs("mm.down")))
}
