package picture

import (
	"image"
	"image/png"
	"io"
	"math"
)

// WritePNG writes the picture as a PNG of 8 bits a colour.
func (b *Bitmap) WritePNG(w io.Writer) error {
	m := image.NewNRGBA(image.Rect(0, 0, b.Width, b.Height))
	for i := range b.Width * b.Height {
		copy(m.Pix[4*i:4*i+3], b.Pix[i*rgb:])
		m.Pix[4*i+3] = math.MaxUint8
	}
	return png.Encode(w, m)
}
