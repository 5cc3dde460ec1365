package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// gridNorm is a GridNorm. A chunk is some groups of a picture: so many that their channels fill a cache line.
type gridNorm struct {
	ex       *execution
	out, x   place
	g, b     []float32
	eps      float64
	group    int // channels
	together int // groups of a chunk
	name     string
}

func (b *binder) gridNorm(n *ir.Node) *gridNorm {
	const line = 16 // float32
	return &gridNorm{ex: &b.m.execution, out: b.layout.place(n.Out), x: b.layout.place(n.In[0]), g: b.vector(n.W),
		b: b.vector(n.B), eps: float64(n.Norm.Eps), group: n.Norm.Group, together: max(1, line/n.Norm.Group),
		name: b.p.Weights[n.W].Name}
}

// parts is the number of a picture's chunks.
func (o *gridNorm) parts() int { return (len(o.g)/o.group + o.together - 1) / o.together }

func (o *gridNorm) chunks() int { return len(o.ex.step.Spans) * o.parts() }

func (o *gridNorm) run(_, chunk int) {
	span := &o.ex.step.Spans[chunk/o.parts()]
	from := chunk % o.parts() * o.together * o.group
	to := min(from+o.together*o.group, len(o.g))
	if err := o.normalise(span, from, to); err != nil {
		o.ex.fail(fmt.Errorf("the input of %s: %w", o.name, err))
	}
}

// normalise normalises the channels [from, to) of a picture, which are whole groups.
func (o *gridNorm) normalise(span *backend.Span, from, to int) error {
	groups, n := (to-from)/o.group, float64(span.Rows*o.x.width/len(o.g)*o.group)
	mean, square := make([]float64, groups), make([]float64, groups)
	o.each(span, from, to, func(i int, x, _ []float32) {
		for _, v := range x {
			mean[i] += float64(v)
		}
	})
	for i := range mean {
		mean[i] /= n
	}
	o.each(span, from, to, func(i int, x, _ []float32) {
		sum := 0.0
		for _, v := range x {
			d := float64(v) - mean[i]
			sum += float64(d * d)
		}
		square[i] += sum
	})
	for i, s := range square {
		if square[i] = 1 / math.Sqrt(s/n+o.eps); s-s != 0 {
			return fmt.Errorf("has NaN, infinite or huge values: its variance is %v", s/n)
		}
	}
	o.each(span, from, to, func(i int, x, y []float32) {
		g, b := o.g[from+i*o.group:][:len(x)], o.b[from+i*o.group:][:len(x)]
		for j, v := range x {
			y[j] = float32(float64((float64(v)-mean[i])*square[i]*float64(g[j])) + float64(b[j]))
		}
	})
	return nil
}

// each visits a picture's pixels: group i of the channels [from, to), of the input and of the result.
func (o *gridNorm) each(span *backend.Span, from, to int, visit func(i int, x, y []float32)) {
	for r := range span.Rows {
		x, y := o.ex.at(&o.x, span.Row+r), o.ex.at(&o.out, span.Row+r)
		for ; len(x) > 0; x, y = x[len(o.g):], y[len(o.g):] {
			for i, c := 0, from; c < to; i, c = i+1, c+o.group {
				visit(i, x[c:c+o.group], y[c:c+o.group])
			}
		}
	}
}
