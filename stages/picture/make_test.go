package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// gradient is a picture whose pixels all differ.
func gradient(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * 10), uint8(y * 15), 128, 255})
		}
	}
	return m
}

func encoded(t testing.TB, format Format, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case PNG:
		err = png.Encode(&b, m)
	case JPEG:
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 95})
	case GIF:
		err = gif.Encode(&b, m, nil)
	}
	require.NoError(t, err)
	return b.Bytes()
}

// webpFile is a picture that a browser wrote.
func webpFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".webp"))
	require.NoError(t, err)
	return data
}

// pngOf writes a PNG of any kind, all of whose samples are 0; its header may lie about the size.
func pngOf(w, h int, depth, kind, interlace byte, rows []byte, chunks ...[]byte) []byte {
	out := []byte(pngMagic)
	header := binary.BigEndian.AppendUint32(nil, uint32(w))
	header = binary.BigEndian.AppendUint32(header, uint32(h))
	out = append(out, pngChunk("IHDR", append(header, depth, kind, 0, 0, interlace))...)
	for _, c := range chunks {
		out = append(out, c...)
	}
	var z bytes.Buffer
	zw := zlib.NewWriter(&z)
	zw.Write(rows)
	zw.Close()
	out = append(out, pngChunk("IDAT", z.Bytes())...)
	return append(out, pngChunk("IEND", nil)...)
}

func pngChunk(name string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(append(out, name...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// progressive makes of a baseline JPEG one that says it is progressive, with the first coefficients of a scan.
func progressive(data []byte) []byte {
	data = bytes.Clone(data)
	for at := 2; ; {
		marker, segment, next := segmentOf(data, at)
		if segment == nil {
			return data
		}
		switch marker {
		case 0xc0:
			data[next-len(segment)-3] = 0xc2
		case 0xda:
			data[next-2] = 0
		}
		at = next
	}
}

// turned puts an orientation into a JPEG.
func turned(data []byte, o orientation) []byte {
	tiff := tiffOf(o, binary.BigEndian)
	segment := append([]byte{0xff, 0xe1, 0, byte(2 + 6 + len(tiff))}, "Exif\x00\x00"...)
	return append(append(append([]byte{}, data[:2]...), append(segment, tiff...)...), data[2:]...)
}

func tiffOf(o orientation, order binary.AppendByteOrder) []byte {
	name := "II"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		name = "MM"
	}
	out := order.AppendUint32(order.AppendUint16([]byte(name), 42), 8)
	out = order.AppendUint16(out, 1)
	out = order.AppendUint16(order.AppendUint16(out, 0x0112), 3)
	out = order.AppendUint32(out, 1)
	out = order.AppendUint16(order.AppendUint16(out, uint16(o)), 0)
	return order.AppendUint32(out, 0)
}

// sized changes the size that a picture's header says.
func sized(data []byte, w, h int) []byte {
	data = bytes.Clone(data)
	switch {
	case bytes.HasPrefix(data, []byte(pngMagic)):
		binary.BigEndian.PutUint32(data[16:], uint32(w))
		binary.BigEndian.PutUint32(data[20:], uint32(h))
		binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	case bytes.HasPrefix(data, []byte("GIF")):
		binary.LittleEndian.PutUint16(data[6:], uint16(w))
		binary.LittleEndian.PutUint16(data[8:], uint16(h))
	case bytes.HasPrefix(data, []byte("RIFF")):
		at := bytes.Index(data, []byte("VP8X")) + 8
		data[at+4], data[at+5], data[at+6] = byte(w-1), byte((w-1)>>8), byte((w-1)>>16)
		data[at+7], data[at+8], data[at+9] = byte(h-1), byte((h-1)>>8), byte((h-1)>>16)
		if at = bytes.Index(data, []byte("VP8 ")); at > 0 {
			binary.LittleEndian.PutUint16(data[at+14:], uint16(w&0x3fff))
			binary.LittleEndian.PutUint16(data[at+16:], uint16(h&0x3fff))
		} else {
			at = bytes.Index(data, []byte("VP8L"))
			binary.LittleEndian.PutUint32(data[at+9:], uint32((w-1)&0x3fff|(h-1)&0x3fff<<14))
		}
	default:
		for at := 2; ; {
			marker, segment, next := segmentOf(data, at)
			if segment == nil || marker >= 0xc0 && marker <= 0xc2 {
				binary.BigEndian.PutUint16(segment[1:], uint16(h))
				binary.BigEndian.PutUint16(segment[3:], uint16(w))
				return data
			}
			at = next
		}
	}
	return data
}
