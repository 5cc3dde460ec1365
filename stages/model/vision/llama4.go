package vision

import (
	"github.com/sluice-ai/sluice/internal/ir"
)

// Llama 4: CLIP's layers with learned positions and RoPE by columns and lines, counted from 1; the class, which stands
// behind the patches, is at 0. Squares of patches are joined by two matrices without biases, after each of which is an
// activation. Pictures are cut as those of Idefics 3. Checked against llama.cpp, llama4.
func llama4(r *outline) {
	r.class, r.behind, r.first, r.gelu = true, true, 1, ir.GELUErf
	x := r.clip(r.pairs)
	r.shuffle(2)
	r.patches.Output(Patches, r.patches.LayerNorm(x, "v.post_ln", r.eps))
	b := r.rows
	x = b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	for _, name := range []string{"mm.model.mlp.1", "mm.model.mlp.2"} {
		x = b.Act(ir.GELUErf, b.Linear(x, name, r.outputs(name)))
	}
	r.last = b.Output(Rows, b.Linear(x, "mm.model.fc", r.outputs("mm.model.fc")))
}

// pairs is RoPE of neighbours, whose first half turns by columns, and whose second half by lines.
func (r *outline) pairs() func(x ir.Value) ir.Value {
	return r.neighbours(func(half, i int) (exponent int, axis uint8) { return 4 * i, uint8(2 - half) })
}
