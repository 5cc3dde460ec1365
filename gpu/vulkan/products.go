//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// mostNormed is the most workgroups that normalise their input each for themselves: a norm of 4096 costs a µs.
const mostNormed = 512

// inline says whether products normalise their input themselves in this recording. The bits are the same.
func (x *recorder) inline(in *input) bool {
	if in.norm == nil || x.n != 1 || x.shape.prompt {
		return false
	}
	for _, p := range in.products {
		v := MatVec{W: p.w, Columns: 1, Gain: 1}
		if p.times*p.w.rowTiles()/int(v.tiles()) > mostNormed || !x.k.Fits(&v) {
			return false
		}
	}
	return true
}

// give sets what a product takes: what is prepared, or what it normalises itself.
func (x *recorder) give(v *MatVec, in *input) {
	if x.inline(in) {
		v.Gain, v.Eps = x.m.vector(in.norm.W), in.norm.Norm.Eps
		v.X, v.XStride = x.at(in.x), stride(in.x.b)
		return
	}
	v.X, v.XStride = x.row(in.b, 0), PaddedWidth(v.W.Cols)
}

// reads is what a product reads of it, in one of these ways.
func (in *input) reads() []*live.Buffer {
	if in.norm != nil {
		return []*live.Buffer{in.b, in.x.b}
	}
	return []*live.Buffer{in.b}
}

// taken is what a matrix multiplies; of experts so many do, for one row.
func (l *planner) taken(n *ir.Node, w *Matrix, times int) *input {
	in := l.inputs[live.Prepared{Value: n.In[0], Form: formOf(w)}]
	in.products = append(in.products, product{w, times})
	return in
}

// formOf is the form of what a matrix multiplies.
func formOf(w *Matrix) live.Form {
	if integers(w.Type) {
		return inBytes
	}
	return inFloats
}

// multiply plans a product, with those that are stacked with it, and the sum that follows.
func (l *planner) multiply(n *ir.Node) {
	if l.m.weights[n.W].pieces != nil {
		l.multiplyPieces(n)
		return
	}
	w := l.m.weights[n.W].matrix
	v := MatVec{W: w, Bias: l.m.vector(n.B)}
	if s := l.stackOf[n]; s != nil && !s.pair {
		n = s.nodes[0] // the first one's place is that of all
		if len(s.biases) > 0 {
			v.Bias = l.m.vector(s.biases[0])
		}
		for _, other := range s.nodes[1:] {
			l.put(other)
			l.done[other] = true
		}
		l.done[n] = true
		l.product(l.taken(n, w, 1), v, l.put(n), nil)
		return
	}
	in := l.taken(n, w, 1)
	y, residual := l.putSum(n)
	l.product(in, v, y, residual)
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

// putAlone is put of a result that is not part of a sum, though it could be.
func (l *planner) putAlone(n *ir.Node) place {
	if add := l.sums[n]; add != nil {
		l.within[add] = false
	}
	return l.put(n)
}

// multiplyPieces plans a product piece by piece: each gives some of the outputs.
func (l *planner) multiplyPieces(n *ir.Node) {
	w, y, at := &l.m.weights[n.W], l.putAlone(n), 0
	for i, x := range w.pieces {
		v := MatVec{W: x, Bias: l.m.vector(n.B)}
		if v.Bias != 0 {
			v.Bias += uint64(4 * at)
		}
		l.piece = w.group + i + 1
		l.product(l.taken(n, x, 1), v, place{y.b, y.from + at}, nil)
		at += x.Rows
	}
	l.piece = 0
}

// product plans a mat-vec of all rows.
func (l *planner) product(in *input, v MatVec, y place, residual *place) {
	reads := in.reads()
	if residual != nil {
		reads = append(reads, residual.b)
	}
	writes, half := []*live.Buffer{y.b}, (*live.Buffer)(nil)
	if _, ok := halves[formats[v.W.Type].dot]; ok && l.m.apart {
		half = l.buffer(live.Buffer{Form: asBlob, Width: l.m.capacity(l.wanted) * HalfBytes(v.W.Cols)})
		writes = append(writes, half)
	}
	var columns span
	if v.Glue == Store {
		columns = span{y.from, y.from + v.W.Rows}
	}
	l.launch(launch{reads: reads, writes: writes, columns: columns, record: func(x *recorder) error {
		v := v
		v.W = x.matrix(v.W)
		x.give(&v, in)
		if half != nil && x.shape.prompt {
			v.Halves = x.at(place{b: half})
		}
		v.Columns, v.Count, v.Y, v.YStride = x.n, x.count(0), x.at(y), stride(y.b)
		if residual != nil {
			v.Residual = x.at(*residual)
		}
		return x.k.MatVec(x.r, &v)
	}})
}

// pair plans gate, up and what becomes of them: in the form that the next product takes, if that is all who reads it.
func (l *planner) pair(n *ir.Node, s *stack) {
	w := l.m.weights[s.refs[0]].matrix
	in := l.taken(s.nodes[0], w, 1)
	l.done[s.nodes[0]], l.done[s.nodes[1]] = true, true
	v := MatVec{W: w, Glue: SwiGLU, Act: n.Act, Bias: l.m.vector(s.nodes[0].B), UpBias: l.m.vector(s.nodes[1].B)}
	if b := l.leaves(n, l.p.Widths[n.Out]%tileCols == 0); b != nil {
		v.Glue = SwiGLUToInt8
		l.product(in, v, place{b: b}, nil)
		return
	}
	l.product(in, v, l.put(n), nil)
}

// leaves is a buffer for a result as quantised bytes, if that is all that anybody takes of it.
func (l *planner) leaves(n *ir.Node, whole bool) *live.Buffer {
	if l.kept[n.Out] || !whole || len(l.readers[n.Out]) == 0 {
		return nil
	}
	for _, r := range l.readers[n.Out] {
		if r.Op != ir.Linear || !integers(l.p.Types[r.W]) {
			return nil
		}
	}
	b := l.buffer(live.Buffer{Width: l.p.Widths[n.Out], Form: inBytes})
	l.inputs[live.Prepared{Value: n.Out, Form: inBytes}] = &input{b: b}
	return b
}
