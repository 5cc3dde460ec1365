package ir

import (
	"fmt"
	"math"
)

// compressOp describes Compress.
var compressOp = operation{
	name: "compress", inputs: [2]int{2, 2}, w: required, b: none, use: Vector, fits: fitsCompress,
	loop: (*Frame).compress, keeps: true,
	args: func(n *Node) string { return fmt.Sprintf("state=%d every=%d", n.State, n.Every) },
	cases: []Case{
		{"compress", func(b *Builder, x Value, n int) Value { return b.Compress(b.Scale(x, 2), x, "c", n, 5) }},
		{"compress overlapping", func(b *Builder, x Value, n int) Value {
			return b.Compress(b.Linear(x, "scores", 2*n), b.Linear(x, "values", 2*n), "c", n, 3)
		}},
	},
}

// Compress is, feature by feature, the mean of values of the row's chunk of every positions up to the row, weighed by
// the softmax of scores, to which the row of the table that has the position in the chunk is added. If scores and
// values have twice as many features as the result, the second half is of the row's chunk, and the first half of the
// whole chunk before, if there is one: both are in one mean. The last row of a chunk has all of it.
func (b *Builder) Compress(scores, values Value, table string, width, every int) Value {
	all := b.Width(scores)
	sets := 1
	if all == 2*width {
		sets = 3
	}
	return b.add(Node{Op: Compress, In: []Value{scores, values}, W: b.weight(table, every, all, Vector), B: NoRef,
		Every: every, State: b.state(sets * meanValues * width)}, width)
}

// meanValues is what a state has of a mean that goes on: the highest score, Σ e^(score−highest), and the same times
// values. A sum of 0 is that of none.
const meanValues = 3

func fitsCompress(p *Program, n *Node) error {
	all, values, width := p.Widths[n.In[0]], p.Widths[n.In[1]], p.Widths[n.Out]
	if all != values || all != width && all != 2*width {
		return fmt.Errorf("scores of %d features, values of %d, output of %d, want the same, or half of it", all, values, width)
	}
	if w := &p.Weights[n.W]; n.Every < 2 || w.Rows != n.Every || w.Cols != all {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, n.Every, all)
	}
	return fitsState(p, n, (2*all/width-1)*meanValues*width)
}

func (f *Frame) compress(n *Node) {
	table, state, width := f.table(n.W), f.States[n.State], f.P.Widths[n.Out]
	for i, span := range f.Spans {
		for j := range span.Rows {
			next := state.After(i, span.Pos+j)
			copy(next, state.Before(i, span.Pos+j))
			scores := f.row(n.In[0], span.Row+j)
			added := table[(span.Pos+j)%n.Every*len(scores):]
			m := Means{next, f.row(n.Out, span.Row+j), scores, f.row(n.In[1], span.Row+j), added}
			m.Compress(0, width, (span.Pos+j)%n.Every == 0)
		}
	}
}

// Means is a row of a Compress: a state, which it changes, what it makes, and what it takes.
type Means struct{ State, Y, Scores, Values, Added []float32 }

// Compress computes the features [from, to). opens says that the row is the first one of a chunk.
func (m *Means) Compress(from, to int, opens bool) {
	width := len(m.Y)
	set := func(i int) [meanValues][]float32 {
		s := m.State[i*meanValues*width:]
		return [meanValues][]float32{s[:width], s[width:][:width], s[2*width:][:width]}
	}
	own := set(0)
	overlap := len(m.Scores) > width
	var before, first [meanValues][]float32
	at := 0 // of the features of the row's own chunk
	if overlap {
		before, first, at = set(1), set(2), width
	}
	for i := from; i < to; i++ {
		if opens {
			if own[1][i] = 0; overlap {
				for k := range before {
					before[k][i] = first[k][i]
				}
				first[1][i] = 0
			}
		}
		take(&own, i, m.Scores[at+i]+m.Added[at+i], m.Values[at+i])
		top, sum, total := float64(own[0][i]), float64(own[1][i]), float64(own[2][i])
		if overlap {
			take(&first, i, m.Scores[i]+m.Added[i], m.Values[i])
			if before[1][i] > 0 {
				far := float64(before[0][i]) - top
				shrink, grow := math.Exp(math.Min(-far, 0)), math.Exp(math.Min(far, 0))
				sum = sum*shrink + float64(before[1][i])*grow
				total = total*shrink + float64(before[2][i])*grow
			}
		}
		m.Y[i] = float32(total / sum)
	}
}

// take adds a value to feature i of a mean.
func take(mean *[meanValues][]float32, i int, score, value float32) {
	top, sum, total := &mean[0][i], &mean[1][i], &mean[2][i]
	switch far := float64(score) - float64(*top); {
	case *sum == 0:
		*top, *sum, *total = score, 1, value
	case far <= 0:
		e := math.Exp(far)
		*sum, *total = float32(float64(*sum)+e), float32(float64(*total)+e*float64(value))
	default:
		e := math.Exp(-far)
		*top, *sum, *total = score, float32(float64(*sum)*e+1), float32(float64(*total)*e+float64(value))
	}
}
