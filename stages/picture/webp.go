package picture

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// inspectWebP walks over the chunks of a WebP up to its pixels, whose own header counts.
func inspectWebP(data []byte) (Info, error) {
	i, alpha, found := Info{Format: WebP}, 0, false
	var canvas [2]int // of VP8X, by which the decoder allocates transparency
	rest := data[12:]
	for len(rest) >= 8 {
		name, n := string(rest[:4]), uint64(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[8:]
		if n > uint64(len(rest)) { // the decoder allocates what a chunk says
			return Info{}, errCut
		}
		chunk := rest[:n]
		switch {
		case found && name != "EXIF":
		case name == "VP8X":
			if len(chunk) < 10 {
				return Info{}, errCut
			}
			side := func(at int) int { return 1 + int(binary.LittleEndian.Uint32(chunk[at-1:])>>8) }
			canvas = [2]int{side(4), side(7)}
		case name == "ALPH":
			alpha = 1 + 3*4 // as a picture of its own
		case name == "ANIM" || name == "ANMF":
			return Info{}, errors.New("this WebP is an animation: send one frame of it")
		case name == "VP8 ":
			if len(chunk) < 10 {
				return Info{}, errCut
			}
			size := binary.LittleEndian.Uint32(chunk[6:])
			i.Width, i.Height = int(size&0x3fff), int(size>>16&0x3fff)
			i.Bytes = takes((i.Width+15)&^15, (i.Height+15)&^15, 2+alpha)
			found = true
		case name == "VP8L":
			if len(chunk) < 5 {
				return Info{}, errCut
			}
			size := binary.LittleEndian.Uint32(chunk[1:])
			i.Width, i.Height = int(size&0x3fff)+1, int(size>>14&0x3fff)+1
			i.Bytes = takes(i.Width, i.Height, 8) + codes(len(chunk))
			found = true
		case name == "EXIF":
			i.orientation = exif(chunk)
		}
		rest = rest[min(n+n&1, uint64(len(rest))):]
	}
	if !found {
		return Info{}, fmt.Errorf("this WebP of %d bytes has no pixels: is it whole?", len(data))
	}
	if canvas != [2]int{} && canvas != [2]int{i.Width, i.Height} {
		return Info{}, fmt.Errorf("this WebP has a canvas of %d x %d pixels, and %d x %d pixels on it: want as many", canvas[0],
			canvas[1], i.Width, i.Height)
	}
	return i, nil
}

// codes is the memory that the codes of a lossless WebP of n bytes take at most: golang.org/x/image reads up to 2600
// groups of five, and a code of 2328 symbols, 37 KB in memory, can be told in 140 bytes.
func codes(n int) int64 { return min(int64(n)*300, 128<<20) }
