package null

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// adapt computes the first product whole and leaves it in the first part.
func adapt(x *access, k *kernel.Adapt) {
	for r := range there(x, k.Count, k.Rows) {
		of, at := r, k.Between+uint64(4*r*k.Parts()*kernel.MostRanks)
		if k.Numbers != 0 {
			of = int(told[uint32](x, k.Numbers+uint64(4*r), 1)[0])
		}
		var y []float32
		if k.Up {
			y = append(y, in[float32](x, row(k.A.At, r, k.A.Stride), k.Out)...)
		}
		list := k.Applied + uint64(kernel.AppliedBytes)*uint64(told[uint32](x, k.Lists+uint64(4*of), 1)[0])
		for ; ; list += kernel.AppliedBytes {
			a := told[kernel.Applied](x, list, 1)[0]
			if a.Changes == 0 {
				break
			}
			c := told[kernel.Change](x, a.Changes+uint64(kernel.ChangeBytes*k.Site), 1)[0]
			if c.Rank == 0 {
				continue
			}
			if k.Up {
				changeUp(x, k, &c, a.Scale, in[float32](x, at, int(c.Rank)), y)
			} else {
				changeDown(x, k, &c, r, out[float32](x, at, int(c.Rank)))
			}
			at += uint64(4 * ir.Padded(int(c.Rank)))
		}
		if k.Up {
			copy(out[float32](x, row(k.Y.At, r, k.Y.Stride), k.Out), y)
		}
	}
}

// changeDown is the product of the first factor with a row, or the factor's row of a token.
func changeDown(x *access, k *kernel.Adapt, c *kernel.Change, r int, between []float32) {
	stride, values, from := ir.Padded(len(between)), []float32{1}, 0
	if k.X.At != 0 {
		values = in[float32](x, row(k.X.At, r, k.X.Stride), k.In)
	} else if from = int(told[int32](x, k.IDs+uint64(4*r), 1)[0]); from < 0 {
		from = int(told[int32](x, k.Drawn+uint64(4*(-1-from)), 1)[0])
	}
	a := factor(x, c.A, c.Halves&1 != 0, from*stride, len(values)*stride)
	for j := range between {
		sum := 0.0
		for i, v := range values {
			sum += float64(a[i*stride+j]) * float64(v)
		}
		between[j] = float32(sum)
	}
}

// changeUp adds the product of the second factor.
func changeUp(x *access, k *kernel.Adapt, c *kernel.Change, scale float32, between, y []float32) {
	stride := ir.Padded(len(y))
	b := factor(x, c.B, c.Halves&2 != 0, 0, len(between)*stride)
	for o := range y {
		sum := 0.0
		for j, t := range between {
			sum += float64(b[j*stride+o]) * float64(t)
		}
		y[o] = float32(float64(y[o]) + float64(c.Scale)*float64(scale)*sum)
	}
}

// factor is n numbers of a factor, from one on.
func factor(x *access, at uint64, halves bool, from, n int) []float32 {
	if !halves {
		return told[float32](x, at+uint64(4*from), n)
	}
	all := make([]float32, n)
	for i, h := range told[uint16](x, at+uint64(2*from), n) {
		all[i] = quant.F16ToF32(h)
	}
	return all
}
