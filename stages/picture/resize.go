package picture

import "math"

// Filter is how pixels are weighed when a picture is made larger or smaller.
type Filter uint8

// Filters that processors use, by Pillow's numbers.
const (
	Lanczos  Filter = 1
	Bilinear Filter = 2
	Bicubic  Filter = 3
)

// support is how far a filter reaches, in pixels of the smaller picture.
func (f Filter) support() float64 {
	switch f {
	case Lanczos:
		return lobes
	case Bicubic:
		return 2
	}
	return 1
}

// lobes is how many waves of its sine Lanczos' filter has on each side.
const lobes = 3

// at is a filter's weight at a distance. The conversions keep compilers from fusing what they enclose: a weight has the
// same bits on every machine.
func (f Filter) at(x float64) float64 {
	x = math.Abs(x)
	switch {
	case f == Lanczos && x == 0:
		return 1
	case f == Lanczos:
		return sinc(x) * sinc(x/lobes)
	case f != Bicubic:
		return max(0, 1-x)
	}
	const a = -0.5
	switch {
	case x < 1:
		return float64(float64(float64((a+2)*x)-(a+3))*x)*x + 1
	case x < 2:
		return float64(float64(float64(float64(x-5)*x)+8)*x-4) * a
	}
	return 0
}

// sinc is sin(πx)/πx.
func sinc(x float64) float64 {
	x *= math.Pi
	return math.Sin(x) / x
}

// unit is the weight 1: sums of weights times bytes stay within 32 bits.
const unit = 1 << 22

// tap says which pixels a pixel of a resized line is made of: the first one, and weights in parts of unit.
type tap struct {
	from    int
	weights []int32
}

func (t *tap) end() int { return t.from + len(t.weights) }

// taps are those of the pixels lo up to hi, when a line of n pixels becomes one of m.
func taps(n, m, lo, hi int, f Filter) []tap {
	out := make([]tap, hi-lo)
	scale := float64(n) / float64(m)
	wide := max(scale, 1)
	reach := f.support() * wide
	for i := range out {
		centre := float64((float64(lo+i) + 0.5) * scale)
		from := max(0, int(math.Floor(centre-reach+0.5)))
		end := min(n, int(math.Floor(centre+reach+0.5)))
		exact, sum := make([]float64, end-from), 0.0
		for j := range exact {
			exact[j] = f.at((float64(from+j) + 0.5 - centre) / wide)
			sum += exact[j]
		}
		weights := make([]int32, end-from)
		for j, w := range exact {
			weights[j] = int32(math.Floor(float64(w/sum*unit) + 0.5))
		}
		out[i] = tap{from, weights}
	}
	return out
}

// area is a part of a picture; x1 and y1 are behind it.
type area struct{ x0, y0, x1, y1 int }

// resize makes a picture w x h pixels large, weighing all pixels that one stands for, and returns an area of it: first
// along rows, rounded to bytes, then along columns, as the processors do. Memory is taken for the area alone.
func resize(from *Bitmap, w, h int, part area, f Filter) *Bitmap {
	out := newBitmap(part.x1-part.x0, part.y1-part.y0)
	across, down := taps(from.Width, w, part.x0, part.x1, f), taps(from.Height, h, part.y0, part.y1, f)
	sums := make([]int32, together(down)*out.Width*rgb) // of rows that are begun, in turns
	n := len(sums) / (out.Width * rgb)
	sum := func(y int) []int32 { return sums[y%n*out.Width*rgb : (y%n+1)*out.Width*rgb] }
	line := make([]uint8, out.Width*rgb)
	begun, done := 0, 0
	for y := down[0].from; done < len(down); y++ {
		along(line, from.row(y), across)
		for begun < len(down) && down[begun].from <= y {
			clear(sum(begun))
			begun++
		}
		for i := done; i < begun; i++ {
			weight, s := down[i].weights[y-down[i].from], sum(i)
			for j, v := range line {
				s[j] += weight * int32(v)
			}
		}
		for done < begun && down[done].end() == y+1 {
			row := out.row(done)
			for j, s := range sum(done) {
				row[j] = rounded(s)
			}
			done++
		}
	}
	return out
}

// Resized is the picture of another size.
func (b *Bitmap) Resized(w, h int) *Bitmap {
	if b.Width == w && b.Height == h {
		return b
	}
	return resize(b, w, h, area{0, 0, w, h}, Bicubic)
}

// together is how many rows are begun at a time, at most.
func together(down []tap) (most int) {
	done := 0
	for i := range down {
		for down[done].end() <= down[i].from {
			done++
		}
		most = max(most, i-done+1)
	}
	return most
}

// along resizes a row.
func along(to, from []uint8, taps []tap) {
	for i := range taps {
		var r, g, b int32
		p := from[taps[i].from*rgb:]
		for j, w := range taps[i].weights {
			q := p[j*rgb : j*rgb+rgb : j*rgb+rgb]
			r, g, b = r+w*int32(q[0]), g+w*int32(q[1]), b+w*int32(q[2])
		}
		to[i*rgb], to[i*rgb+1], to[i*rgb+2] = rounded(r), rounded(g), rounded(b)
	}
}

// rounded is a sum as a byte.
func rounded(sum int32) uint8 { return uint8(min(max((sum+unit/2)>>22, 0), 255)) }
