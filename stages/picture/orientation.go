package picture

import (
	"bytes"
	"encoding/binary"
)

// orientation is how a picture is turned, by the numbers of Exif; 0 and 1: it is as it should be.
type orientation uint8

// exif finds the orientation in a TIFF directory, as pictures have it beside their pixels.
func exif(tiff []byte) orientation {
	tiff = bytes.TrimPrefix(tiff, []byte("Exif\x00\x00"))
	if len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch string(tiff[:2]) {
	case "II":
	case "MM":
		order = binary.BigEndian
	default:
		return 0
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 0
	}
	const entry, tag, short = 12, 0x0112, 3
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < entry {
			break
		}
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if o := order.Uint16(entries[8:]); o <= 8 {
				return orientation(o)
			}
		}
		entries = entries[entry:]
	}
	return 0
}

// swaps says whether width and height change places.
func (o orientation) swaps() bool { return o >= 5 }

// place is where the pixel (x, y) of a picture of w x h pixels belongs.
func (o orientation) place(x, y, w, h int) (int, int) {
	switch o {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return h - 1 - y, x
	case 7:
		return h - 1 - y, w - 1 - x
	case 8:
		return y, w - 1 - x
	}
	return x, y
}
