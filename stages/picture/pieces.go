package picture

import "math"

// Cut is how a picture is read: as one, or in pieces, each of which has its tokens in a prompt.
type Cut struct {
	Across, Down int   // pieces side by side and one below another; both 0: the picture is not cut
	Tokens       []int // of the pieces, line by line, and then of the whole picture; or of that first (Slices)
}

// Cut is how a picture with such a header is read.
func (s *Settings) Cut(i Info) (c Cut, err error) {
	w, h := i.Width, i.Height
	if i.orientation.swaps() {
		w, h = h, w
	}
	return s.cut(w, h)
}

func (s *Settings) cut(w, h int) (c Cut, err error) {
	switch s.Way {
	case Split:
		w, h = s.wholeSquares(s.longest(w, h))
		c.Across, c.Down = w/s.Width, h/s.Height
	case Canvas:
		c.Across, c.Down = s.canvas(w, h)
	case Slices:
		l := s.sliced(w, h)
		c.Across, c.Down = l.across, l.down
	default:
		_, _, n, err := s.size(w, h)
		return Cut{Tokens: []int{n}}, err
	}
	if n := c.Across * c.Down; n > 1 {
		for range n {
			c.Tokens = append(c.Tokens, s.Tokens)
		}
	} else {
		c.Across, c.Down = 0, 0
	}
	c.Tokens = append(c.Tokens, s.Tokens)
	return c, nil
}

// pieces are what the tower reads of a picture.
func (s *Settings) pieces(b *Bitmap) ([]*Picture, error) {
	var laid, whole *Bitmap
	switch s.Way {
	case Split:
		w, h := s.longest(b.Width, b.Height)
		b = b.to(size{w, h}, s.Filter)
		w, h = s.wholeSquares(w, h)
		laid = b.to(size{w, h}, s.Filter)
		whole = laid
	case Canvas:
		laid, whole = s.laid(b), b
	case Slices:
		return s.slices(b), nil
	default:
		p, err := s.process(b)
		if err != nil {
			return nil, err
		}
		return []*Picture{p}, nil
	}
	var all []*Picture
	for top := 0; top < laid.Height; top += s.Height {
		for left := 0; left < laid.Width; left += s.Width {
			all = append(all, s.piece(laid.part(left, top, s.Width, s.Height)))
		}
	}
	if len(all) > 1 {
		all = append(all, s.piece(whole.to(size{s.Width, s.Height}, s.Filter)))
	}
	return all, nil
}

// piece is a square as the tower reads it.
func (s *Settings) piece(b *Bitmap) *Picture {
	return &Picture{Width: b.Width, Height: b.Height, Grid: [3]int{1, b.Height / s.Patch, b.Width / s.Patch},
		Tokens: s.Tokens, pix: b.Pix, settings: s}
}

// size is width and height in pixels.
type size struct{ w, h int }

// to is the picture of another size.
func (b *Bitmap) to(n size, f Filter) *Bitmap { return resize(b, n.w, n.h, area{0, 0, n.w, n.h}, f) }

// part copies a part of a picture.
func (b *Bitmap) part(left, top, w, h int) *Bitmap {
	out := newBitmap(w, h)
	for y := range h {
		copy(out.row(y), b.row(top + y)[left*rgb:])
	}
	return out
}

// longest is the size of a picture whose longer side is as long as it may be. The shorter one is even.
func (s *Settings) longest(w, h int) (toW, toH int) {
	const most = 4096 // of the processor, whatever the settings are
	ratio, side := float64(w)/float64(h), s.Most
	even := func(n float64) int { return max(1, int(n)+int(n)%2) }
	if w >= h {
		toW, toH = side, even(float64(side)/ratio)
	} else {
		toW, toH = even(float64(side)*ratio), side
	}
	ratio = float64(toW) / float64(toH)
	switch {
	case toW >= toH && toW > most:
		toW, toH = most, max(1, int(most/ratio))
	case toH > toW && toH > most:
		toW, toH = max(1, int(most*ratio)), most
	}
	return toW, toH
}

// wholeSquares is the size in whole squares: of the longer side first, the other one follows from the proportions.
func (s *Settings) wholeSquares(w, h int) (toW, toH int) {
	side := s.Width
	up := func(n int) int { return (n + side - 1) / side * side }
	ratio := float64(w) / float64(h)
	if w >= h {
		toW = up(w)
		return toW, max(side, up(int(float64(toW)/ratio)))
	}
	toH = up(h)
	return max(side, up(int(float64(toH)*ratio))), toH
}

// most is the longest side of Split in whole squares.
func (s *Settings) most() int { return (s.Most + s.Width - 1) / s.Width * s.Width }

// canvas is how many squares, side by side and one below another, hold a picture: those that it fills without being
// made smaller, as little larger as can be; otherwise those on which it is made the least smaller. Of several the
// fewest.
func (s *Settings) canvas(w, h int) (across, down int) {
	best := 0.0
	better := func(by float64) bool {
		if (by >= 1) != (best >= 1) {
			return by >= 1
		}
		if by >= 1 {
			return by < best
		}
		return by > best
	}
	for n := s.Most; n > 0; n-- {
		for i := 1; i <= n; i++ {
			if n%i != 0 {
				continue
			}
			by := float64(min(float32(n/i*s.Width)/float32(w), float32(i*s.Height)/float32(h)))
			if better(by) || by == best && n < across*down {
				across, down, best = n/i, i, by
			}
		}
	}
	return across, down
}

// laid is a picture at its own proportions at the top left of as many squares as hold it. It is made larger up to one
// square only. The rest is black.
func (s *Settings) laid(b *Bitmap) *Bitmap {
	across, down := s.canvas(b.Width, b.Height)
	out := newBitmap(across*s.Width, down*s.Height)
	w, h := min(max(b.Width, s.Width), out.Width), min(max(b.Height, s.Height), out.Height)
	if byW, byH := float64(w)/float64(b.Width), float64(h)/float64(b.Height); byW < byH {
		h = max(1, min(int(math.Floor(float64(b.Height)*byW)), h))
	} else {
		w = max(1, min(int(math.Floor(float64(b.Width)*byH)), w))
	}
	small := b.to(size{w, h}, s.Filter)
	for y := range h {
		copy(out.row(y), small.row(y))
	}
	return out
}
