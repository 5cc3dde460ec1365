package picture

import "math"

// layout is how a picture is seen whole, and then in slices of its own proportions.
type layout struct {
	across, down int // slices; both 0: none
	whole, each  size
}

// pixels is how many pixels the tower reads of all.
func (l layout) pixels() int {
	return l.whole.w*l.whole.h + l.across*l.down*l.each.w*l.each.h
}

// sliced is how a picture is laid out. There is one slice for as many pixels as the tower was trained on, one more or
// one less, if that is nearer to the picture's proportions, but not a single one.
func (s *Settings) sliced(w, h int) layout {
	wide, high := float64(w), float64(h)
	n := min(math.Ceil(wide*high/float64(s.Width*s.Height)), float64(s.Most))
	if n <= 1 {
		return layout{whole: s.nearest(wide, high)}
	}
	l, nearest := layout{across: 1, down: 1}, math.Inf(1)
	for m := int(n) - 1; m <= min(int(n)+1, s.Most); m++ {
		for i := 1; i <= m && m > 1; i++ {
			if m%i != 0 {
				continue
			}
			if off := math.Abs(math.Log(wide/high) - math.Log(float64(i)/float64(m/i))); off < nearest {
				l.across, l.down, nearest = i, m/i, off
			}
		}
	}
	l.whole = s.nearest(wide, high)
	share := func(n float64, parts int) float64 { return float64(multiple(n, parts)) / float64(parts) }
	l.each = s.nearest(share(wide, l.across), share(high, l.down))
	return l
}

// nearest is the size of about as many pixels as the tower was trained on, in whole patches.
func (s *Settings) nearest(w, h float64) size {
	ratio := w / h
	high := math.Floor(float64(s.Height) / math.Sqrt(ratio))
	return size{multiple(math.Floor(high*ratio), s.Patch), multiple(high, s.Patch)}
}

// multiple is the nearest multiple of a number, at least the number.
func multiple(n float64, of int) int {
	return max(int(math.RoundToEven(n/float64(of)))*of, of)
}

// slices are the whole picture, and then its slices line by line.
func (s *Settings) slices(b *Bitmap) []*Picture {
	l := s.sliced(b.Width, b.Height)
	all := []*Picture{s.piece(b.to(l.whole, s.Filter))}
	for i := range l.across * l.down {
		left, top := i%l.across*l.each.w, i/l.across*l.each.h
		part := area{left, top, left + l.each.w, top + l.each.h}
		all = append(all, s.piece(resize(b, l.across*l.each.w, l.down*l.each.h, part, s.Filter)))
	}
	return all
}
