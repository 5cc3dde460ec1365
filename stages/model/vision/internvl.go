package vision

import "github.com/sluice-ai/sluice/internal/ir"

// InternVL: a picture is squares that do not see each other, of which the last one is all of it. CLIP's layers with
// factors for what each adds, of the largest tower with RMS norms; squares of patches are joined. Papers:
// arXiv:2404.16821, arXiv:2504.10479; checked against llama.cpp, internvl, which adds to each patch the position of the
// patch before it.
func internVL(r *outline) {
	r.Tiles, r.class, r.gelu = true, true, ir.GELUErf
	side := r.side()
	r.shuffle(2)
	b, norm := r.patches, r.byLayer
	if r.shapes[blk(0, "ln1.bias")] == nil {
		norm = r.byRMS
	}
	patches, first := b.Input(Patches, 3*r.Patch*r.Patch, true), b.Input(First, r.width, true)
	b.Block()
	class := b.Affine(first, "v.class_embd", r.width, "", 0)
	if bias := patchMatrix + ".bias"; b.Has(bias) { // the class is no patch
		class = b.Add(class, b.Scale(b.Affine(first, bias, r.width, "", 0), -1))
	}
	x := b.Add(b.Linear(patches, patchMatrix, r.width), class)
	x = b.Position(x, positions, side*side+1)
	b.Output(Patches, r.record(x, layer{norm: norm, needs: []string{"ls1", "ls2"}}))

	const eps = 1e-5 // that of the library's layer norms
	b = r.rows
	x = b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	x = b.LayerNorm(x, "mm.model.mlp.0", eps)
	x = b.Act(ir.GELUErf, b.Linear(x, "mm.model.mlp.1", r.outputs("mm.model.mlp.1")))
	r.last = b.Output(Rows, b.Linear(x, "mm.model.mlp.3", r.outputs("mm.model.mlp.3")))
}
