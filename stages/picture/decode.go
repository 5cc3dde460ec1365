package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/webp"
)

// jpegCut is what image/jpeg says of pixels that end too early.
const jpegCut = jpeg.FormatError("short Huffman data")

// Decode decodes a picture: 8 bits of red, green and blue a pixel, turned as its orientation says and laid over white.
// It takes len(data) and the Bytes of its Info of memory, and the time of a picture of that size. Its errors are as
// Inspect's.
func Decode(data []byte) (b *Bitmap, err error) {
	info, err := Inspect(data)
	if err != nil {
		return nil, err
	}
	defer func() { // decoders of others index what a broken picture says
		if r := recover(); r != nil {
			b, err = nil, fmt.Errorf("this %s is broken", info.Format)
		}
	}()
	decode := [...]func(io.Reader) (image.Image, error){PNG: png.Decode, JPEG: jpeg.Decode, WebP: webp.Decode,
		GIF: gif.Decode}[info.Format]
	m, err := decode(bytes.NewReader(data))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, jpegCut):
		return nil, errCut
	case err != nil:
		return nil, fmt.Errorf("this %s is broken: %s", info.Format, reason(err))
	}
	size := m.Bounds()
	if info.Format != GIF && (size.Dx() != info.Width || size.Dy() != info.Height) {
		return nil, fmt.Errorf("this %s is broken: it has other pixels than its header says", info.Format)
	}
	return flatten(m, info), nil
}

// reason is what a decoder says, without its own name and any bytes of the picture.
func reason(err error) string {
	text := err.Error()
	for _, name := range []string{"png: ", "jpeg: ", "gif: ", "webp: ", "vp8: ", "vp8l: ", "riff: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}
