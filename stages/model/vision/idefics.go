package vision

// Idefics 3 and SmolVLM: SigLIP, and a matrix of squares of patches. A picture is cut into squares, each of which is
// seen alone and has its own place in the text. Papers: arXiv:2408.12637, arXiv:2504.05299; checked against llama.cpp,
// idefics3.
func idefics3(r *outline) {
	x := r.clip(nil)
	r.shuffle(2)
	r.patches.Output(Patches, r.patches.LayerNorm(x, "v.post_ln", r.eps))
	b := r.rows
	x = b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	r.last = b.Output(Rows, b.Linear(x, "mm.model.fc", r.outputs("mm.model.fc")))
}
