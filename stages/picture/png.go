package picture

import (
	"encoding/binary"
	"fmt"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// inspectPNG reads the chunks of a PNG up to its pixels.
func inspectPNG(data []byte) (Info, error) {
	const header = len(pngMagic) + 8 + 13
	if len(data) < header {
		return Info{}, errCut
	}
	if name := data[12:16]; string(name) != "IHDR" {
		return Info{}, fmt.Errorf("this PNG begins with a chunk %q: want IHDR: is it a PNG?", name)
	}
	w, h := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
	if w > 1<<31-1 || h > 1<<31-1 {
		return Info{}, fmt.Errorf("this PNG has %d x %d pixels: want at most %d million", w, h, MaxPixels/1_000_000)
	}
	i := Info{Format: PNG, Width: int(w), Height: int(h)}
	depth, kind, interlaced := data[24], data[25], data[28] != 0
	transparent := false
	for rest := data[len(pngMagic):]; len(rest) >= 12; {
		n := binary.BigEndian.Uint32(rest)
		name := string(rest[4:8])
		if name == "IDAT" || name == "IEND" || uint64(n) > uint64(len(rest)-12) {
			break
		}
		switch name {
		case "tRNS":
			transparent = true
		case "eXIf":
			i.orientation = exif(rest[8 : 8+n])
		}
		rest = rest[12+n:]
	}
	each := pngBytes(kind, depth, transparent)
	if interlaced { // its passes are images of their own, as large together as the whole
		each *= 2
	}
	i.Bytes = takes(i.Width, i.Height, each)
	return i, nil
}

// pngBytes is the memory that image/png takes for a pixel.
func pngBytes(kind, depth byte, transparent bool) int {
	const gray, palette = 0, 3
	each := 4
	if kind == palette || kind == gray && !transparent {
		each = 1
	}
	if depth == 16 {
		each *= 2
	}
	return each
}
