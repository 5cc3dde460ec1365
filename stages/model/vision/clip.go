package vision

import (
	"github.com/sluice-ai/sluice/internal/ir"
)

// clip records the layers of CLIP and SigLIP: learned positions by number, and layer norms. turn is of queries and
// keys, if they turn.
func (r *outline) clip(turn func() func(ir.Value) ir.Value) ir.Value {
	b, side := r.patches, r.side()
	patches := b.Input(Patches, 3*r.Patch*r.Patch, true)
	n := side * side
	if r.class {
		n++
		first := b.Input(First, r.width, true)
		b.Block()
		x := b.Linear(patches, patchMatrix, r.width)
		return r.clipLayers(b.Position(b.Add(x, b.Affine(first, "v.class_embd", r.width, "", 0)), positions, n), turn)
	}
	b.Block()
	return r.clipLayers(b.Position(b.Linear(patches, patchMatrix, r.width), positions, n), turn)
}

func (r *outline) clipLayers(x ir.Value, turn func() func(ir.Value) ir.Value) ir.Value {
	if b := r.patches; b.Has("v.pre_ln.weight") {
		x = b.LayerNorm(x, "v.pre_ln", r.eps)
	}
	of := layer{norm: r.byLayer}
	if turn != nil {
		of.turn = turn()
	}
	return r.record(x, of)
}

// LLaVA 1.5: CLIP without its last layers and last norm, whose class is left out, and two matrices. Paper:
// arXiv:2310.03744; checked against transformers, modeling_llava.py.
func llava(r *outline) {
	r.class = r.shapes["v.class_embd"] != nil
	r.patches.Output(Patches, r.clip(nil))
	b := r.rows
	x := b.Input(Patches, r.width, true)
	b.Block()
	x = b.Act(ir.GELUErf, b.Linear(x, "mm.0", r.outputs("mm.0")))
	r.last = b.Output(Rows, b.Linear(x, "mm.2", r.outputs("mm.2")))
}

// outputs is how many rows a matrix has: the width of texts, which no key has in all files.
func (r *outline) outputs(name string) int {
	if s := r.shapes[name+".weight"]; len(s) == 2 {
		return max(1, s[1])
	}
	r.faultf("tensor %s.weight is missing or no matrix: is this the projector that belongs to the model?", name)
	return 1
}

// Gemma 3: SigLIP, means of squares of patches, an RMS norm and a matrix. Paper: arXiv:2503.19786; checked against
// transformers, modeling_gemma3.py.
func gemma3(r *outline) {
	x := r.clip(nil)
	r.Both = true
	r.patches.Output(Patches, r.patches.LayerNorm(x, "v.post_ln", r.eps))
	r.shuffle(4)
	b := r.rows
	all := b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	mean := b.RMSNorm(r.mean(all, 1), "mm.soft_emb_norm", r.eps)
	r.last = b.Output(Rows, b.Linear(mean, "mm.input_projection", r.outputs("mm.input_projection")))
}

// mean is the mean of the patches that become one row, times a factor.
func (r *outline) mean(all ir.Value, factor float32) ir.Value {
	b, n := r.rows, r.Merge*r.Merge
	sum := b.Slice(all, 0, r.width)
	for i := 1; i < n; i++ {
		sum = b.Add(sum, b.Slice(all, i*r.width, r.width))
	}
	return b.Scale(sum, factor/float32(n))
}
