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
	Diagonal  bool      // row r is 1 in column r, and 0 elsewhere
	Below     int       // if not 0, whole numbers below it, which are I32: experts of tokens
}

// Tensors lists the weights of a model's programs, those of its trunk and of its head if it has one, with values that
// keep them well-conditioned: products of rows of unit size have unit size, norms are near 1, biases are small.
func (c *Config) Tensors(programs ...*ir.Program) (out []Tensor) {
	there := map[string]bool{}
	for _, p := range programs {
		for i := range p.Weights {
			w := &p.Weights[i]
			if there[w.Name] {
				continue
			}
			there[w.Name] = true
			t := Tensor{Name: w.Name, Shape: w.Shape(), Vector: w.Use&ir.Vector != 0}
			t.Mean, t.Dev = conditioned(w)
			c.unscaled(&t)
			if strings.HasSuffix(t.Name, ".ffn_gate_tid2eid.weight") {
				t.Below = c.count(experts)
			}
			if w.Name == ropeFreqs && c.Scaling != nil {
				t.Values = c.ropeDivisors(w.Cols)
			}
			if c.NextHeads() > 0 {
				foreseeable(&t, w)
			}
			if c.DraftVocab > 0 {
				attentive(&t, w)
			}
			out = append(out, t)
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
	case strings.HasPrefix(w.Name, "rope_f"): // divisors
		return 1, 0
	case w.Use&ir.Table != 0, strings.HasPrefix(w.Name, "output."):
		return 0, contrast * unit
	case w.Use&ir.Matrix != 0:
		return 0, unit
	case strings.Contains(w.Name, "norm") && strings.HasSuffix(w.Name, ".weight"):
		return 1, 0.1
	}
	return 0, 0.02
}
