package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// near says that a bitmap shows a gradient of 24 x 16 pixels, to so many steps of a byte; what is right of the middle
// is white, if clear.
func near(t *testing.T, b *Bitmap, steps float64, clear bool) {
	t.Helper()
	require.Equal(t, [2]int{24, 16}, [2]int{b.Width, b.Height})
	for y := range b.Height {
		for x := range b.Width {
			want := [3]uint8{uint8(x * 10), uint8(y * 15), 128}
			if clear && x >= 12 {
				want = [3]uint8{255, 255, 255}
			}
			for c, w := range want {
				got := b.Pix[(y*b.Width+x)*rgb+c]
				require.LessOrEqual(t, math.Abs(float64(got)-float64(w)), steps, "pixel %d, %d colour %d: %d, want %d", x, y, c, got, w)
			}
		}
	}
}

func TestFormats(t *testing.T) {
	m := gradient(24, 16)
	half := gradient(24, 16)
	for y := range 16 {
		for x := 12; x < 24; x++ {
			half.SetNRGBA(x, y, color.NRGBA{uint8(x), 7, 9, 0})
		}
	}
	for _, c := range []struct {
		name   string
		data   []byte
		format Format
		steps  float64
		clear  bool
	}{
		{"PNG", encoded(t, PNG, m), PNG, 0, false},
		{"PNG with transparency", encoded(t, PNG, half), PNG, 0, true},
		{"JPEG", encoded(t, JPEG, m), JPEG, 40, false},
		{"GIF", encoded(t, GIF, m), GIF, 60, false},
		{"WebP", webpFile(t, "lossy"), WebP, 30, false},
		{"WebP with transparency", webpFile(t, "alpha"), WebP, 60, true},
		{"lossless WebP", webpFile(t, "lossless"), WebP, 2, false},
		{"lossless WebP with transparency", webpFile(t, "losslessalpha"), WebP, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := Inspect(c.data)
			require.NoError(t, err)
			require.Equal(t, c.format, i.Format)
			require.Equal(t, [2]int{24, 16}, [2]int{i.Width, i.Height})
			b, err := Decode(c.data)
			require.NoError(t, err)
			near(t, b, c.steps, c.clear)
		})
	}
}

// TestKindsOfPNG: all colour types and depths, plain and interlaced, are black as their samples are.
func TestKindsOfPNG(t *testing.T) {
	for _, k := range []struct {
		kind, depth byte
		channels    int
	}{
		{0, 1, 1}, {0, 2, 1}, {0, 4, 1}, {0, 8, 1}, {0, 16, 1}, {2, 8, 3}, {2, 16, 3}, {3, 1, 1}, {3, 8, 1},
		{4, 8, 2}, {4, 16, 2}, {6, 8, 4}, {6, 16, 4},
	} {
		var palette []byte
		if k.kind == 3 {
			palette = pngChunk("PLTE", []byte{0, 0, 0, 9, 9, 9})
		}
		for interlace := range byte(2) {
			rows := pngRows(16, 8, int(k.depth)*k.channels, interlace == 1)
			b, err := Decode(pngOf(16, 8, k.depth, k.kind, interlace, rows, palette))
			require.NoError(t, err, "%+v", k)
			want := byte(0)
			if k.kind >= 4 { // nothing is there
				want = 255
			}
			require.Equal(t, bytes.Repeat([]byte{want}, 16*8*rgb), b.Pix, "%+v", k)
		}
	}
	b, err := Decode(pngOf(16, 8, 8, 0, 0, pngRows(16, 8, 8, false), pngChunk("tRNS", []byte{0, 0})))
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{255}, 16*8*rgb), b.Pix, "black is the transparent colour")
}

// pngRows are rows of zeros, each with its filter.
func pngRows(w, h, bits int, interlaced bool) []byte {
	n := 0
	add := func(w, h int) {
		if w > 0 {
			n += h * (1 + (w*bits+7)/8)
		}
	}
	if !interlaced {
		add(w, h)
		return make([]byte, n)
	}
	passes := [7][4]int{{8, 8, 0, 0}, {8, 8, 4, 0}, {4, 8, 0, 4}, {4, 4, 2, 0}, {2, 4, 0, 2}, {2, 2, 1, 0}, {1, 2, 0, 1}}
	for _, p := range passes {
		add((w-p[2]+p[0]-1)/p[0], (h-p[3]+p[1]-1)/p[1])
	}
	return make([]byte, n)
}

