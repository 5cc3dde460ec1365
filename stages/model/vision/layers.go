package vision

import (
	"math"
	"strconv"

	"github.com/sluice-ai/sluice/internal/ir"
)

// layer is what the layers of a family's tower have of their own.
type layer struct {
	norm   func(x ir.Value, name string) ir.Value
	turn   func(x ir.Value) ir.Value // of queries and keys; nil: they stay as they are
	values func(x ir.Value) ir.Value // likewise
	whole  func(l int) bool          // says which have no windows; nil: all
	scale  float32                   // of scores; 0: what the size of heads says
	after  func(l int, x ir.Value)   // is told what each has made; may be nil
	needs  []string                  // parts that other families do without
}

// record records all layers, and what of their parts the file has.
func (r *outline) record(x ir.Value, of layer) ir.Value {
	r.Windowed = append(r.Windowed, r.Tiles)
	for l := range r.layers {
		r.patches.Block()
		r.Windowed = append(r.Windowed, r.Tiles || of.whole != nil && !of.whole(l))
		for _, part := range of.needs {
			if name := blk(l, part) + ".weight"; r.shapes[name] == nil {
				r.faultf("tensor %s is missing", name)
			}
		}
		x = r.joined(l, x, r.attention(l, of.norm(x, blk(l, "ln1")), &of), "ls1", "attn_post_norm", &of)
		x = r.joined(l, x, r.network(l, of.norm(x, blk(l, "ln2"))), "ls2", "ffn_post_norm", &of)
		if name := blk(l, "out_scale.weight"); r.patches.Has(name) {
			x = r.patches.Affine(x, name, r.values(name), "", 0)
		}
		if of.after != nil {
			of.after(l, x)
		}
	}
	return x
}

// joined adds what a part of a layer has made of x, normalised or scaled where the file says so.
func (r *outline) joined(l int, x, made ir.Value, scale, post string, of *layer) ir.Value {
	b := r.patches
	if name := blk(l, post); b.Has(name + ".weight") {
		made = of.norm(made, name)
	}
	if name := blk(l, scale) + ".weight"; b.Has(name) {
		made = b.Affine(made, name, r.values(name), "", 0)
	}
	return b.Add(x, made)
}

// attention is attention among a picture's patches, or those of a window.
func (r *outline) attention(l int, x ir.Value, of *layer) ir.Value {
	b, d := r.patches, r.width/r.heads
	var q, k, v ir.Value
	if b.Has(blk(l, "attn_qkv.weight")) {
		qkv := r.linear(b, x, blk(l, "attn_qkv"), 3*r.width)
		q, k, v = b.Slice(qkv, 0, r.width), b.Slice(qkv, r.width, r.width), b.Slice(qkv, 2*r.width, r.width)
	} else {
		q, k = r.linear(b, x, blk(l, "attn_q"), r.width), r.linear(b, x, blk(l, "attn_k"), r.width)
		v = r.linear(b, x, blk(l, "attn_v"), r.width)
	}
	q, k = r.headNorm(q, blk(l, "attn_q_norm")), r.headNorm(k, blk(l, "attn_k_norm"))
	if of.turn != nil {
		q, k = of.turn(q), of.turn(k)
	}
	if of.values != nil {
		v = of.values(v)
	}
	a := ir.AttendArgs{Heads: r.heads, KVHeads: r.heads, KDim: d, VDim: d, Both: true, Scale: of.scale}
	if a.Scale == 0 {
		a.Scale = float32(1 / math.Sqrt(float64(d)))
	}
	return r.linear(b, b.Attend(q, k, v, a), blk(l, "attn_out"), r.width)
}

// headNorm normalises queries or keys where the file says so: each head, or all of them as one.
func (r *outline) headNorm(x ir.Value, name string) ir.Value {
	switch b := r.patches; {
	case !b.Has(name + ".weight"):
		return x
	case r.values(name+".weight") == r.width/r.heads:
		return b.HeadNorm(x, name, r.width/r.heads, r.eps)
	default:
		return b.RMSNorm(x, name, r.eps)
	}
}

// values is how many values a vector has.
func (r *outline) values(name string) int {
	if s := r.shapes[name]; len(s) == 1 {
		return max(1, s[0])
	}
	return r.width
}

