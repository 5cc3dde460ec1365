package backendtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// scales says where the float16 scales of a block stand, and how large each is for decoded values of about 1
// around 0. The rest of a block is codes, of which any bits are valid. (MXFP4's scale is a power of two.)
var scales = map[quant.Type][]struct {
	offset int
	size   float32
}{
	quant.Q4_0:   {{0, 1.0 / 5}},
	quant.Q4_1:   {{0, 1.0 / 5}, {2, -1.5}},
	quant.Q5_0:   {{0, 1.0 / 9}},
	quant.Q5_1:   {{0, 1.0 / 9}, {2, -1.7}},
	quant.Q8_0:   {{0, 1.0 / 74}},
	quant.Q2_K:   {{80, 1.0 / 11}, {82, 1.0 / 7}},
	quant.Q3_K:   {{108, 1.0 / 43}},
	quant.Q4_K:   {{0, 1.0 / 222}, {2, 1.0 / 30}},
	quant.Q5_K:   {{0, 1.0 / 450}, {2, 1.0 / 29}},
	quant.Q6_K:   {{208, 1.0 / 1365}},
	quant.IQ4_NL: {{0, 1.0 / 70}},
	quant.IQ4_XS: {{0, 1.0 / 1300}},
}

// codecs lists the types that Random can make.
func codecs() []quant.Type {
	types := []quant.Type{quant.F32, quant.F16, quant.BF16, quant.MXFP4}
	for t := range quant.Type(64) {
		if len(scales[t]) > 0 {
			types = append(types, t)
		}
	}
	return types
}

// encode makes a matrix of the type with values of about the given size: random numbers in the plain formats,
// random blocks in the others, which reaches every code and scale, also those no quantiser chooses.
func encode(rng *rand.Rand, t quant.Type, rows, cols int, size float32) ([]byte, error) {
	row, err := t.RowBytes(cols)
	if err != nil {
		return nil, err
	}
	data := make([]byte, rows*row)
	if t.Block() == 1 {
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = size * float32(rng.NormFloat64())
		}
		return data, quant.Quantize(t, data, x)
	}
	if t != quant.MXFP4 && len(scales[t]) == 0 {
		return nil, fmt.Errorf("%s: where its scales stand is not known", t)
	}
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for at := 0; at < len(data); at += t.Bytes() {
		if t == quant.MXFP4 { // 2^(e−128) times codes of about 6
			data[at] = byte(125 + rng.IntN(2) + int(math.Round(math.Log2(float64(size)))))
		}
		for _, s := range scales[t] {
			d := s.size * size * (0.5 + rng.Float32())
			binary.LittleEndian.PutUint16(data[at+s.offset:], quant.F32ToF16(d))
		}
	}
	return data, nil
}

// types chooses the type of a matrix or table by its shape.
type types func(w *ir.Weight) quant.Type

// all gives matrices and tables one type.
func all(t quant.Type) types { return func(*ir.Weight) quant.Type { return t } }

// matrices gives matrices t, and leaves tables that are nothing else as float32.
func matrices(t quant.Type) types {
	return func(w *ir.Weight) quant.Type {
		if w.Use&ir.Matrix == 0 {
			return quant.F32
		}
		return t
	}
}

// randomModel binds a program to random weights: norm weights near 1, biases small, RoPE divisors from 1 to 2,
// matrices scaled to keep the size of what they multiply.
func randomModel(p *ir.Program, seed uint64, typeOf types) (*Model, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	tensors := make([]ir.Tensor, len(p.Weights))
	data := make([][]byte, len(p.Weights))
	for i := range p.Weights {
		w := &p.Weights[i]
		t := ir.Tensor{Name: w.Name, Type: quant.F32, Shape: []int{w.Cols, w.Rows}}
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
	x := make([]float32, w.Cols)
	for i := range x {
		x[i] = 1 + 0.2*float32(rng.NormFloat64())
		if isBias(w.Name) {
			x[i] -= 1
		}
	}
	data := make([]byte, 4*w.Cols)
	return data, quant.Quantize(quant.F32, data, x)
}

func isBias(name string) bool { return len(name) > 5 && name[len(name)-5:] == ".bias" }

// decode is a weight as numbers, row after row.
func (m *Model) decode(r ir.Ref) ([]float32, error) {
	w := &m.Program.Weights[r]
	x := make([]float32, w.Rows*w.Cols)
	return x, quant.Dequantize(m.Types[r], x, m.Weights[r])
}
