package backend

import "github.com/sluice-ai/sluice/internal/ir"

// Inputs adds up the squares of what a model multiplies its matrices by, column by column: an importance matrix.
// A device that is given one adds the rows of each step in their order, in float64, so that the sums depend on nothing
// but the rows. They may be read while no step runs.
type Inputs struct {
	Squares [][]float64 // by ir.Ref: of the columns of one expert after another; nil for what is no matrix of a product
	Rows    [][]int64   // by ir.Ref: how many rows were added, for each expert
}

// NewInputs makes room for the sums of a program's matrices.
func NewInputs(p *ir.Bound) *Inputs {
	in := &Inputs{Squares: make([][]float64, len(p.Weights)), Rows: make([][]int64, len(p.Weights))}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			for _, r := range p.Segments[s].Nodes[i].Matrices() {
				experts := max(1, p.Weights[r].Experts, p.Weights[r].Heads)
				in.Squares[r], in.Rows[r] = make([]float64, experts*p.Weights[r].Cols), make([]int64, experts)
			}
		}
	}
	return in
}

// Add adds part of a row: the values x of columns from, from+1, … that go into the products of an expert of w, or of w
// if it has none. Whoever adds column 0 counts the row. Parts of different columns may be added at the same time.
func (in *Inputs) Add(w ir.Ref, expert, from int, x []float32) {
	cols := len(in.Squares[w]) / len(in.Rows[w])
	sums := in.Squares[w][expert*cols+from:][:len(x)]
	for i, v := range x {
		sums[i] += float64(v) * float64(v)
	}
	if from == 0 {
		in.Rows[w][expert]++
	}
}
