package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// adapted is the launch of an Adapt.
type adapted struct {
	k       kernel.Adapt
	x, a, y place // x.b nil: rows of the factor are looked up by token
	between *live.Buffer
}

func (l *planner) adapt(n *ir.Node) {
	s := &l.program.Sites[n.Site]
	d := &adapted{k: kernel.Adapt{Site: n.Site, In: s.In, Out: s.Out}, a: l.place(n.In[0])}
	reads := of(d.a.b)
	if s.Token {
		d.k.In = 1
	} else {
		d.x = l.place(n.In[1])
		reads = append(reads, d.x.b)
	}
	l.entry.adapts = true
	d.between = l.blob(4 * l.Capacity(l.wanted) * d.k.Parts() * kernel.MostRanks)
	d.y = l.put(n, n.In[0])
	l.launch(d, reads, of(d.between, d.y.b))
}

// emit launches nothing for a step without adapters whose value stays where it is.
func (d *adapted) emit(x *stream) {
	k := d.k
	k.A = kernel.Floats{At: x.where(d.a), Stride: stride(d.a.b)}
	k.Y = kernel.Floats{At: x.where(d.y), Stride: stride(d.y.b)}
	if !x.shape.Adapted && k.A == k.Y {
		return
	}
	k.Between, k.Rows, k.Count = x.blob(d.between), x.n, x.count(0)
	k.Lists, k.Applied = x.entry(x.Entry.Lists), x.entry(x.Entry.Applied)
	if x.wanted {
		k.Numbers = x.entry(x.Entry.Wanted)
	}
	if d.x.b != nil {
		k.X = kernel.Floats{At: x.where(d.x), Stride: stride(d.x.b)}
	} else {
		k.IDs, k.Drawn = x.entry(x.Entry.IDs), x.at.Drawn
	}
	if x.shape.Adapted {
		x.launch(&k)
	}
	up := k
	up.Up = true
	x.launch(&up)
}
