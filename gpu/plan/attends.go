package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// headsOf is the shape of an Attend without rotation.
func headsOf(a *ir.AttendArgs, kv backend.KV) kernel.Heads {
	return kernel.Heads{Query: a.Heads, KV: a.KVHeads, Features: a.KDim, Values: a.VDim,
		Cache: kv.Of(a.KV, a.Class())}
}

// HeadsOf lists the shapes of a program's Attends, without rotation.
func HeadsOf(p *ir.Bound, kv backend.KV) (all []kernel.Heads) {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op == ir.Attend {
				all = append(all, headsOf(n.Attend, kv))
			}
		}
	}
	return all
}

// attention is the launch of an Attend. If fused, it rotates and stores itself, and queries, keys and values lie in one
// row; else queries were rotated, and keys and values stored, before.
type attention struct {
	k          kernel.Attend // complete but for addresses and rows
	x, y       place
	parts      *live.Buffer
	most       int // rows of a launch
	fused      bool
	angles     int // Absent: nothing rotates
	class      int
	recent     int // cache class of open blocks; 0: blocks are never sealed
	looksAhead bool
}

// attention plans an Attend with rotation and storing.
func (l *planner) attention(n *ir.Node) {
	a := l.attends[n]
	if a == nil {
		l.attentionAny(n)
		return
	}
	x := &attention{k: kernel.Attend{Heads: a.heads, Attention: l.attentionOf(n)}, fused: true, angles: Absent,
		class: l.program.KV[n.Attend.KV].Class, looksAhead: l.looksAhead(n)}
	if a.rope != nil {
		x.angles = l.entry.angles(a.rope, a.divisor)
	}
	if l.rows[a.row] == nil {
		l.rows[a.row] = l.buffer(live.Buffer{Width: a.row.width})
	}
	x.x = place{b: l.rows[a.row]}
	l.bring(a, x.x.b)
	if a.norms[0] != nil {
		x.k.Normed, x.k.Eps = true, a.norms[0].Norm.Eps
		x.k.QueryGain, x.k.KeyGain = l.target.Weights.Vector(a.norms[0].W), l.target.Weights.Vector(a.norms[1].W)
	}
	x.parts, x.most = l.attendParts(&a.heads)
	if b := l.leaves(n, true); b != nil {
		x.y, x.k.Quantise = place{b: b}, true
	} else {
		x.y = l.put(n)
	}
	l.launch(x, of(x.x.b, x.parts), of(x.x.b, x.parts, x.y.b))
}

// attentionAny plans an Attend by the kernels for any heads and caches: queries and keys were rotated by other
// launches, another one stores keys and values, unless they are another Attend's, and products quantise the result.
func (l *planner) attentionAny(n *ir.Node) {
	heads := headsOf(n.Attend, l.target.KV)
	x := &attention{k: kernel.Attend{Heads: heads, Attention: l.attentionOf(n)}, x: l.place(n.In[0]), angles: Absent,
		class: l.program.KV[n.Attend.KV].Class, recent: l.program.KV[n.Attend.KV].Recent, looksAhead: l.looksAhead(n)}
	recent := x.recent
	if len(n.In) > 1 {
		s := &stored{kernel.Append{Heads: heads, Keys: x.k.Keys, Values: x.k.Values}, l.place(n.In[1]), l.place(n.In[2]),
			x.class}
		if recent > 0 {
			s.append.Heads, s.append.Keys, s.append.Values, s.class = *heads.Recent(), x.k.Recent.Keys, x.k.Recent.Values, recent
		}
		l.launch(s, of(s.k.b, s.v.b), nil)
		if recent > 0 {
			l.launch(&sealed{kernel.Seal{Heads: heads, Keys: x.k.Keys, Values: x.k.Values, Recent: x.k.Recent}, x.class, recent},
				nil, nil)
		}
	}
	x.y = l.put(n)
	x.parts, x.most = l.attendParts(&heads)
	l.launch(x, of(x.x.b, x.parts), of(x.parts, x.y.b))
}

