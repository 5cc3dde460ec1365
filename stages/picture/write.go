package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"math"
)

// Text is a text in a PNG file, by its keyword: 1 to 79 letters, such as parameters.
type Text struct{ Key, Value string }

// WritePNG writes the picture as a PNG of 8 bits a colour, with texts.
func (b *Bitmap) WritePNG(w io.Writer, texts ...Text) error {
	m := image.NewNRGBA(image.Rect(0, 0, b.Width, b.Height))
	for i := range b.Width * b.Height {
		copy(m.Pix[4*i:4*i+3], b.Pix[i*rgb:])
		m.Pix[4*i+3] = math.MaxUint8
	}
	if len(texts) == 0 {
		return png.Encode(w, m)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		return err
	}
	const header = len(pngMagic) + 4 + 4 + 13 + 4 // the first chunk: length, name, sizes, sum
	if _, err := w.Write(file.Next(header)); err != nil {
		return err
	}
	for _, t := range texts {
		if _, err := w.Write(t.chunk()); err != nil {
			return err
		}
	}
	_, err := file.WriteTo(w)
	return err
}

// chunk is an iTXt chunk: a text in UTF-8, neither compressed nor translated.
func (t *Text) chunk() []byte {
	data := "iTXt" + t.Key + "\x00\x00\x00\x00\x00" + t.Value
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)-4))
	out = append(out, data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE([]byte(data)))
}
