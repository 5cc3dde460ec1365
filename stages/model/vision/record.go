package vision

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// The largest values that are believed.
const (
	mostLayers = 1 << 8
	mostWidth  = 1 << 16
	mostSide   = 1 << 14 // pixels
)

// outline records a tower's programs.
type outline struct {
	*Tower
	meta          *meta.Map
	shapes        map[string][]int
	patches, rows *ir.Builder
	last          ir.Value // of rows
	faults        []error

	layers, width, ffn, heads int
	eps                       float32
}

func newOutline(m *meta.Map, tensors []Tensor) *outline {
	r := &outline{Tower: &Tower{Merge: 1}, meta: m, shapes: map[string][]int{}}
	for i := range tensors {
		r.shapes[tensors[i].Name] = tensors[i].Shape
	}
	has := func(name string) bool { return r.shapes[name] != nil }
	r.patches, r.rows = ir.NewBuilder("clip", has), ir.NewBuilder("clip", has)
	r.patches.Ignore("mm.", "v.deepstack.", "v.post_ln.")
	r.rows.Ignore("v.")
	r.Patch = r.count("patch_size", mostSide)
	r.layers, r.width = r.count("block_count", mostLayers), r.count("embedding_length", mostWidth)
	r.ffn, r.heads = r.count("feed_forward_length", mostWidth), r.count("attention.head_count", mostWidth)
	r.eps = r.number("attention.layer_norm_epsilon")
	r.Mean, r.Spread = r.three("image_mean"), r.three("image_std")
	if r.width%r.heads != 0 {
		r.faultf("clip.vision.attention.head_count is %d, want a divisor of the width, %d", r.heads, r.width)
		r.heads = 1
	}
	return r
}

func (r *outline) faultf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// count reads a number from 1 to most.
func (r *outline) count(name string, most int) int {
	n, err := r.meta.Int("clip.vision." + name)
	if err == nil && (n < 1 || n > int64(most)) {
		err = fmt.Errorf("clip.vision.%s: is %d, want 1 to %d", name, n, most)
	}
	if err != nil {
		r.faults = append(r.faults, err)
		return 1
	}
	return int(n)
}

// countOr is count for a key that may be missing.
func (r *outline) countOr(name string, most, otherwise int) int {
	if !r.meta.Has("clip.vision." + name) {
		return otherwise
	}
	return r.count(name, most)
}

func (r *outline) number(name string) float32 {
	x, err := r.meta.Float("clip.vision." + name)
	if err == nil && (!(x >= 0) || x > math.MaxFloat32) {
		err = fmt.Errorf("clip.vision.%s: is %v, want a number from 0 on", name, x)
	}
	if err != nil {
		r.faults = append(r.faults, err)
	}
	return float32(x)
}

// three reads a number for each colour.
func (r *outline) three(name string) []float32 {
	x, err := r.meta.Floats("clip.vision." + name)
	if err == nil && len(x) != 3 {
		err = fmt.Errorf("clip.vision.%s: has %d numbers, want 3", name, len(x))
	}
	if err != nil {
		r.faults = append(r.faults, err)
	}
	return x
}

// side reads the side of all pictures, and returns how many patches that is.
func (r *outline) side() int {
	r.Image = r.count("image_size", mostSide)
	if r.Image%r.Patch != 0 {
		r.faultf("clip.vision.image_size is %d, want a multiple of the patches' %d", r.Image, r.Patch)
	}
	return max(1, r.Image/r.Patch)
}

// act is the activation between two matrices: what the keys say, or otherwise CLIP's own x·σ(1.702·x).
func (r *outline) act(b *ir.Builder, x ir.Value) ir.Value {
	const quick = 1.702
	gelu, _ := r.meta.Bool("clip.use_gelu")
	silu, _ := r.meta.Bool("clip.use_silu")
	switch {
	case gelu:
		return b.Act(ir.GELU, x)
	case silu:
		return b.Act(ir.SiLU, x)
	}
	return b.Scale(b.Act(ir.SiLU, b.Scale(x, quick)), 1/float32(quick))
}