func (a *attention) emit(x *stream) {
	k := a.k
	k.XStride, k.YStride, k.Parts, k.Tables = stride(a.x.b), stride(a.y.b), x.blob(a.parts), x.at.Tables
	k.Alone, k.Depth = a.fused && x.shape.Alone, x.shape.depth()
	seen := x.Entry.Rows
	if a.looksAhead {
		seen = x.Entry.Ends
	}
	if a.fused && !k.Alone {
		a.from(x, &k, 0)
		k.N, k.Rows, k.Count = x.n, x.entry(x.Entry.Rows[a.class]), x.count(0)
		x.launch(&kernel.Rotate{Heads: k.Heads, Attention: k.Attention})
	}
	for from := 0; from < x.n; from += a.most {
		part := k
		a.from(x, &part, from)
		part.N, part.Rows, part.Count = min(a.most, x.n-from), x.entry(seen[a.class]+8*from), x.count(from)
		if a.recent > 0 {
			part.Recent.Rows = x.entry(x.Entry.Rows[a.recent] + 8*from)
		}
		x.launch(&part)
	}
}

// from sets the addresses to those of a first row.
func (a *attention) from(x *stream, k *kernel.Attend, row int) {
	k.X, k.Y = x.row(a.x.b, row)+uint64(4*a.x.from), x.row(a.y.b, row)+uint64(4*a.y.from)
	if a.angles != Absent {
		k.Angles = x.entry(x.Entry.Angles[a.angles] + 4*k.Heads.Dims*row)
	}
}

// stored is the launch that appends keys and values to a cache.
type stored struct {
	append kernel.Append
	k, v   place
	class  int
}

func (s *stored) emit(x *stream) {
	k := s.append
	k.K, k.V, k.KStride, k.VStride = x.where(s.k), x.where(s.v), stride(s.k.b), stride(s.v.b)
	k.Rows, k.Tables, k.N, k.Count = x.entry(x.Entry.Rows[s.class]), x.at.Tables, x.n, x.count(0)
	x.launch(&k)
}

// sealed is the launch that seals blocks that rows of the step filled.
type sealed struct {
	seal          kernel.Seal
	class, recent int
}

func (s *sealed) emit(x *stream) {
	k := s.seal
	k.Rows, k.Tables, k.N, k.Count = x.entry(x.Entry.Rows[s.class]), x.at.Tables, x.n, x.count(0)
	k.Recent.Rows = x.entry(x.Entry.Rows[s.recent])
	x.launch(&k)
}

// attendParts is memory for the partial results of splits of so many rows, the most of a launch.
func (l *planner) attendParts(h *kernel.Heads) (b *live.Buffer, rows int) {
	rows = min(l.target.Kernels.AttentionRows(), l.Capacity(false))
	return l.blob(int(h.PartBytes(rows))), rows
}

// attentionOf sets the arguments that do not depend on the step.
func (l *planner) attentionOf(n *ir.Node) kernel.Attention {
	c := l.target.Caches[n.Attend.KV]
	return kernel.Attention{Keys: c.Keys, Values: c.Values, Recent: kernel.Recent{Keys: c.OpenKeys, Values: c.OpenValues},
		Scale: n.Attend.Scale, Cap: n.Attend.SoftCap,
		Window: n.Attend.Window, Chunked: n.Attend.Chunked, Sinks: l.target.Weights.Vector(n.W)}
}

// looksAhead says whether rows see their whole text, and not only what is before them.
func (l *planner) looksAhead(n *ir.Node) bool {
	l.entry.looksAhead = l.entry.looksAhead || n.Attend.Both
	return n.Attend.Both
}

// copied is the launch that copies a value into a row of several.
type copied struct {
	from, to place
	width    int
}

func (c *copied) emit(x *stream) {
	x.launch(&kernel.Each{Formula: kernel.Copy, A: x.where(c.from), AStride: stride(c.from.b), Y: x.where(c.to),
		YStride: stride(c.to.b), Width: c.width, Rows: x.n, Count: x.count(0)})
}

// bring copies those of queries, keys and values into their common row that could not be computed there.
func (l *planner) bring(a *attended, qkv *live.Buffer) {
	at := 0
	for i, v := range a.from {
		width := l.program.Widths[v]
		for _, c := range a.copies {
			if c == i {
				from := l.place(v)
				l.launch(&copied{from, place{qkv, at}, width}, of(from.b), of(qkv))
			}
		}
		at += width
	}
}
