package embed

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Pooler pools the rows of one text, which come in order. The zero value of its unexported fields is ready for use.
type Pooler struct {
	Kind ir.Pooling
	rows int
	sums []float64 // mean: of each feature
	kept []float32 // other poolings: the row that is the vector
}

// Push adds a row, of the model's width.
func (p *Pooler) Push(row []float32) {
	p.rows++
	switch p.Kind {
	case ir.PoolMean:
		if p.sums == nil {
			p.sums = make([]float64, len(row))
		}
		for i, x := range row {
			p.sums[i] += float64(x)
		}
	case ir.PoolFirst, ir.PoolRank:
		if p.rows == 1 {
			p.kept = append(p.kept, row...)
		}
	default:
		p.kept = append(p.kept[:0], row...)
	}
}

// Vector returns the text's vector after all its rows; nil if there were none.
func (p *Pooler) Vector() []float32 {
	if p.Kind != ir.PoolMean {
		return p.kept
	}
	mean := make([]float32, len(p.sums))
	for i, sum := range p.sums {
		mean[i] = float32(sum / float64(p.rows))
	}
	return mean
}

// Normalize scales x to length 1, in place; a vector of zeros stays.
func Normalize(x []float32) {
	square := 0.0
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	if square == 0 {
		return
	}
	for i, v := range x {
		x[i] = float32(float64(v) / math.Sqrt(square))
	}
}