// up and down are the matrices of layer l between which the activation is. Older files have their names exchanged.
func (r *outline) network(b *ir.Builder, l int, x ir.Value) ir.Value {
	up, down := blk(l, "ffn_up"), blk(l, "ffn_down")
	if s := r.shapes[up+".weight"]; len(s) == 2 && s[0] == r.ffn && r.ffn != r.width {
		up, down = down, up
	}
	return b.Linear(r.act(b, b.Linear(x, up, r.ffn)), down, r.width)
}

func blk(l int, name string) string { return "v.blk." + strconv.Itoa(l) + "." + name }

// attend is attention among a picture's patches, or those of a window.
func (r *outline) attend(b *ir.Builder, l int, q, k, v ir.Value) ir.Value {
	d := r.width / r.heads
	a := ir.AttendArgs{Heads: r.heads, KVHeads: r.heads, KDim: d, VDim: d, Both: true,
		Scale: float32(1 / math.Sqrt(float64(d)))}
	return b.Linear(b.Attend(q, k, v, a), blk(l, "attn_out"), r.width)
}

// clip records the layers of CLIP and SigLIP: learned positions by number, and layer norms.
func (r *outline) clip() ir.Value {
	b, side := r.patches, r.side()
	patches := b.Input(Patches, 3*r.Patch*r.Patch, true)
	n := side * side
	if r.class {
		n++
		first := b.Input(First, r.width, true)
		b.Block()
		x := b.Linear(patches, patchMatrix, r.width)
		return r.clipLayers(b.Position(b.Add(x, b.Affine(first, "v.class_embd", r.width, "", 0)), positions, n))
	}
	b.Block()
	return r.clipLayers(b.Position(b.Linear(patches, patchMatrix, r.width), positions, n))
}

func (r *outline) clipLayers(x ir.Value) ir.Value {
	b := r.patches
	if b.Has("v.pre_ln.weight") {
		x = b.LayerNorm(x, "v.pre_ln", r.eps)
	}
	r.Windowed = append(r.Windowed, false)
	for l := range r.layers {
		b.Block()
		r.Windowed = append(r.Windowed, false)
		n := b.LayerNorm(x, blk(l, "ln1"), r.eps)
		q, k, v := b.Linear(n, blk(l, "attn_q"), r.width), b.Linear(n, blk(l, "attn_k"), r.width),
			b.Linear(n, blk(l, "attn_v"), r.width)
		x = b.Add(x, r.attend(b, l, q, k, v))
		x = b.Add(x, r.network(b, l, b.LayerNorm(x, blk(l, "ln2"), r.eps)))
	}
	return x
}

// LLaVA 1.5: CLIP without its last layers and last norm, whose class is left out, and two matrices. Paper:
// arXiv:2310.03744; checked against transformers, modeling_llava.py.
func llava(r *outline) {
	r.class = r.shapes["v.class_embd"] != nil
	r.patches.Output(Patches, r.clip())
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
	x := r.clip()
	r.Both = true
	r.patches.Output(Patches, r.patches.LayerNorm(x, "v.post_ln", r.eps))
	r.Merge = r.countOr("projector.scale_factor", mostSide, 4)
	if side := r.Image / r.Patch; side%r.Merge != 0 {
		r.faultf("clip.vision.projector.scale_factor is %d, want a divisor of %d patches", r.Merge, side)
	}
	b, n := r.rows, r.Merge*r.Merge
	all := b.Input(Patches, n*r.width, true)
	b.Block()
	sum := b.Slice(all, 0, r.width)
	for i := 1; i < n; i++ {
		sum = b.Add(sum, b.Slice(all, i*r.width, r.width))
	}
	mean := b.RMSNorm(b.Scale(sum, 1/float32(n)), "mm.soft_emb_norm", r.eps)
	r.last = b.Output(Rows, b.Linear(mean, "mm.input_projection", r.outputs("mm.input_projection")))
}

