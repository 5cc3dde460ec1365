package picture

import (
	"image"
	"image/color"
)

// Bitmap is a decoded picture: rows of pixels of red, green and blue.
type Bitmap struct {
	Width, Height int
	Pix           []uint8 // Height x Width x 3
}

func newBitmap(w, h int) *Bitmap { return &Bitmap{w, h, make([]uint8, w*h*rgb)} }

// row is the pixels of a row.
func (b *Bitmap) row(y int) []uint8 { return b.Pix[y*b.Width*rgb : (y+1)*b.Width*rgb] }

// flatten makes a bitmap of what a decoder returned. What a frame does not cover is white, as what shines through.
func flatten(m image.Image, info Info) *Bitmap {
	w, h := info.Width, info.Height
	b := newBitmap(w, h)
	if info.orientation.swaps() {
		b.Width, b.Height = h, w
	}
	size := m.Bounds()
	at := image.Point{}
	if info.Format == GIF { // a frame has a place on its screen
		at = size.Min
		if size.Dx() != w || size.Dy() != h {
			for i := range b.Pix {
				b.Pix[i] = 255
			}
		}
	}
	pixel := pixelsOf(m)
	for y := range size.Dy() {
		for x := range size.Dx() {
			r, g, bl := pixel(size.Min.X+x, size.Min.Y+y)
			toX, toY := info.orientation.place(at.X+x, at.Y+y, w, h)
			p := b.Pix[(toY*b.Width+toX)*rgb:]
			p[0], p[1], p[2] = r, g, bl
		}
	}
	return b
}

// pixelsOf reads pixels of an image over white.
func pixelsOf(m image.Image) func(x, y int) (r, g, b uint8) {
	switch m := m.(type) {
	case *image.YCbCr:
		return func(x, y int) (r, g, b uint8) {
			luma, chroma := m.YOffset(x, y), m.COffset(x, y)
			return color.YCbCrToRGB(m.Y[luma], m.Cb[chroma], m.Cr[chroma])
		}
	case *image.Gray:
		return func(x, y int) (r, g, b uint8) {
			v := m.GrayAt(x, y).Y
			return v, v, v
		}
	case *image.RGBA: // PNG's and JPEG's are opaque
		return func(x, y int) (r, g, b uint8) {
			p := m.Pix[m.PixOffset(x, y):]
			return p[0], p[1], p[2]
		}
	case *image.NRGBA:
		return func(x, y int) (r, g, b uint8) {
			p := m.Pix[m.PixOffset(x, y):]
			return over(p[0], p[3]), over(p[1], p[3]), over(p[2], p[3])
		}
	case *image.NRGBA64:
		return func(x, y int) (r, g, b uint8) {
			p := m.Pix[m.PixOffset(x, y):] // high bytes first
			return over(p[0], p[6]), over(p[2], p[6]), over(p[4], p[6])
		}
	case *image.Paletted:
		return paletted(m)
	case *image.NYCbCrA:
		return func(x, y int) (r, g, b uint8) {
			luma, chroma, a := m.YOffset(x, y), m.COffset(x, y), m.A[m.AOffset(x, y)]
			r, g, b = color.YCbCrToRGB(m.Y[luma], m.Cb[chroma], m.Cr[chroma])
			return over(r, a), over(g, a), over(b, a)
		}
	case *image.CMYK:
		return func(x, y int) (r, g, b uint8) {
			p := m.Pix[m.PixOffset(x, y):]
			return color.CMYKToRGB(p[0], p[1], p[2], p[3])
		}
	}
	return func(x, y int) (r, g, b uint8) { return straight(m.At(x, y)) }
}

func paletted(m *image.Paletted) func(x, y int) (r, g, b uint8) {
	var colours [256][3]uint8
	for i, c := range m.Palette {
		colours[i][0], colours[i][1], colours[i][2] = straight(c)
	}
	return func(x, y int) (r, g, b uint8) {
		c := &colours[m.Pix[m.PixOffset(x, y)]]
		return c[0], c[1], c[2]
	}
}

// straight is any colour over white.
func straight(c color.Color) (r, g, b uint8) {
	n := color.NRGBA64Model.Convert(c).(color.NRGBA64)
	a := uint8(n.A >> 8)
	return over(uint8(n.R>>8), a), over(uint8(n.G>>8), a), over(uint8(n.B>>8), a)
}

// over is a colour laid over white.
func over(c, alpha uint8) uint8 {
	const white = 255
	return uint8((uint(c)*uint(alpha) + white*(255-uint(alpha)) + 127) / 255)
}
