//go:build cgo && linux

package vulkan

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// temper is how far rows are from the beginning, for one Temper or several alike: the host makes a factor for each row.
type temper struct {
	factor float32
	every  int
}

// of is the factor of a row at a position.
func (t temper) of(position int) float32 {
	far := math.Floor(float64(position+1) / float64(t.every))
	return float32(1 + float64(t.factor)*math.Log1p(far))
}

// temperOf is the number of a node's factors.
func (m *model) temperOf(n *ir.Node) int {
	want := temper{n.Factor, n.Every}
	i := slices.Index(m.tempers, want)
	if i < 0 {
		i = len(m.tempers)
		m.tempers = append(m.tempers, want)
	}
	return i
}

// by plans what is computed of a value and of what is no value: set says where that lies, as the recording's b.
func (l *planner) by(n *ir.Node, a, y place, e Each, set func(x *recorder, e *Each)) {
	e.Width, e.AStride, e.YStride = l.p.Widths[n.Out], stride(a.b), stride(y.b)
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		e := e
		e.A, e.Y, e.Rows, e.Count = x.at(a), x.at(y), x.n, x.count(0)
		set(x, &e)
		return x.k.Each(x.r, &e)
	}})
}

// temper plans a Temper.
func (l *planner) temper(n *ir.Node) {
	i := l.m.temperOf(n)
	l.by(n, l.place(n.In[0]), l.put(n, n.In[0]), Each{Formula: Product, BWidth: 1, BStride: 1},
		func(x *recorder, e *Each) { e.B = x.s.at(&x.s.tempers[i]) })
}

// affine plans an Affine: one row, without a stride, is there for all.
func (l *planner) affine(n *ir.Node) {
	a := l.place(n.In[0])
	y := l.put(n, n.In[0])
	if n.W != ir.NoRef {
		w := &l.p.Weights[n.W]
		l.by(n, a, y, Each{Formula: Product, BWidth: w.Rows * w.Cols},
			func(x *recorder, e *Each) { e.B = x.m.vector(n.W) })
		a = y
	}
	if n.B != ir.NoRef {
		l.by(n, a, y, Each{Formula: Sum}, func(x *recorder, e *Each) { e.B = x.m.vector(n.B) })
	}
}

// numbering says which rows of a table a Position or TokenType adds: the host tells their numbers.
type numbering struct {
	byType bool // by the part of its text that a row is in; else by its position
	sep    int32
	last   int // the table's last row
}

// fill numbers the rows of a text from a position on.
func (x numbering) fill(numbers []uint32, tokens []int32, position int) {
	part := 0
	for i := range numbers {
		if !x.byType {
			numbers[i] = uint32(position + i)
			continue
		}
		numbers[i] = uint32(part)
		if tokens[i] == x.sep {
			part = min(part+1, x.last)
		}
	}
}

// numberingOf is the number of a node's numbering.
func (m *model) numberingOf(n *ir.Node) int {
	var want numbering
	if n.Op == ir.TokenType {
		want = numbering{true, n.Sep, m.weights[n.W].rows - 1}
	}
	i := slices.Index(m.numbers, want)
	if i < 0 {
		i = len(m.numbers)
		m.numbers = append(m.numbers, want)
	}
	return i
}

// lookUp plans a Position or TokenType: the rows of the table that are added are taken by number.
func (l *planner) lookUp(n *ir.Node) {
	a, numbers := l.place(n.In[0]), l.m.numberingOf(n)
	l.by(n, a, l.put(n, n.In[0]), Each{Formula: Sum}, func(x *recorder, e *Each) {
		e.A, e.AStride, e.B, e.BStride = x.m.vector(n.W), e.Width, e.A, e.AStride
		e.Numbers = x.s.at(&x.s.numbers[numbers])
	})
}
