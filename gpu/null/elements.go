package null

import (
	"cmp"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// elements returns the loop of a launch that works row by row, or nil.
func elements(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.Each:
		return bind(each, k)
	case *kernel.GroupNorm:
		return bind(groupNorm, k)
	case *kernel.Norm:
		return bind(norm, k)
	case *kernel.Turn:
		return bind(turn, k)
	case *kernel.HeadCopy:
		return bind(headCopy, k)
	case *kernel.Around:
		return bind(around, k)
	case *kernel.Adapt:
		return bind(adapt, k)
	case *kernel.Finite:
		return bind(finite, k)
	}
	return nil
}

// bind is a loop with a copy of its arguments.
func bind[K any](loop func(x *access, k *K), k *K) func(*access) {
	own := *k
	return func(x *access) { loop(x, &own) }
}

func each(x *access, k *kernel.Each) {
	filled, wide := max(k.Width, k.Filled), k.BWidth
	if wide == 0 {
		wide = k.Width
	}
	for r := range there(x, k.Count, k.Rows) {
		from := r / max(1, k.Share)
		if k.Numbers != 0 {
			from = int(told[uint32](x, k.Numbers+uint64(4*r), 1)[0])
		}
		read := in[float32]
		if k.Numbers != 0 && k.Numbered == 0 {
			read = told[float32] // rows of a weight
		}
		a := read(x, row(k.A, from, k.AStride), k.Width)
		var b []float32
		if k.Formula == kernel.Sum || k.Formula == kernel.Product || k.Formula == kernel.Gate {
			b = in[float32](x, row(k.B, r, k.BStride), wide)
		}
		y := out[float32](x, row(k.Y, r, k.YStride), filled)
		for i := range y {
			v := float32(0)
			if i < k.Width {
				v = formula(k, a[i], b, i)
			}
			y[i] = v
		}
	}
}

// formula is value i of a row of y.
func formula(k *kernel.Each, a float32, b []float32, i int) float32 {
	switch k.Formula {
	case kernel.Sum:
		return a + b[min(i, len(b)-1)]
	case kernel.Product:
		return a * b[min(i, len(b)-1)]
	case kernel.Scaled:
		return k.Factor * a
	case kernel.SoftCap:
		return float32(ir.Cap(float64(a), float64(k.Factor)))
	case kernel.Activate:
		return float32(cmp.Or(k.Act, ir.SiLU).Of(float64(a)))
	case kernel.Gate:
		return gate(k.Act, a, b[min(i, len(b)-1)])
	}
	return a
}

// gate is a GLU of two inputs; without an activation SiLU's.
func gate(act ir.Act, v, up float32) float32 {
	return float32(cmp.Or(act, ir.SiLU).Gate(float64(v), float64(up)))
}

func groupNorm(x *access, k *kernel.GroupNorm) {
	of := func(at uint64, byRow bool, g int) []float32 {
		if byRow && at != 0 {
			at = row(at, g, 1)
		}
		return vector(x, at, k.Group)
	}
	for r := range there(x, k.Count, k.Rows) {
		from, y := in[float32](x, row(k.X, r, k.XStride), k.Width), out[float32](x, row(k.Y, r, k.YStride), k.Width)
		for g := 0; g < k.Width; g += k.Group {
			gain, bias := of(k.Gain, k.GainByRow, g), of(k.Bias, k.BiasByRow, g)
			(&ir.NormArgs{Layer: k.Layer, Eps: k.Eps}).Apply(y[g:g+k.Group], from[g:g+k.Group], gain, bias)
		}
	}
}

func norm(x *access, k *kernel.Norm) {
	for r := range k.Rows {
		v := make([]float32, kernel.PaddedWidth(k.Width))
		if from := in[float32](x, row(k.X, r, k.XStride), k.Width); k.Gain == 0 {
			copy(v, from)
		} else {
			(&ir.NormArgs{Eps: k.Eps}).Apply(v[:k.Width], from, vector(x, k.Gain, k.Width), nil)
		}
		if size := kernel.QuantisedBytes(k.Width); k.Quantise {
			quantise(out[byte](x, k.Y+uint64(r*size), size), v)
		} else {
			copy(out[float32](x, row(k.Y, r, k.Stride), len(v)), v)
		}
	}
}

func turn(x *access, k *kernel.Turn) {
	for r := range there(x, k.Count, k.Rows) {
		n := k.Heads * k.Features
		from, y := in[float32](x, row(k.X, r, k.XStride), n), out[float32](x, row(k.Y, r, k.YStride), n)
		angles := told[float32](x, row(k.Angles, r, k.Dims), k.Dims)
		for h := 0; h < n; h += k.Features {
			rotate(y[h:h+k.Features], from[h:h+k.Features], angles, k.Interleaved)
		}
	}
}

// rotate rotates the pairs of a head; angles has cosine and sine of each. to may be from.
func rotate(to, from, angles []float32, interleaved bool) {
	dims := len(angles)
	copy(to, from)
	for i := range dims / 2 {
		first, second := i, i+dims/2
		if interleaved {
			first, second = 2*i, 2*i+1
		}
		p, q, c, s := float64(to[first]), float64(to[second]), float64(angles[2*i]), float64(angles[2*i+1])
		to[first], to[second] = float32(p*c-q*s), float32(p*s+q*c)
	}
}

func headCopy(x *access, k *kernel.HeadCopy) {
	for r := range there(x, k.Count, k.N) {
		for h := range k.Heads {
			copy(out[float32](x, row(k.Y, r, k.YStride)+uint64(4*h*k.YHead), k.Width),
				in[float32](x, row(k.X, r, k.XStride)+uint64(4*h*k.XHead), k.Width))
		}
	}
}

func around(x *access, k *kernel.Around) {
	rows := there(x, k.Count, k.Rows)
	for _, t := range textsOf(x, k.Texts) {
		for r := range min(t.Rows, rows-t.Row) {
			y := out[float32](x, row(k.Y, t.Row+r, k.YStride), k.Size*k.Size*k.Width)
			for i, at := range t.Grid.Around(t.Rows, r, k.Size, nil) {
				if part := y[i*k.Width:][:k.Width]; at < 0 {
					clear(part)
				} else {
					copy(part, in[float32](x, row(k.X, t.Row+at, k.XStride), k.Width))
				}
			}
		}
	}
}

// finite raises a status that other launches write too, in any order: that is no hazard.
func finite(x *access, k *kernel.Finite) {
	for r := range there(x, k.Count, k.Rows) {
		for _, v := range in[float32](x, row(k.X, r, k.Stride), k.Width) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				x.note(k.Status, uint32(r+1))
			}
		}
	}
}
