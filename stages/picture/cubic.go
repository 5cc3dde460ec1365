package picture

import "math"

// Cubic enlarges a picture by a whole factor: it returns a colour from 0 to 1 of a pixel of the result, by Keys' cubic
// convolution with a = −0.5 of the 16 nearest pixels. Centres are in the middle of pixels; the edge's pixels go on
// beyond it.
func (b *Bitmap) Cubic(scale int) func(y, x, colour int) float64 {
	const near = 4
	type phase struct {
		from    int // the first pixel, from the one that is enlarged
		weights [near]float64
	}
	phases := make([]phase, scale) // by the place in an enlarged pixel
	for i := range phases {
		centre := (float64(i)+0.5)/float64(scale) - 0.5
		p := &phases[i]
		p.from = int(math.Floor(centre)) - 1
		for j := range p.weights {
			p.weights[j] = Bicubic.at(float64(p.from+j) - centre)
		}
	}
	return func(y, x, colour int) float64 {
		down, across, sum := &phases[y%scale], &phases[x%scale], 0.0
		for i, wy := range down.weights {
			line, part := b.row(min(max(y/scale+down.from+i, 0), b.Height-1)), 0.0
			for j, wx := range across.weights {
				part += wx * float64(line[min(max(x/scale+across.from+j, 0), b.Width-1)*rgb+colour])
			}
			sum += wy * part
		}
		return sum / math.MaxUint8
	}
}
