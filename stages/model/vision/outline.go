package vision

import (
	"fmt"
	"math"

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
// Wide: what a file says, read once, and the two programs that are recorded.
type outline struct {
	*Tower
	meta          *meta.Map
	shapes        map[string][]int
	limits        map[string]float32 // by name: numbers among the tensors
	patches, rows *ir.Builder
	last          ir.Value // of rows
	faults        []error

	layers, width, ffn, heads int
	eps                       float32
	gelu                      ir.Act // what clip.use_gelu means

	constants map[*ir.Builder]map[int]ir.Value // inputs that are 1 everywhere, by width
}

func newOutline(m *meta.Map, tensors []Tensor) *outline {
	r := &outline{Tower: &Tower{Merge: 1}, meta: m, shapes: map[string][]int{}, limits: map[string]float32{},
		gelu: ir.GELU, constants: map[*ir.Builder]map[int]ir.Value{}}
	for i := range tensors {
		r.shapes[tensors[i].Name] = tensors[i].Shape
		if IsNumber(&tensors[i].Tensor) {
			r.limits[tensors[i].Name] = tensors[i].Value
		}
	}
	has := func(name string) bool { return r.shapes[name] != nil }
	r.patches, r.rows = ir.NewBuilder("clip", has), ir.NewBuilder("clip", has)
	r.patches.Ignore("mm.", "v.deepstack.", "v.post_ln.", "a.")
	r.rows.Ignore("v.", "a.", "mm.a.")
	for name := range r.limits {
		r.patches.Ignore(name)
		r.rows.Ignore(name)
	}
	r.Patch = r.count("patch_size", mostSide)
	r.layers, r.width = r.count("block_count", mostLayers), r.count("embedding_length", mostWidth)
	r.ffn, r.heads = r.between(), r.count("attention.head_count", mostWidth)
	r.eps = r.number("attention.layer_norm_epsilon")
	r.three("image_mean")
	r.three("image_std")
	if r.width%r.heads != 0 {
		r.faultf("clip.vision.attention.head_count is %d, want a divisor of the width, %d", r.heads, r.width)
		r.heads = 1
	}
	return r
}

func (r *outline) faultf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// between is how many values a network has between its matrices. Files of the first Qwen 2 VL say 0.
func (r *outline) between() int {
	const key = "feed_forward_length"
	if n, err := r.meta.Int("clip.vision." + key); err == nil && n == 0 {
		if s := r.shapes[blk(0, "ffn_up.weight")]; len(s) == 2 {
			return min(max(s[0], s[1], 1), mostWidth)
		}
	}
	return r.count(key, mostWidth)
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

// three checks that there is a number for each colour.
func (r *outline) three(name string) {
	x, err := r.meta.Floats("clip.vision." + name)
	if err == nil && len(x) != 3 {
		err = fmt.Errorf("clip.vision.%s: has %d numbers, want 3", name, len(x))
	}
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

// side reads the side of all pictures, and returns how many patches that is.
func (r *outline) side() int {
	r.Image = r.count("image_size", mostSide)
	if r.Image%r.Patch != 0 {
		r.faultf("clip.vision.image_size is %d, want a multiple of the patches' %d", r.Image, r.Patch)
	}
	return max(1, r.Image/r.Patch)
}

// shuffle reads how many patches at a side become one row, of a square that all pictures are.
func (r *outline) shuffle(otherwise int) {
	r.Merge = r.countOr("projector.scale_factor", mostSide, otherwise)
	if side := max(1, r.Image/r.Patch); side%r.Merge != 0 {
		r.faultf("clip.vision.projector.scale_factor is %d, want a divisor of %d patches", r.Merge, side)
	}
}

// neighbours is RoPE of neighbours by two axes. of says for each pair of a half by which axis it turns, and its
// frequency: base^(-exponent/width of a head).
func (r *outline) neighbours(of func(half, i int) (exponent int, axis uint8)) func(x ir.Value) ir.Value {
	const base = 10000
	d := r.width / r.heads
	a := ir.RoPEArgs{HeadDim: d, Dims: d, Mscale: 1, Interleaved: true}
	if d%4 != 0 {
		r.faultf("heads have %d values, want a multiple of 4", d)
		return nil
	}
	for half := range 2 {
		for i := range d / 4 {
			exponent, axis := of(half, i)
			a.Freq = append(a.Freq, math.Pow(base, -float64(exponent)/float64(d)))
			a.Axes = append(a.Axes, axis)
		}
	}
	return func(x ir.Value) ir.Value { return r.patches.Rope(x, a, "") }
}
