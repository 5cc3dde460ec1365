//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// attentionRows is how many rows attend at once: their parts take memory.
const attentionRows = 128

// attention plans an Attend with rotation and storing.
func (l *planner) attention(n *ir.Node) error {
	a := l.attends[n]
	if a == nil {
		l.attentionAny(n)
		return nil
	}
	angles := -1
	if a.rope != nil {
		angles = l.m.anglesOf(a.rope, a.divisor)
	}
	if l.rows[a.row] == nil {
		l.rows[a.row] = l.buffer(live.Buffer{Width: a.row.width})
	}
	qkv := l.rows[a.row]
	l.bring(a, qkv)
	v, heads, class, seen := l.m.attention(l.p, n), a.heads, l.p.KV[n.Attend.KV].Class, l.seen(n)
	if a.norms[0] != nil {
		v.Normed, v.Eps = true, a.norms[0].Norm.Eps
		v.QueryGain, v.KeyGain = l.m.vector(a.norms[0].W), l.m.vector(a.norms[1].W)
	}
	parts := l.attendParts(&heads)
	var y place
	if b := l.leaves(n, true); b != nil {
		y, v.Quantise = place{b: b}, true
	} else {
		y = l.put(n)
	}
	v.XStride, v.YStride = stride(qkv), stride(y.b)
	writes := []*live.Buffer{qkv, parts, y.b}
	l.launch(launch{reads: writes[:2], writes: writes, record: func(x *recorder) error {
		v := v
		v.Alone, v.Parts = x.shape.alone, x.at(place{b: parts})
		put := func(from int) {
			v.X, v.Y = x.row(qkv, from), x.row(y.b, from)+uint64(4*y.from)
			if angles >= 0 {
				v.Angles = x.s.at(&x.s.angles[angles]) + uint64(4*heads.Dims*from)
			}
		}
		if !v.Alone {
			put(0)
			v.N, v.Rows, v.Tables, v.Count = x.n, x.s.at(&x.s.rows[class]), x.s.tables.Address, x.count(0)
			if err := x.k.Rotate(x.r, &heads, &v); err != nil {
				return err
			}
			x.r.Barrier()
		}
		return x.attend(&heads, &v, seen(x.s), put)
	}})
	return nil
}

// attentionAny plans an Attend by the kernels for any heads and caches: rotated before, stored, unless another one has,
// and quantised after it.
func (l *planner) attentionAny(n *ir.Node) {
	q, heads := l.place(n.In[0]), l.m.heads(n.Attend)
	if len(n.In) > 1 {
		l.store(n, &heads)
	}
	y, parts := l.put(n), l.attendParts(&heads)
	a, seen := l.m.attention(l.p, n), l.seen(n)
	reads, writes := []*live.Buffer{q.b, parts}, []*live.Buffer{parts, y.b}
	l.launch(launch{reads: reads, writes: writes, record: func(x *recorder) error {
		a := a
		x.r.Barrier() // what was stored is in no buffer
		a.Parts, a.XStride, a.YStride = x.at(place{b: parts}), stride(q.b), stride(y.b)
		return x.attend(&heads, &a, seen(x.s), func(from int) {
			a.X, a.Y = x.row(q.b, from)+uint64(4*q.from), x.row(y.b, from)+uint64(4*y.from)
		})
	}})
}

// store plans the appending of keys and values.
func (l *planner) store(n *ir.Node, heads *Heads) {
	k, v, class, a := l.place(n.In[1]), l.place(n.In[2]), l.p.KV[n.Attend.KV].Class, l.m.attention(l.p, n)
	h := *heads
	l.launch(launch{reads: []*live.Buffer{k.b, v.b}, record: func(x *recorder) error {
		return x.k.Append(x.r, &h, &Append{K: x.at(k), V: x.at(v), KStride: stride(k.b), VStride: stride(v.b),
			Keys: a.Keys, Values: a.Values, Rows: x.s.at(&x.s.rows[class]), Tables: x.s.tables.Address, N: x.n,
			Count: x.count(0)})
	}})
}

// attendParts is memory for what splits of positions leave.
func (l *planner) attendParts(h *Heads) *live.Buffer {
	return l.buffer(live.Buffer{Form: asBlob, Width: int(h.PartBytes(min(attentionRows, l.m.capacity(false))))})
}

// heads is the shape of an Attend without rotation.
func (m *model) heads(a *ir.AttendArgs) Heads {
	return Heads{Query: a.Heads, KV: a.KVHeads, Features: a.KDim, Values: a.VDim, Cache: m.config.KV}
}

// attention is what does not depend on the step.
func (m *model) attention(p *ir.Bound, n *ir.Node) Attention {
	c := m.caches[n.Attend.KV]
	return Attention{Keys: c.keys, Values: c.values, Scale: n.Attend.Scale, Cap: n.Attend.SoftCap,
		Window: n.Attend.Window, Chunked: n.Attend.Chunked, Sinks: m.vector(n.W)}
}

// seen says how far rows see, as a step has it: to themselves, or to the end of their text.
func (l *planner) seen(n *ir.Node) func(s *slot) uint64 {
	class := l.p.KV[n.Attend.KV].Class
	if !n.Attend.Both {
		return func(s *slot) uint64 { return s.at(&s.rows[class]) }
	}
	l.m.looksAhead = true
	return func(s *slot) uint64 { return s.at(&s.ends[class]) }
}

// attend records attention for some rows at a time, which see as far as seen says; place says where those from a row
// on are.
func (x *recorder) attend(h *Heads, a *Attention, seen uint64, place func(from int)) error {
	a.Tables, a.Depth = x.s.tables.Address, x.shape.depth()
	for from := 0; from < x.n; from += attentionRows {
		if from > 0 {
			x.r.Barrier() // parts are used again
		}
		a.N, a.Rows, a.Count = min(attentionRows, x.n-from), seen+uint64(8*from), x.count(from)
		place(from)
		if err := x.k.Attend(x.r, h, a); err != nil {
			return err
		}
	}
	return nil
}

// bring copies what could not be computed beside the others.
func (l *planner) bring(a *attended, qkv *live.Buffer) {
	at := 0
	for i, v := range a.from {
		width := l.p.Widths[v]
		for _, c := range a.copies {
			if c != i {
				continue
			}
			from, to := l.place(v), place{qkv, at}
			l.launch(launch{reads: []*live.Buffer{from.b}, writes: []*live.Buffer{qkv}, record: func(x *recorder) error {
				return x.k.Each(x.r, &Each{Formula: Copy, A: x.at(from), AStride: stride(from.b), Y: x.at(to),
					YStride: stride(to.b), Width: width, Rows: x.n, Count: x.count(0)})
			}})
		}
		at += width
	}
}

// cache is a layer's keys and values.
type cache struct{ keys, values uint64 }

// layCaches takes memory for all layers here.
func (m *model) layCaches(p *ir.Bound) error {
	m.caches = make([]cache, len(p.KV))
	_, used, _ := p.Used()
	for i, l := range p.KV {
		if !used[i] {
			continue
		}
		h := Heads{KV: l.KVHeads, Features: l.KDim, Values: l.VDim, Cache: m.config.KV}
		blocks := m.config.Blocks[l.Class]
		for to, size := range map[*uint64]uint64{
			&m.caches[i].keys: h.KeyBytes(blocks), &m.caches[i].values: h.ValueBytes(blocks),
		} {
			b, err := m.memory.take(vk.Local, size, "KV cache")
			if err != nil {
				return err
			}
			*to = b.Address
			m.account.KV += int64(size)
		}
	}
	return nil
}