// axial is RoPE whose first half turns by lines, and whose second half by columns.
func (r *outline) axial() ir.RoPEArgs {
	const base = 10000
	d := r.width / r.heads
	a := ir.RoPEArgs{HeadDim: d, Dims: d, Mscale: 1}
	if d%4 != 0 {
		r.faultf("heads have %d values, want a multiple of 4", d)
		return a
	}
	for axis := range 2 {
		for i := range d / 4 {
			a.Freq = append(a.Freq, math.Pow(base, -4*float64(i)/float64(d)))
			a.Axes = append(a.Axes, uint8(1+axis))
		}
	}
	return a
}

// twoFrames is the product with a patch that stands for two frames of a film.
func (r *outline) twoFrames(b *ir.Builder) ir.Value {
	patches := b.Input(Patches, 3*r.Patch*r.Patch, true)
	b.Block()
	r.Windowed = append(r.Windowed, false)
	return b.Add(b.Linear(patches, patchMatrix, r.width), b.Linear(patches, secondMatrix, r.width))
}

// Qwen 2.5 VL: RMS norms, RoPE by lines and columns, windows in most layers, and a merger of 2 × 2 patches. Paper:
// arXiv:2502.13923; checked against transformers, modeling_qwen2_5_vl.py.
func qwen25(r *outline) {
	r.Merge = r.countOr("spatial_merge_size", mostSide, 2)
	r.window = r.countOr("window_size", mostSide, 112) / r.Merge / r.Patch
	if r.window < 1 {
		r.faultf("clip.vision.window_size is less than what becomes one row, %d pixels", r.Merge*r.Patch)
	}
	whole, rope, b := r.wholeLayers(), r.axial(), r.patches
	x := r.twoFrames(b)
	for l := range r.layers {
		b.Block()
		r.Windowed = append(r.Windowed, !whole(l))
		n := b.RMSNorm(x, blk(l, "ln1"), r.eps)
		q, k := b.Linear(n, blk(l, "attn_q"), r.width), b.Linear(n, blk(l, "attn_k"), r.width)
		v := b.Linear(n, blk(l, "attn_v"), r.width)
		x = b.Add(x, r.attend(b, l, b.Rope(q, rope, ""), b.Rope(k, rope, ""), v))
		n = b.RMSNorm(x, blk(l, "ln2"), r.eps)
		gate, up := b.Linear(n, blk(l, "ffn_gate"), r.ffn), b.Linear(n, blk(l, "ffn_up"), r.ffn)
		x = b.Add(x, b.Linear(b.SwiGLU(gate, up), blk(l, "ffn_down"), r.width))
	}
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
	rope, b := r.axial(), r.patches
	deep, err := r.meta.Bools("clip.vision.is_deepstack_layers")
	if err != nil {
		r.faults = append(r.faults, err)
	}
	if s := r.shapes[PositionTable]; len(s) == 2 {
		r.grid = int(math.Sqrt(float64(s[1])))
	}
	if s := r.shapes[PositionTable]; r.grid < 1 || s[1] != r.grid*r.grid || s[0] != r.width {
		r.faultf("tensor %s is %v, want a square of positions of %d values", PositionTable, s, r.width)
	}
	b.Ignore(PositionTable)
	x := r.twoFrames(b)
	x = b.Add(x, b.Input(Positions, r.width, true))
	var layers []int
	for l := range r.layers {
		b.Block()
		r.Windowed = append(r.Windowed, false)
		qkv := b.Linear(b.LayerNorm(x, blk(l, "ln1"), r.eps), blk(l, "attn_qkv"), 3*r.width)
		q, k := b.Rope(b.Slice(qkv, 0, r.width), rope, ""), b.Rope(b.Slice(qkv, r.width, r.width), rope, "")
		x = b.Add(x, r.attend(b, l, q, k, b.Slice(qkv, 2*r.width, r.width)))
		x = b.Add(x, r.network(b, l, b.LayerNorm(x, blk(l, "ln2"), r.eps)))
		if l < len(deep) && deep[l] {
			b.Output(Deep+strconv.Itoa(len(layers)), x)
			layers = append(layers, l)
		}
	}
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
