package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// mostNormed is the most workgroups that may normalise the same input, each for itself: it costs each of them about a
// µs for 4096 values.
const mostNormed = 512

// inline says whether products normalise their input themselves in this stream. The bits are the same.
func (x *stream) inline(in *input) bool {
	if in.norm == nil || x.n != 1 || x.shape.Prompt {
		return false
	}
	for _, p := range in.products {
		v := kernel.MatVec{W: p.w, Columns: 1, Gain: 1}
		if p.times*p.w.RowTiles()/v.RowTilesAtOnce() > mostNormed || !x.target.Kernels.Fits(&v) {
			return false
		}
	}
	return true
}

// give sets what a product takes: what is prepared, or what it normalises itself.
func (x *stream) give(v *kernel.MatVec, in *input) {
	if x.inline(in) {
		v.Gain, v.Eps = x.target.Weights.Vector(in.norm.W), in.norm.Norm.Eps
		v.X, v.XStride = x.where(in.x), stride(in.x.b)
		return
	}
	v.X, v.XStride = x.blob(in.b), kernel.PaddedWidth(v.W.Cols)
}

// reads lists the buffers that a product may read: the prepared input, and what it would normalise itself.
func (in *input) reads() []*live.Buffer {
	if in.norm != nil {
		return of(in.b, in.x.b)
	}
	return of(in.b)
}

// taken returns the input of a node in the form that a matrix takes, and notes that it does; times: how often a row
// takes it.
func (l *planner) taken(n *ir.Node, w *kernel.Matrix, times int) *input {
	in := l.inputs[live.Prepared{Value: n.In[0], Form: formOf(w)}]
	in.products = append(in.products, taker{w, times})
	return in
}

// product is the launch of a product of a matrix with all rows.
type product struct {
	k        kernel.MatVec // complete but for addresses and columns
	in       *input
	y        place
	residual *place       // nil: none
	half     *live.Buffer // memory for rows in half precision; nil: none
}

func (l *planner) product(in *input, k kernel.MatVec, y place, residual *place) {
	x := &product{k: k, in: in, y: y, residual: residual}
	reads, writes := in.reads(), of(y.b)
	if residual != nil {
		reads = append(reads, residual.b)
	}
	if l.target.Apart && l.target.Kernels.Rounded(k.W.Type) {
		x.half = l.blob(l.Capacity(l.wanted) * kernel.HalfBytes(k.W.Cols))
		writes = append(writes, x.half)
	}
	l.launch(x, reads, writes)
}

func (p *product) emit(x *stream) {
	k := p.k
	k.W = x.matrix(k.W)
	x.give(&k, p.in)
	if p.half != nil && x.shape.Prompt {
		k.Halves = x.blob(p.half)
	}
	k.Columns, k.Count, k.Y, k.YStride = x.n, x.count(0), x.where(p.y), stride(p.y.b)
	if p.residual != nil {
		k.Residual = x.where(*p.residual)
	}
	x.launch(&k)
}

// multiply plans a product, with those that are stacked with it, and the sum that follows.
func (l *planner) multiply(n *ir.Node) {
	weights := l.target.Weights
	if pieces, group := weights.Pieces(n.W); pieces != nil {
		l.multiplyPieces(n, pieces, group)
		return
	}
	k := kernel.MatVec{W: weights.Matrix(n.W), Bias: weights.Vector(n.B)}
	if s := l.stackOf[n]; s != nil && !s.Pair {
		n = s.nodes[0] // the first one's place is that of all
		if len(s.Biases) > 0 {
			k.Bias = weights.Vector(s.Biases[0])
		}
		for _, other := range s.nodes[1:] {
			l.put(other)
			l.done[other] = true
		}
		l.done[n] = true
		l.product(l.taken(n, k.W, 1), k, l.put(n), nil)
		return
	}
	if l.target.Team.divides(n.Out) {
		l.multiplyPart(n, k)
		return
	}
	in := l.taken(n, k.W, 1)
	y, residual := l.putSum(n)
	l.product(in, k, y, residual)
}

// putSum is where a node's result goes, or its sum with something, if there is an Add that can be part of it: then that
// is the residual.
func (l *planner) putSum(n *ir.Node) (y place, residual *place) {
	add := l.sums[n]
	if add == nil {
		return l.put(n), nil
	}
	other := add.In[0]
	if other == n.Out {
		other = add.In[1]
	}
	if _, ok := l.of[l.values.Root[other]]; !ok || l.norms[other] != nil {
		l.within[add] = false // what it is added to comes later
		return l.put(n), nil
	}
	r := l.place(other)
	l.done[n], l.done[add] = true, true
	y = l.put(add, other)
	if stride(r.b) != stride(y.b) {
		l.within[add], l.done[add] = false, false
		return l.put(n), nil
	}
	return y, &r
}

