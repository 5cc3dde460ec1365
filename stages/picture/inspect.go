package picture

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// MaxPixels bounds the pixels of an encoded picture.
	MaxPixels = 40_000_000
	// MaxBytes bounds the memory that decoding a picture takes beside its encoded bytes.
	MaxBytes = 8 * MaxPixels

	maxSide = 65_535
)

// Format is how a picture is encoded.
type Format uint8

// Formats that are read.
const (
	PNG Format = iota + 1
	JPEG
	WebP
	GIF
)

func (f Format) String() string { return [...]string{"", "PNG", "JPEG", "WebP", "GIF"}[f] }

// Info is what the header of an encoded picture says.
type Info struct {
	Format        Format
	Width, Height int   // as they are stored; the orientation may swap them
	Bytes         int64 // memory that decoding takes beside the encoded picture, the result included
	orientation   orientation
}

// errCut is the error of a picture that ends before its header does.
var errCut = errors.New("the picture ends too early: is it whole?")

// Inspect reads the header of a picture and allocates nothing. Its errors complete a sentence about the picture, for
// whoever sent it: what is no picture that can be read, and what would take more memory than is given for one.
func Inspect(data []byte) (Info, error) {
	inspect := formatOf(data)
	if inspect == nil {
		return Info{}, fmt.Errorf("these %d bytes are no picture that can be read: want PNG, JPEG, WebP or GIF", len(data))
	}
	i, err := inspect(data)
	if err != nil {
		return Info{}, err
	}
	return i, i.bounded()
}

// formatOf is the reader of the header that a picture has; nil: of none that is known.
func formatOf(data []byte) func([]byte) (Info, error) {
	switch {
	case bytes.HasPrefix(data, []byte(pngMagic)):
		return inspectPNG
	case bytes.HasPrefix(data, []byte("\xff\xd8")):
		return inspectJPEG
	case bytes.HasPrefix(data, []byte("RIFF")) && len(data) >= 12 && string(data[8:12]) == "WEBP":
		return inspectWebP
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return inspectGIF
	}
	return nil
}

func (i *Info) bounded() error {
	w, h := int64(i.Width), int64(i.Height)
	switch {
	case w <= 0 || h <= 0:
		return fmt.Errorf("this %s has %d x %d pixels: want at least one", i.Format, w, h)
	case w > maxSide || h > maxSide || w*h > MaxPixels:
		return fmt.Errorf("this %s has %d x %d pixels: want at most %d million, and sides of at most %d", i.Format, w, h,
			MaxPixels/1_000_000, maxSide)
	case i.Bytes > MaxBytes:
		return fmt.Errorf("this %s of %d x %d pixels needs %d MB to be decoded, more than %d: make it smaller, or save it "+
			"as a plain JPEG or PNG of 8 bits", i.Format, w, h, i.Bytes>>20, MaxBytes>>20)
	}
	return nil
}

// rgb is the bytes of a pixel in a Bitmap.
const rgb = 3

// takes is the memory that an image of w x h pixels takes, of so many bytes each, and the bitmap that is made of it.
// Sizes that are refused anyway need not be right.
func takes(w, h, each int) int64 {
	return int64(min(w, maxSide+1)) * int64(min(h, maxSide+1)) * int64(each+rgb)
}
