package vision

import (
	"math"
	"slices"
	"strconv"

	"github.com/sluice-ai/sluice/internal/ir"
)

// axial is RoPE whose first half turns by lines, and whose second half by columns.
func (r *outline) axial() func(x ir.Value) ir.Value {
	const base = 10000
	d := r.width / r.heads
	a := ir.RoPEArgs{HeadDim: d, Dims: d, Mscale: 1}
	if d%4 != 0 {
		r.faultf("heads have %d values, want a multiple of 4", d)
		return nil
	}
	for axis := range 2 {
		for i := range d / 4 {
			a.Freq = append(a.Freq, math.Pow(base, -4*float64(i)/float64(d)))
			a.Axes = append(a.Axes, uint8(1+axis))
		}
	}
	return func(x ir.Value) ir.Value { return r.patches.Rope(x, a, "") }
}

// twoFrames is the product with a patch that stands for two frames of a film.
func (r *outline) twoFrames() ir.Value {
	b := r.patches
	patches := b.Input(Patches, 3*r.Patch*r.Patch, true)
	b.Block()
	return b.Add(b.Linear(patches, patchMatrix, r.width), b.Linear(patches, secondMatrix, r.width))
}

// Qwen 2 VL: layer norms, RoPE by lines and columns, CLIP's activation, and a merger of 2 × 2 patches. Paper:
// arXiv:2409.12191; checked against llama.cpp, qwen2vl.
func qwen2(r *outline) {
	r.Merge = r.countOr("spatial_merge_size", mostSide, 2)
	x := r.record(r.twoFrames(), layer{norm: r.byLayer, turn: r.axial()})
	r.patches.Output(Patches, r.byLayer(x, "v.post_ln"))
	r.merger()
}

// Qwen 2.5 VL: RMS norms, RoPE by lines and columns, windows in most layers, and a merger of 2 × 2 patches. Paper:
// arXiv:2502.13923; checked against transformers, modeling_qwen2_5_vl.py.
func qwen25(r *outline) {
	r.Merge = r.countOr("spatial_merge_size", mostSide, 2)
	r.window = r.countOr("window_size", mostSide, 112) / r.Merge / r.Patch
	if r.window < 1 {
		r.faultf("clip.vision.window_size is less than what becomes one row, %d pixels", r.Merge*r.Patch)
	}
	b := r.patches
	x := r.record(r.twoFrames(), layer{norm: r.byRMS, turn: r.axial(), whole: r.wholeLayers(),
		needs: []string{"ffn_gate"}})
	b.Output(Patches, b.RMSNorm(x, "v.post_ln", r.eps))
	r.merger()
}

// wholeLayers says which layers have no windows: those of a list, or by a pattern each n-th.
func (r *outline) wholeLayers() func(l int) bool {
	if list, err := r.meta.Ints("clip.vision.wa_layer_indexes"); err == nil {
		return func(l int) bool { return slices.Contains(list, int64(l)) }
	}
	n := r.countOr("n_wa_pattern", mostLayers, 0)
	return func(l int) bool { return n == 0 || (l+1)%n == 0 }
}

// merger joins a square of patches to a row of text.
func (r *outline) merger() {
	b := r.rows
	x := b.Input(Patches, r.Merge*r.Merge*r.width, true)
	b.Block()
	x = b.Act(ir.GELUErf, b.Linear(x, "mm.0", r.outputs("mm.0")))
	r.last = b.Output(Rows, b.Linear(x, "mm.2", r.outputs("mm.2")))
}

// Qwen 3 VL: layer norms, learned positions that are interpolated, and layers whose patches are merged and added to
// the text's rows after its first layers. Paper: arXiv:2511.21631; checked against transformers, modeling_qwen3_vl.py.
func qwen3(r *outline) {
	r.Merge = r.countOr("spatial_merge_size", mostSide, 2)
	b := r.patches
	deep, err := r.meta.Bools("clip.vision.is_deepstack_layers")
	if err != nil {
		r.faults = append(r.faults, err)
	}
	r.square(linear)
	x := r.twoFrames()
	x = b.Add(x, b.Input(Positions, r.width, true))
	var layers []int
	x = r.record(x, layer{norm: r.byLayer, turn: r.axial(), after: func(l int, x ir.Value) {
		if l < len(deep) && deep[l] {
			b.Output(Deep+strconv.Itoa(len(layers)), x)
			layers = append(layers, l)
		}
	}})
	b.Output(Patches, b.LayerNorm(x, "v.post_ln", r.eps))
	r.merger()
	r.deepMergers(layers)
}

// deepMergers joins the patches of earlier layers, each by matrices of its own.
func (r *outline) deepMergers(layers []int) {
	b := r.rows
	for i, l := range layers {
		name := "v.deepstack." + strconv.Itoa(l) + "."
		x := b.Input(Deep+strconv.Itoa(i), r.Merge*r.Merge*r.width, true)
		b.Block()
		x = b.LayerNorm(x, name+"norm", r.eps)
		x = b.Act(ir.GELUErf, b.Linear(x, name+"fc1", r.outputs(name+"fc1")))
		b.Output(Deep+strconv.Itoa(i), b.Linear(x, name+"fc2", r.outputs(name+"fc2")))
	}
	r.Deeps = len(layers)
}
