package picture

import "math"

// fit is the size that a picture gets whose longest side is at most the tower's: it keeps its size if it can, and both
// sides are filled up to whole blocks. After each line of tokens but the last there is one more.
func (s *Settings) fit(w, h int) (toW, toH, tokens int) {
	if by := max(float64(h)/float64(s.Height), float64(w)/float64(s.Width)); by > 1 {
		w, h = int(math.Floor(float64(w)/by)), int(math.Floor(float64(h)/by))
	}
	across, down := (max(w, 1)-1)/s.block()+1, (max(h, 1)-1)/s.block()+1
	return across * s.block(), down * s.block(), down*(across+1) - 1
}

// spend is the largest size of whole blocks, about as long and wide as the picture, of no more than so many pixels.
func (s *Settings) spend(w, h int) (toW, toH, tokens int) {
	block, most := s.block(), s.Most/(s.block()*s.block())
	by := math.Sqrt(float64(s.Most) / (float64(w) * float64(h)))
	across, down := int(math.Floor(by*float64(w)/float64(block))), int(math.Floor(by*float64(h)/float64(block)))
	switch {
	case down == 0:
		across, down = min(w/h, most), 1
	case across == 0:
		across, down = 1, min(h/w, most)
	}
	return across * block, down * block, across * down
}

// squares is how many squares of the tower's size a picture is laid out in, side by side and one below another: as near
// to its proportions as Least to Most squares come, and more of them only if more than half would be filled.
func (s *Settings) squares(w, h int) (across, down int) {
	across, down = 1, 1
	ratio, nearest := float64(w)/float64(h), math.Inf(1)
	for n := s.Least; n <= s.Most; n++ {
		for i := 1; i <= n; i++ {
			if n%i != 0 {
				continue
			}
			off := math.Abs(ratio - float64(i)/float64(n/i))
			if off < nearest || off == nearest && float64(w)*float64(h) > 0.5*float64(s.Width)*float64(s.Height)*float64(n) {
				across, down, nearest = i, n/i, off
			}
		}
	}
	return across, down
}

// tiled is a picture as squares, one below another, line by line; if there are several, the whole picture follows.
func (s *Settings) tiled(b *Bitmap) *Bitmap {
	across, down := s.squares(b.Width, b.Height)
	var pix []uint8
	for i := range across * down {
		left, top := i%across*s.Width, i/across*s.Height
		one := resize(b, across*s.Width, down*s.Height, area{left, top, left + s.Width, top + s.Height}, s.Filter)
		pix = append(pix, one.Pix...)
	}
	if across*down > 1 {
		pix = append(pix, resize(b, s.Width, s.Height, area{0, 0, s.Width, s.Height}, s.Filter).Pix...)
	}
	return &Bitmap{s.Width, len(pix) / (s.Width * rgb), pix}
}