// network is the network of layer l: with a gate, or without. Older files have the names of its matrices exchanged.
func (r *outline) network(l int, x ir.Value) ir.Value {
	b, up, down := r.patches, blk(l, "ffn_up"), blk(l, "ffn_down")
	if gate := blk(l, "ffn_gate"); b.Has(gate + ".weight") {
		g, u := r.linear(b, x, gate, r.ffn), r.linear(b, x, up, r.ffn)
		return r.linear(b, r.gated(b, g, u), down, r.width)
	}
	if s := r.shapes[up+".weight"]; len(s) == 2 && s[0] == r.ffn && r.ffn != r.width {
		up, down = down, up
	}
	return r.linear(b, r.act(b, r.linear(b, x, up, r.ffn)), down, r.width)
}

// quick is the factor of CLIP's own activation, x·σ(1.702·x).
const quick = 1.702

// act is the activation between two matrices: what the keys say, or otherwise CLIP's own.
func (r *outline) act(b *ir.Builder, x ir.Value) ir.Value {
	if act := r.named(); act != 0 {
		return b.Act(act, x)
	}
	return b.Scale(b.Act(ir.SiLU, b.Scale(x, quick)), 1/float32(quick))
}

// gated is act(gate)·up.
func (r *outline) gated(b *ir.Builder, gate, up ir.Value) ir.Value {
	if act := r.named(); act != 0 {
		return b.GLU(act, gate, up)
	}
	return b.Mul(r.act(b, gate), up)
}

// named is the activation that the keys name; 0: none.
func (r *outline) named() ir.Act {
	if gelu, _ := r.meta.Bool("clip.use_gelu"); gelu {
		return r.gelu
	}
	if silu, _ := r.meta.Bool("clip.use_silu"); silu {
		return ir.SiLU
	}
	return 0
}

func blk(l int, name string) string { return "v.blk." + strconv.Itoa(l) + "." + name }

// linear is a matrix; where the file has limits of what it takes and what it gives, all beyond them is cut.
func (r *outline) linear(b *ir.Builder, x ir.Value, name string, out int) ir.Value {
	x = r.limit(b, x, name+".input")
	return r.limit(b, b.Linear(x, name, out), name+".output")
}

// limit cuts values beyond limits of that name. Those that are not around zero are moved there and back.
func (r *outline) limit(b *ir.Builder, x ir.Value, name string) ir.Value {
	low, has := r.limits[name+"_min"]
	high, also := r.limits[name+"_max"]
	none := func(limit float32) bool { return math.Abs(float64(limit)) >= math.MaxFloat32 }
	if !has && !also || has && also && none(low) && none(high) {
		return x
	}
	if !has || !also || !(low < high) || none(low) || none(high) {
		r.faultf("%s_min is %v and %s_max %v: want two numbers, the second one above the first, or neither", name, low, name,
			high)
		return x
	}
	if low == -high {
		return b.Clip(x, high)
	}
	middle := low/2 + high/2
	ones := r.ones(b, b.Width(x))
	return b.Add(b.Clip(b.Add(x, b.Scale(ones, -middle)), high/2-low/2), b.Scale(ones, middle))
}

// ones is an input that is 1 everywhere.
func (r *outline) ones(b *ir.Builder, width int) ir.Value {
	all := r.constants[b]
	if all == nil {
		all = map[int]ir.Value{}
		r.constants[b] = all
	}
	if _, has := all[width]; !has {
		all[width] = b.Input(Ones+strconv.Itoa(width), width, true)
	}
	return all[width]
}

// byLayer and byRMS are the two norms of towers.
func (r *outline) byLayer(x ir.Value, name string) ir.Value {
	return r.patches.LayerNorm(x, name, r.eps)
}

func (r *outline) byRMS(x ir.Value, name string) ir.Value { return r.patches.RMSNorm(x, name, r.eps) }

// table checks the learned positions: of so many dimensions, the first of a patch's width.
func (r *outline) table(dims int) (at []int) {
	s := r.shapes[PositionTable]
	if len(s) != dims || s[0] != r.width {
		r.faultf("tensor %s is %v, want %d dimensions, the first of %d values", PositionTable, s, dims, r.width)
		return make([]int, dims)
	}
	r.patches.Ignore(PositionTable)
	return s
}

// square reads learned positions that lie in a square.
func (r *outline) square(how learned) {
	s := r.table(2)
	r.learned, r.grid = how, int(math.Sqrt(float64(s[1])))
	if r.grid < 1 || s[1] != r.grid*r.grid {
		r.faultf("tensor %s has %d positions, want a square of them", PositionTable, s[1])
	}
}