func TestOver(t *testing.T) {
	got := []uint8{over(9, 0), over(0, 127), over(0, 255), over(127, 255), over(145, 128)}
	require.Equal(t, []uint8{255, 128, 0, 127, 200}, got)
}

// TestFrameOfGIF: the first frame at its place; the screen around it is white.
func TestFrameOfGIF(t *testing.T) {
	black := color.Palette{color.Black, color.White}
	first, second := image.NewPaletted(image.Rect(2, 1, 4, 3), black), image.NewPaletted(image.Rect(0, 0, 5, 4), black)
	var out bytes.Buffer
	require.NoError(t, gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{first, second}, Delay: []int{1, 1},
		Config: image.Config{Width: 5, Height: 4, ColorModel: black}}))
	b, err := Decode(out.Bytes())
	require.NoError(t, err)
	require.Equal(t, 2*2, bytes.Count(b.Pix, []byte{0, 0, 0}))
	require.Equal(t, []byte{0, 0, 0}, b.row(1)[2*rgb:3*rgb])
	require.Equal(t, []byte{255, 255, 255}, b.row(3)[4*rgb:])
}

// TestOrientation: a picture of 2 x 1 pixels, dark and light, as eight cameras hold it.
func TestOrientation(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 16, 8))
	for y := range 8 {
		for x := 8; x < 16; x++ {
			m.SetGray(x, y, color.Gray{255})
		}
	}
	plain := encoded(t, JPEG, m)
	for o, want := range []string{"< row", "< row", "> row", "> row", "< row", "< column", "< column", "> column", "> column"} {
		b, err := Decode(turned(plain, orientation(o)))
		require.NoError(t, err)
		got := "row"
		if b.Height > b.Width {
			got = "column"
		}
		sign := "< "
		if b.Pix[0] > b.Pix[len(b.Pix)-1] {
			sign = "> "
		}
		require.Equal(t, want, sign+got, "orientation %d", o)
	}
	for o := range orientation(9) { // each place once, and the inverse of those that turn
		seen := map[[2]int]bool{}
		for y := range 2 {
			for x := range 3 {
				toX, toY := o.place(x, y, 3, 2)
				w, h := 3, 2
				if o.swaps() {
					w, h = h, w
				}
				require.True(t, toX >= 0 && toX < w && toY >= 0 && toY < h, o)
				seen[[2]int{toX, toY}] = true
			}
		}
		require.Len(t, seen, 6)
	}
	x, y := orientation(6).place(0, 0, 3, 2)
	require.Equal(t, [2]int{1, 0}, [2]int{x, y}, "turned to the right: the first pixel is above, on the right")
}

func TestExif(t *testing.T) {
	good := tiffOf(6, binary.LittleEndian)
	require.Equal(t, orientation(6), exif(good))
	require.Equal(t, orientation(6), exif(append([]byte("Exif\x00\x00"), good...)))
	for n := range good[:22] {
		require.Zero(t, exif(good[:n]), n)
	}
	far := bytes.Clone(good)
	binary.LittleEndian.PutUint32(far[4:], math.MaxUint32)
	require.Zero(t, exif(far))
	require.Zero(t, exif(tiffOf(9, binary.BigEndian)))

	chunk := pngChunk("eXIf", tiffOf(6, binary.BigEndian))
	b, err := Decode(pngOf(16, 8, 8, 0, 0, pngRows(16, 8, 8, false), chunk))
	require.NoError(t, err)
	require.Equal(t, [2]int{8, 16}, [2]int{b.Width, b.Height})
	webp := webpFile(t, "lossless")
	webp = append(webp, "EXIF\x1a\x00\x00\x00"...)
	webp = append(webp, good...)
	binary.LittleEndian.PutUint32(webp[4:], uint32(len(webp)-8))
	b, err = Decode(webp)
	require.NoError(t, err)
	require.Equal(t, [2]int{16, 24}, [2]int{b.Width, b.Height})
}
