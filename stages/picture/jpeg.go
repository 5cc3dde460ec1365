package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// maxScans bounds the scans of a JPEG: each goes over all pixels, however few bytes it has. Encoders write about ten.
const maxScans = 100

// inspectJPEG walks over the segments of a JPEG.
func inspectJPEG(data []byte) (Info, error) {
	i, scans, adobe := Info{Format: JPEG}, 0, false
	var frame []byte
	progressive := false
	for at := 2; ; {
		marker, segment, next := segmentOf(data, at)
		switch {
		case segment == nil:
			if i.Width == 0 || scans == 0 {
				return Info{}, errCut
			}
			each := jpegBytes(frame, progressive, adobe)
			i.Bytes = takes(padded(i.Width), padded(i.Height), each)
			return i, nil
		case marker == 0xe1 && i.orientation == 0:
			if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok {
				i.orientation = exif(tiff)
			}
		case marker == 0xee:
			adobe = true
		case marker == 0xc0, marker == 0xc1, marker == 0xc2:
			if frame != nil {
				return Info{}, fmt.Errorf("this JPEG has two headers of frames: want one")
			}
			if len(segment) < 6 {
				return Info{}, errCut
			}
			i.Height, i.Width = int(binary.BigEndian.Uint16(segment[1:])), int(binary.BigEndian.Uint16(segment[3:]))
			if i.Width == 0 || i.Height == 0 {
				return i, i.bounded()
			}
			frame, progressive = segment[5:], marker == 0xc2
		case marker > 0xc2 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			return Info{}, fmt.Errorf("this JPEG is of a rare kind (SOF%d): save it as a baseline or progressive one", marker-0xc0)
		case marker == 0xda:
			if scans++; scans > maxScans {
				return Info{}, fmt.Errorf("this JPEG has more than %d scans: save it again", maxScans)
			}
		}
		at = next
	}
}

// segmentOf finds the segment that begins at or behind a place, and where to look for the next. nil: there is none.
func segmentOf(data []byte, at int) (marker byte, segment []byte, next int) {
	for at < len(data) {
		skip := bytes.IndexByte(data[at:], 0xff)
		if skip < 0 || at+skip+1 >= len(data) {
			return 0, nil, 0
		}
		at += skip + 1
		marker = data[at]
		if marker == 0xff { // fills
			continue
		}
		at++
		if marker == 0 || marker == 1 || marker >= 0xd0 && marker <= 0xd8 { // within a scan, or without a length
			continue
		}
		if marker == 0xd9 || at+2 > len(data) {
			return 0, nil, 0
		}
		n := int(binary.BigEndian.Uint16(data[at:]))
		if n < 2 || at+n > len(data) {
			return 0, nil, 0
		}
		return marker, data[at+2 : at+n], at + n
	}
	return 0, nil, 0
}

// padded is a side with the blocks that reach beyond it.
func padded(side int) int { return (side + 31) &^ 31 }

// jpegBytes is the memory that image/jpeg takes for a pixel: planes, the coefficients of a progressive one, and another
// image if colours are converted.
func jpegBytes(frame []byte, progressive, adobe bool) int {
	n := min(int(frame[0]), (len(frame)-1)/3)
	samples, most := 0, 1
	var ids [4]byte
	for c := range min(n, len(ids)) {
		component := frame[1+3*c:]
		ids[c] = component[0]
		area := int(component[1]>>4) * int(component[1]&15)
		samples, most = samples+area, max(most, area)
	}
	if n == 1 {
		samples, most = 1, 1
	}
	per := 1
	if progressive {
		per += 4
	}
	each := (samples*per + most - 1) / most
	if n == 4 || adobe || string(ids[:3]) == "RGB" {
		each += 4
	}
	return each
}
