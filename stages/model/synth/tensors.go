package synth

import (
	"math"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Tensor is one weight and what its random values are like.
type Tensor struct {
	Name      string
	Shape     []int // in ggml order
	Vector    bool  // a few float32; else a matrix
	Mean, Dev float64
	Values    []float32 // if not nil, these
}

// Tensors lists the weights of a program with values that keep it well-conditioned: products of rows of unit size have
// unit size, norms are near 1, biases are small.
func (c *Config) Tensors(p *ir.Program) []Tensor {
	out := make([]Tensor, len(p.Weights))
	for i := range p.Weights {
		w := &p.Weights[i]
		out[i] = Tensor{Name: w.Name, Shape: w.Shape(), Vector: w.Use&ir.Vector != 0}
		out[i].Mean, out[i].Dev = conditioned(w)
		if w.Name == ropeFreqs {
			out[i].Values = c.ropeDivisors(w.Cols)
		}
	}
	return out
}

func conditioned(w *ir.Weight) (mean, dev float64) {
	const contrast = 3 // of logits: some tokens are far more likely than others, as in trained models
	unit := 1 / math.Sqrt(float64(w.Cols))
	if mean, dev, ok := recurrentValues(w.Name, w.Cols); ok {
		return mean, dev
	}
	switch {
	case w.Use == ir.Table:
		return 0, 1
	case w.Use&ir.Table != 0, strings.HasPrefix(w.Name, "output."):
		return 0, contrast * unit
	case w.Use&ir.Matrix != 0:
		return 0, unit
	case strings.Contains(w.Name, "norm") && strings.HasSuffix(w.Name, ".weight"):
		return 1, 0.1
	}
	return 0, 0.02
}
