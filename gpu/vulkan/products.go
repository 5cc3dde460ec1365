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
	if in.norm == nil || x.n != 1 {
		return false
	}
	for _, w := range in.products {
		v := MatVec{W: w, Columns: 1, Gain: 1}
		if w.rowTiles()/int(v.tiles()) > mostNormed || !x.k.Fits(&v) {
			return false
		}
	}
	return true
}

// taken is what matrices multiply.
func (l *planner) taken(n *ir.Node, w *Matrix) *input {
	form := inFloats
	if integers(w.Type) {
		form = inBytes
	}
	in := l.inputs[live.Prepared{Value: n.In[0], Form: form}]
	in.products = append(in.products, w)
	return in
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
		l.product(l.taken(n, w), v, l.put(n), nil)
		return
	}
	in := l.taken(n, w)
	add := l.sums[n]
	if add == nil {
		l.product(in, v, l.put(n), nil)
		return
	}
	other := add.In[0]
	if other == n.Out {
		other = add.In[1]
	}
	if _, ok := l.of[l.values.Root[other]]; !ok || l.norms[other] != nil {
		l.product(in, v, l.put(n), nil) // what it is added to comes later
		l.within[add] = false
		return
	}
	residual := l.place(other)
	l.done[n], l.done[add] = true, true
	y := l.put(add, other)
	if stride(residual.b) != stride(y.b) {
		l.product(in, v, l.put(n), nil)
		l.within[add], l.done[add] = false, false
		return
	}
	l.product(in, v, y, &residual)
}

// multiplyPieces plans a product piece by piece: each gives some of the outputs.
func (l *planner) multiplyPieces(n *ir.Node) {
	if add := l.sums[n]; add != nil {
		l.within[add] = false
	}
	w, y, at := &l.m.weights[n.W], l.put(n), 0
	for i, x := range w.pieces {
		v := MatVec{W: x, Bias: l.m.vector(n.B)}
		if v.Bias != 0 {
			v.Bias += uint64(4 * at)
		}
		l.piece = w.group + i + 1
		l.product(l.taken(n, x), v, place{y.b, y.from + at}, nil)
		at += x.Rows
	}
	l.piece = 0
}

// product plans a mat-vec of all rows.
func (l *planner) product(in *input, v MatVec, y place, residual *place) {
	reads := []*live.Buffer{in.b}
	if in.norm != nil {
		reads = append(reads, in.x.b)
	}
	if residual != nil {
		reads = append(reads, residual.b)
	}
	l.launch(launch{reads: reads, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		v := v
		v.W = x.matrix(v.W)
		inline := x.inline(in)
		if inline {
			v.Gain, v.Eps = x.m.vector(in.norm.W), in.norm.Norm.Eps
		}
		if inline {
			v.X, v.XStride = x.at(in.x), stride(in.x.b)
		} else {
			v.X, v.XStride = x.row(in.b, 0), PaddedWidth(v.W.Cols)
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
	in := l.taken(s.nodes[0], w)
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
