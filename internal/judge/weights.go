package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// encode makes a matrix of the type with values of about the given size: random numbers in the plain formats,
// random blocks in the others, which reaches every code and scale, also those no quantiser chooses.
func encode(rng *rand.Rand, t quant.Type, rows, cols int, size float32) ([]byte, error) {
	row, err := t.RowBytes(cols)
	if err != nil {
		return nil, err
	}
	data := make([]byte, rows*row)
	return data, quant.Random(t, data, float64(size), rng)
}

// Types chooses the type of a matrix or table by its shape.
type Types func(w *ir.Weight) quant.Type

// All gives matrices and tables one type.
func All(t quant.Type) Types { return func(*ir.Weight) quant.Type { return t } }

// Matrices gives matrices t, and leaves tables that are nothing else as float32.
func Matrices(t quant.Type) Types {
	return func(w *ir.Weight) quant.Type {
		if w.Use&ir.Matrix == 0 {
			return quant.F32
		}
		return t
	}
}

// Random binds a program to random weights: norm weights near 1, biases small, RoPE divisors from 1 to 2,
// matrices scaled to keep the size of what they multiply.
func Random(p *ir.Program, seed uint64, typeOf Types) (*Model, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	tensors := make([]ir.Tensor, len(p.Weights))
	data := make([][]byte, len(p.Weights))
	for i := range p.Weights {
		w := &p.Weights[i]
		t := ir.Tensor{Name: w.Name, Type: quant.F32, Shape: w.Shape()}
		var err error
		if w.Use == ir.Vector {
			data[i], err = vector(rng, w)
		} else {
			size := float32(1)
			if w.Use&ir.Matrix != 0 {
				size = float32(1 / math.Sqrt(float64(w.Cols)))
			}
			t.Type = typeOf(w)
			data[i], err = encode(rng, t.Type, w.Rows, w.Cols, size)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
		tensors[i] = t
	}
	return NewModel(p, tensors, func(i int, use func([]byte) error) error { return use(data[i]) })
}

func vector(rng *rand.Rand, w *ir.Weight) ([]byte, error) {
	x := make([]float32, w.Rows*w.Cols)
	for i := range x {
		x[i] = 1 + 0.2*float32(rng.NormFloat64())
		if isBias(w.Name) {
			x[i] -= 1
		}
		if isDecay(w.Name) {
			x[i] = -0.3 * x[i]
		}
	}
	data := make([]byte, 4*len(x))
	return data, quant.Quantize(quant.F32, data, x)
}

func isBias(name string) bool { return len(name) > 5 && name[len(name)-5:] == ".bias" }

// isDecay says whether a weight is A of a scan, whose states would otherwise grow without bound.
func isDecay(name string) bool { return name == "a" || strings.HasSuffix(name, ".a") }

// Decode is a weight as numbers, row after row.
func (m *Model) Decode(r ir.Ref) ([]float32, error) {
	w := &m.Program.Weights[r]
	x := make([]float32, w.Rows*w.Cols)
	return x, quant.Dequantize(m.Types[r], x, m.Weights[r])
}
