package picture

import (
	"crypto/sha256"
	"fmt"
)

// Picture is what a tower reads of a picture. Nobody changes it.
type Picture struct {
	Width, Height int     // in pixels, after the processor
	Grid          [3]int  // frames, rows and columns of patches
	Tokens        int     // that it takes in a prompt
	Hash          Hash    // of the encoded picture and the settings
	pix           []uint8 // Height x Width x 3
	settings      *Settings
}

// Hash tells pictures apart.
type Hash [sha256.Size]byte

// Process makes of an encoded picture what the model's tower reads: one picture, or pieces that it reads one by one, as
// many as Cut says. Its errors are as Inspect's.
func (s *Settings) Process(data []byte) ([]*Picture, error) {
	b, err := Decode(data)
	if err != nil {
		return nil, err
	}
	all, err := s.pieces(b)
	for i, p := range all {
		p.Hash = s.HashOf(data)
		if i > 0 {
			p.Hash = sha256.Sum256(fmt.Appendf(p.Hash[:], "piece %d", i))
		}
	}
	return all, err
}

// HashOf is the hash of an encoded picture, as these settings have it processed.
func (s *Settings) HashOf(data []byte) (to Hash) {
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", *s)
	h.Write(data)
	h.Sum(to[:0])
	return to
}

// Bytes is the memory that Process takes, beside the encoded picture, with pixel values made of the result.
func (s *Settings) Bytes(i Info) int64 {
	w, h := s.Width, s.Height
	switch s.Way {
	case Grid, Spend:
		w, h = s.Most, 1
	case Fit:
		w, h = w+s.block(), h+s.block()
	case Tiles:
		h *= 2 * (s.Most + 1) // what is laid out grows
	case Canvas:
		h *= 2*s.Most + 1
	case Slices:
		w, h = s.sliced(i.Width, i.Height).pixels(), 2
	case Split:
		w, h = s.most(), 3*s.most()+s.Height
	}
	return i.Bytes + int64(w)*int64(h)*rgb*int64(1+4+4*s.Frames)
}

// size is what becomes of a picture that is not cut into pieces: pixels and tokens.
func (s *Settings) size(w, h int) (toW, toH, tokens int, err error) {
	switch s.Way {
	case Grid:
		toW, toH, err = s.grid(w, h)
		return toW, toH, toW / s.block() * (toH / s.block()), err
	case Fit:
		toW, toH, tokens = s.fit(w, h)
		return toW, toH, tokens, nil
	case Spend:
		toW, toH, tokens = s.spend(w, h)
		return toW, toH, tokens, nil
	case Tiles:
		across, down := s.squares(w, h)
		n := across * down
		if n > 1 {
			n++
		}
		return s.Width, s.Height * n, s.Tokens * n, nil
	}
	return s.Width, s.Height, s.Tokens, nil
}

func (s *Settings) process(b *Bitmap) (*Picture, error) {
	w, h, tokens, err := s.size(b.Width, b.Height)
	if err != nil {
		return nil, err
	}
	wide, high, part := w, h, area{0, 0, w, h}
	if s.Way == Crop {
		if b.Width < b.Height {
			wide, high = s.Shortest, s.Shortest*b.Height/b.Width
		} else {
			wide, high = s.Shortest*b.Width/b.Height, s.Shortest
		}
		left, top := (wide-w)/2, (high-h)/2
		part = area{left, top, left + w, top + h}
	}
	var out *Bitmap
	if s.Way == Tiles {
		out = s.tiled(b)
	} else {
		out = resize(b, wide, high, part, s.Filter)
	}
	grid := [3]int{1, h / s.Patch, w / s.Patch}
	return &Picture{Width: w, Height: h, Grid: grid, Tokens: tokens, pix: out.Pix, settings: s}, nil
}

// Values are the pixel values, as the processor lays them out: all rows of red, of green, of blue, or in a Grid a row a
// patch, by blocks that become a token; each row has the patch's rows by colour and frame.
func (p *Picture) Values() []float32 {
	if p.settings.Way == Grid {
		return p.patches(p.settings.table())
	}
	return p.Planes()
}

// Planes are the pixel values colour by colour and line by line, whatever the processor's own layout.
func (p *Picture) Planes() []float32 {
	table := p.settings.table()
	out := make([]float32, len(p.pix))
	plane := p.Width * p.Height
	for i := range plane {
		for c := range rgb {
			out[c*plane+i] = table[c][p.pix[i*rgb+c]]
		}
	}
	return out
}

// patches are the values in a row a patch.
func (p *Picture) patches(table *[rgb][256]float32) []float32 {
	s := p.settings
	out := make([]float32, 0, len(p.pix)*s.Frames)
	patch := func(row, column int) {
		for c := range rgb {
			from := len(out)
			for y := row * s.Patch; y < (row+1)*s.Patch; y++ {
				for x := column * s.Patch; x < (column+1)*s.Patch; x++ {
					out = append(out, table[c][p.pix[(y*p.Width+x)*rgb+c]])
				}
			}
			frame := out[from:]
			for range s.Frames - 1 {
				out = append(out, frame...)
			}
		}
	}
	for row := 0; row < p.Grid[1]; row += s.Merge {
		for column := 0; column < p.Grid[2]; column += s.Merge {
			for in := range s.Merge * s.Merge {
				patch(row+in/s.Merge, column+in%s.Merge)
			}
		}
	}
	return out
}

// table has the value of each byte of each colour: scaled and normalised in one step, as the processors do.
func (s *Settings) table() *[rgb][256]float32 {
	var t [rgb][256]float32
	by := float32(1 / s.Factor)
	for c := range t {
		mean, std := s.Mean[c]*by, s.Std[c]*by
		for v := range t[c] {
			t[c][v] = float32(float32(v)-mean) / std
		}
	}
	return &t
}