// putAlone is put for a result that is stored by itself: the Add that could have been part of the kernel gets a launch
// of its own.
func (l *planner) putAlone(n *ir.Node) place {
	if add := l.sums[n]; add != nil {
		l.within[add] = false
	}
	return l.put(n)
}

// multiplyPieces plans a product piece by piece: each gives some of the outputs.
func (l *planner) multiplyPieces(n *ir.Node, pieces []*kernel.Matrix, group int) {
	y, at := l.putAlone(n), 0
	for i, w := range pieces {
		k := kernel.MatVec{W: w, Bias: l.target.Weights.Vector(n.B)}
		if k.Bias != 0 {
			k.Bias += uint64(4 * at)
		}
		l.piece = group + i + 1
		l.product(l.taken(n, w, 1), k, place{y.b, y.from + at}, nil)
		at += w.Rows
	}
	l.piece = 0
}

// pair plans gate, up and their activation as one product, whose result is in the form that the next product takes, if
// only products read it.
func (l *planner) pair(n *ir.Node, s *Stack) {
	weights := l.target.Weights
	k := kernel.MatVec{W: weights.Matrix(s.Refs[0]), Glue: kernel.SwiGLU, Act: n.Act,
		Bias: weights.Vector(s.nodes[0].B), UpBias: weights.Vector(s.nodes[1].B)}
	in := l.taken(s.nodes[0], k.W, 1)
	l.done[s.nodes[0]], l.done[s.nodes[1]] = true, true
	if b := l.leaves(n, l.program.Widths[n.Out]%kernel.TileCols == 0); b != nil {
		k.Glue = kernel.SwiGLUToInt8
		l.product(in, k, place{b: b}, nil)
		return
	}
	l.product(in, k, l.put(n), nil)
}

// leaves is a buffer for a result as quantised bytes, if only products of such rows read it, else nil. whole says that
// a kernel can quantise the result.
func (l *planner) leaves(n *ir.Node, whole bool) *live.Buffer {
	if l.kept[n.Out] || !whole || len(l.readers[n.Out]) == 0 {
		return nil
	}
	for _, r := range l.readers[n.Out] {
		if r.Op != ir.Linear || !l.target.Kernels.Integers(l.program.Types[r.W]) {
			return nil
		}
	}
	b := l.buffer(live.Buffer{Width: l.program.Widths[n.Out], Form: inBytes})
	l.inputs[live.Prepared{Value: n.Out, Form: inBytes}] = &input{b: b}
	return b
}

// headLinear is the launch of a HeadLinear.
type headLinear struct {
	k    kernel.HeadLinear
	a, y place
}

func (l *planner) headLinear(n *ir.Node) {
	a := l.place(n.In[0])
	h := &headLinear{kernel.HeadLinear{W: l.target.Weights.Matrix(n.W), Heads: n.Heads}, a, l.put(n)}
	l.launch(h, of(a.b), of(h.y.b))
}

func (h *headLinear) emit(x *stream) {
	k := h.k
	k.W, k.X, k.XStride, k.Y, k.YStride = x.matrix(k.W), x.where(h.a), stride(h.a.b), x.where(h.y), stride(h.y.b)
	k.Rows, k.Count = x.n, x.count(0)
	x.launch(&k)
}

// headCopy is the launch that copies features of heads.
type headCopy struct {
	k    kernel.HeadCopy
	a, y place
}

// headParts plans a HeadSlice, which takes features from From on of each head, or a HeadJoin, which puts those of one
// value behind those of the other.
func (l *planner) headParts(n *ir.Node) {
	y, at := l.put(n), 0
	head := func(v ir.Value) int { return l.program.Widths[v] / n.Heads }
	for i, v := range n.In {
		a, to := l.place(v), place{y.b, y.from + at}
		k := kernel.HeadCopy{Heads: n.Heads, XHead: head(v), YHead: head(n.Out), Width: head(v)}
		if i == 1 && l.program.SharesHead(n) {
			k.XHead, k.Width = 0, l.program.Widths[v]
		}
		if n.Op == ir.HeadSlice {
			a.from += n.From
			k.Width = k.YHead
		}
		at += k.Width
		l.launch(&headCopy{k, a, to}, of(a.b), of(y.b))
	}
}

func (h *headCopy) emit(x *stream) {
	k := h.k
	k.X, k.XStride, k.Y, k.YStride, k.N, k.Count = x.where(h.a), stride(h.a.b), x.where(h.y), stride(h.y.b), x.n,
		x.count(0)
	x.launch(&k)
}
