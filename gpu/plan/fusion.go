package plan

import (
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Fusion decides which nodes of a program are computed by one kernel. A node is part of another's kernel only if no
// other node reads the value between them.
// Wide: each is one way in which nodes are part of others.
type Fusion struct {
	Stacks []*Stack
	// Sinks and Divisors are the weights of attention and of rotations that kernels do not take as the file has them.
	Sinks, Divisors map[ir.Ref]bool

	p       *ir.Bound
	kernels kernel.Table
	kv      backend.KV
	writer  map[ir.Value]*ir.Node
	readers map[ir.Value][]*ir.Node
	kept    map[ir.Value]bool // it crosses a border, or is the program's output
	uses    []int             // by Ref: nodes that name it

	stackOf map[*ir.Node]*Stack    // of a Linear
	gated   map[*ir.Node]*Stack    // by GLU: gate and up
	within  map[*ir.Node]bool      // it is computed by another's kernel
	sums    map[*ir.Node]*ir.Node  // by Linear or Experts: the Add that its kernel computes
	norms   map[ir.Value]*ir.Node  // by value that only products read: they compute the norm themselves
	attends map[*ir.Node]*attended // by Attend
	inside  map[*ir.Node]bool      // a norm that attention computes where sequences have one row each
	targets map[ir.Value]target    // values that must lie beside others
}

// Stack is matrices that lie in memory as one matrix, with their biases: one after the other, or, of a pair, tile by
// tile in turn.
type Stack struct {
	Refs   []ir.Ref
	Biases []ir.Ref
	Pair   bool
	nodes  []*ir.Node // the Linears
}

// attended is an Attend with what stands before it: q, k and v lie in one row, and are rotated on the way.
type attended struct {
	heads   kernel.Heads
	rope    *ir.RoPEArgs // nil: none
	divisor ir.Ref
	row     *row
	norms   [2]*ir.Node // of each head of q and k, if attention can compute them; nil: none
	copies  []int       // which of q, k and v must be copied into the row
	from    [3]ir.Value
}

// row is a buffer that several values share, side by side.
type row struct{ width int }

type target struct {
	row  *row
	from int
}

// Fuse looks at all nodes, for a cache of a type. whole says that all segments are computed on one device: then no
// other one needs the values between a route and its experts.
func Fuse(p *ir.Bound, whole bool, kernels kernel.Table, kv backend.KV) *Fusion {
	f := &Fusion{p: p, kernels: kernels, kv: kv, writer: map[ir.Value]*ir.Node{}, readers: map[ir.Value][]*ir.Node{},
		kept: map[ir.Value]bool{},
		uses: make([]int, len(p.Weights)), stackOf: map[*ir.Node]*Stack{}, gated: map[*ir.Node]*Stack{},
		within: map[*ir.Node]bool{}, sums: map[*ir.Node]*ir.Node{}, norms: map[ir.Value]*ir.Node{},
		attends: map[*ir.Node]*attended{}, inside: map[*ir.Node]bool{}, targets: map[ir.Value]target{},
		Sinks: map[ir.Ref]bool{}, Divisors: map[ir.Ref]bool{}}
	f.kept[p.End()] = true
	var nodes []*ir.Node
	for s := range p.Segments {
		for _, v := range p.Segments[s].Carries {
			f.kept[v] = f.kept[v] || !whole || p.Segments[s].Kind != ir.SegRoute
		}
		for i := range p.Segments[s].Nodes {
			nodes = append(nodes, &p.Segments[s].Nodes[i])
		}
	}
	for _, n := range nodes {
		f.note(n)
	}
	for _, n := range nodes {
		switch n.Op {
		case ir.GLU:
			f.gate(n)
		case ir.Add:
			f.add(n)
		case ir.Norm:
			f.norm(n)
		case ir.Attend:
			f.attend(n)
		}
	}
	return f
}

func (f *Fusion) note(n *ir.Node) {
	f.writer[n.Out] = n
	for _, v := range n.In {
		f.readers[v] = append(f.readers[v], n)
	}
	for _, r := range n.Weights() {
		f.uses[r]++
	}
	switch {
	case n.W == ir.NoRef:
	case n.Op == ir.Attend:
		f.Sinks[n.W] = true
	case n.Op == ir.RoPE:
		f.Divisors[n.W] = true
	}
}

// between returns the only node that reads a value, or nil if there are several, or if the value is kept.
func (f *Fusion) between(v ir.Value) *ir.Node {
	if f.kept[v] || len(f.readers[v]) != 1 {
		return nil
	}
	return f.readers[v][0]
}

// linear returns the Linear that writes a value which one node alone reads, or nil.
func (f *Fusion) linear(v ir.Value) *ir.Node {
	n := f.writer[v]
	if n == nil || n.Op != ir.Linear || f.between(v) == nil || f.stackOf[n] != nil || f.uses[n.W] != 1 {
		return nil
	}
	return n
}

// alike says whether two matrices may lie together: they have the same input and type, and both have a bias or neither.
func (f *Fusion) alike(a, b *ir.Node) bool {
	return a != nil && b != nil && a != b && a.In[0] == b.In[0] && f.p.Types[a.W] == f.p.Types[b.W] &&
		(a.B == ir.NoRef) == (b.B == ir.NoRef)
}

func (f *Fusion) stack(pair bool, nodes ...*ir.Node) *Stack {
	s := &Stack{nodes: nodes, Pair: pair}
	for _, n := range nodes {
		s.Refs = append(s.Refs, n.W)
		if n.B != ir.NoRef {
			s.Biases = append(s.Biases, n.B)
		}
		f.stackOf[n] = s
	}
	f.Stacks = append(f.Stacks, s)
	return s
}

// gate makes a pair of a GLU's two products.
func (f *Fusion) gate(n *ir.Node) {
	if len(n.In) != 2 || n.In[0] == n.In[1] {
		return
	}
	g, u := f.linear(n.In[0]), f.linear(n.In[1])
	if !f.alike(g, u) || f.p.Widths[g.Out] != f.p.Widths[u.Out] {
		return
	}
	f.gated[n] = f.stack(true, g, u)
	f.within[g], f.within[u] = true, true
}

// add lets a product, or experts, compute the Add that reads their result, if nothing else reads it.
func (f *Fusion) add(n *ir.Node) {
	for i, v := range n.In {
		l := f.writer[v]
		if l != nil && (l.Op == ir.Linear || l.Op == ir.Experts) && f.between(v) == n && n.In[1-i] != v &&
			!f.within[l] && f.sums[l] == nil {
			f.sums[l] = n
			f.within[n] = true
			return
		}
	}
}

// norm lets products normalise what they take, where that is the RMS norm of whole rows.
func (f *Fusion) norm(n *ir.Node) {
	if f.kept[n.Out] || !ofRows(n, f.p.Widths[n.Out]) {
		return
	}
	for _, r := range f.readers[n.Out] {
		if r.Op != ir.Linear && (r.Op != ir.Experts || r.Experts.Before) {
			return
		}
	}
	f.norms[n.Out] = n
	f.within[n] = true
}

// ofRows says whether a norm is the RMS norm of whole rows of a width.
func ofRows(n *ir.Node, width int) bool {
	return !n.Norm.Layer && n.W != ir.NoRef && n.B == ir.NoRef && n.Norm.Group == width
}

// attend puts q, k and v into one row.
func (f *Fusion) attend(n *ir.Node) {
	a := n.Attend
	heads := headsOf(a, f.kv)
	if !f.kernels.Fused(&heads) || len(n.In) == 1 { // another Attend stored keys and values
		return
	}
	x := &attended{heads: heads, divisor: ir.NoRef}
	copy(x.from[:], n.In)
	f.rotated(n, x)
	for _, v := range n.In[:2] {
		if x.rope != nil {
			f.within[f.writer[v]] = true
		}
	}
	x.row = &row{width: (a.Heads + 2*a.KVHeads) * a.KDim}
	f.attends[n] = x
	at := 0
	var sources [3]*ir.Node
	for i, v := range x.from {
		if f.between(v) == nil || f.writer[v] == nil || f.writer[v].Op == ir.Slice {
			x.copies = append(x.copies, i)
		} else {
			sources[i] = f.beside(v, target{x.row, at})
		}
		at += f.p.Widths[v]
	}
	f.stackSources(sources[:])
	f.headNorms(x)
}

// headNorms finds the norms of the heads of q and k that end in the row: attention computes them where it rotates.
func (f *Fusion) headNorms(x *attended) {
	q, k := f.writer[x.from[0]], f.writer[x.from[1]]
	for _, n := range []*ir.Node{q, k} {
		if n == nil || n.Op != ir.Norm || n.Norm.Layer || n.B != ir.NoRef || n.Norm.Group != x.heads.Features ||
			n.Norm.Eps != q.Norm.Eps || f.byRow(n, n.W) ||
			f.targets[n.In[0]] != f.targets[n.Out] || f.targets[n.Out].row != x.row {
			return
		}
	}
	x.norms = [2]*ir.Node{q, k}
	f.inside[q], f.inside[k] = true, true
}

// byRow says whether a weight of a norm is by feature of the row, not of a group.
func (f *Fusion) byRow(n *ir.Node, r ir.Ref) bool {
	return r != ir.NoRef && f.p.Weights[r].Rows*f.p.Weights[r].Cols != n.Norm.Group
}

// beside gives a value its place in a row. Norms and adapters that lead to it work in place, so their inputs get the
// same place, as far as nothing else reads them. It returns the product that all of this comes from, or nil.
func (f *Fusion) beside(v ir.Value, t target) *ir.Node {
	f.targets[v] = t
	for n := f.writer[v]; ; n = f.writer[v] {
		if n == nil || n.Op != ir.Norm && n.Op != ir.Adapt || f.between(n.In[0]) != n {
			return f.linear(v)
		}
		v = n.In[0]
		if w := f.writer[v]; w == nil || w.Op == ir.Slice {
			return nil
		}
		f.targets[v] = t
	}
}

// rotated finds the rotation of q and k, if no other node reads what it rotates.
func (f *Fusion) rotated(n *ir.Node, x *attended) {
	q, k := f.writer[n.In[0]], f.writer[n.In[1]]
	if q == nil || k == nil || q == k || q.Op != ir.RoPE || k.Op != ir.RoPE || f.between(q.Out) != n ||
		f.between(k.Out) != n || q.W != k.W || !sameRotation(q.RoPE, k.RoPE) || q.RoPE.HeadDim != n.Attend.KDim {
		return
	}
	x.rope, x.divisor = q.RoPE, q.W
	x.heads.Dims, x.heads.Interleaved = q.RoPE.Dims, q.RoPE.Interleaved
	x.from[0], x.from[1] = q.In[0], k.In[0]
}

func sameRotation(a, b *ir.RoPEArgs) bool {
	return a.HeadDim == b.HeadDim && a.Dims == b.Dims && a.Interleaved == b.Interleaved && a.Mscale == b.Mscale &&
		slices.Equal(a.Freq, b.Freq) && slices.Equal(a.Axes, b.Axes)
}

// stackSources makes one matrix of neighbours of the same type; all but the last fill whole tiles.
func (f *Fusion) stackSources(sources []*ir.Node) {
	for len(sources) > 0 {
		n := 1
		for n < len(sources) && f.alike(sources[0], sources[n]) && f.p.Weights[sources[n-1].W].Rows%kernel.TileRows == 0 {
			n++
		}
		if n > 1 {
			f.stack(false, sources[:n]...)
		}
		sources = sources[n:]
	}
}
