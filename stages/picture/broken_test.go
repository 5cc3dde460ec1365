package picture

import (
	"fmt"
	"image"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allocated is the memory that f takes in all, freed or not.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// spare is what decoders take for their own tables.
const spare = 1 << 20

func TestBombs(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"PNG", sized(encoded(t, PNG, gradient(24, 16)), 60_000, 60_000), "this PNG has 60000 x 60000 pixels: want at most 40 million, and sides of at most 65535"},
		{"JPEG", sized(encoded(t, JPEG, gradient(24, 16)), 60_000, 60_000), "this JPEG has 60000 x 60000 pixels"},
		{"GIF", sized(encoded(t, GIF, gradient(24, 16)), 60_000, 60_000), "this GIF has 60000 x 60000 pixels"},
		{"WebP", sized(webpFile(t, "lossy"), 16_000, 16_000), "this WebP has 16000 x 16000 pixels"},
		{"lossless WebP", sized(webpFile(t, "lossless"), 16_000, 16_000), "this WebP has 16000 x 16000 pixels"},
		{"canvas of a WebP", func() []byte {
			data := webpFile(t, "alpha")
			data[12+8+4+2] = 0xff
			return data
		}(), "this WebP has a canvas of 16711704 x 16 pixels, and 24 x 16 pixels on it: want as many"},
		{"long PNG", sized(encoded(t, PNG, gradient(24, 16)), 1<<20, 1), "this PNG has 1048576 x 1 pixels: want at most 40 million, and sides of at most 65535"},
		{"negative PNG", sized(encoded(t, PNG, gradient(24, 16)), -1, -1), "this PNG has 4294967295 x 4294967295 pixels"},
		{"empty PNG", sized(encoded(t, PNG, gradient(24, 16)), 0, 16), "this PNG has 0 x 16 pixels: want at least one"},
		{"empty JPEG", sized(encoded(t, JPEG, gradient(24, 16)), 24, 0), "this JPEG has 24 x 0 pixels: want at least one"},
		{"deep PNG", pngOf(6000, 6000, 16, 6, 0, nil), "this PNG of 6000 x 6000 pixels needs 377 MB to be decoded, more than 305: make it smaller, or save it as a plain JPEG or PNG of 8 bits"},
		{"interlaced PNG", pngOf(6000, 6000, 8, 6, 1, nil), "this PNG of 6000 x 6000 pixels needs 377 MB"},
		{"progressive JPEG", sized(progressive(encoded(t, JPEG, gradient(24, 16))), 6000, 6000), "this JPEG of 6000 x 6000 pixels needs 379 MB"},
		{"scans of a JPEG", func() []byte {
			data := encoded(t, JPEG, gradient(24, 16))
			for range maxScans {
				data = append(data[:len(data)-2], 0xff, 0xda, 0, 2, 0xff, 0xd9)
			}
			return data
		}(), "this JPEG has more than 100 scans: save it again"},
		{"nothing", nil, "these 0 bytes are no picture that can be read: want PNG, JPEG, WebP or GIF"},
		{"text", []byte("<svg/>"), "these 6 bytes are no picture"},
		{"half a header", encoded(t, PNG, gradient(24, 16))[:20], "the picture ends too early: is it whole?"},
		{"lossless JPEG", []byte("\xff\xd8\xff\xc3\x00\x08\x08\x00\x01\x00\x01\x01"), "this JPEG is of a rare kind (SOF3): save it as a baseline or progressive one"},
		{"animation", []byte("RIFF\x10\x00\x00\x00WEBPANIM\x00\x00\x00\x00"), "this WebP is an animation: send one frame of it"},
		{"empty WebP", []byte("RIFF\x04\x00\x00\x00WEBP"), "this WebP of 12 bytes has no pixels: is it whole?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = Decode(c.data) })
			require.ErrorContains(t, err, c.want)
			require.Less(t, used, int64(64<<10), "refused by its header")
		})
	}
}

// TestMemoryIsAsSaid: decoding takes what Inspect says, whatever the format does inside.
func TestMemoryIsAsSaid(t *testing.T) {
	const w, h = 701, 503
	m := gradient(w, h)
	gray := image.NewGray(image.Rect(0, 0, w, h))
	rows := func(bits int, interlaced bool) []byte { return pngRows(w, h, bits, interlaced) }
	for name, data := range map[string][]byte{
		"PNG": encoded(t, PNG, m), "gray": pngOf(w, h, 8, 0, 0, rows(8, false)), "deep": pngOf(w, h, 16, 6, 0, rows(64, false)),
		"transparent gray": pngOf(w, h, 8, 0, 0, rows(8, false), pngChunk("tRNS", []byte{0, 1})),
		"interlaced":       pngOf(w, h, 8, 6, 1, rows(32, true)), "deep, interlaced": pngOf(w, h, 16, 4, 1, rows(32, true)),
		"JPEG": encoded(t, JPEG, m), "gray JPEG": encoded(t, JPEG, gray), "progressive": progressive(encoded(t, JPEG, m)),
		"GIF": encoded(t, GIF, m), "cut JPEG": encoded(t, JPEG, m)[:900],
		"WebP": sized(webpFile(t, "lossy"), w, h), "lossless": sized(webpFile(t, "lossless"), w, h),
		"transparent": sized(webpFile(t, "alpha"), w, h),
	} {
		i, err := Inspect(data)
		require.NoError(t, err, name)
		used := allocated(func() { _, err = Decode(data) })
		t.Logf("%s: %.1f bytes a pixel, said %.1f; %v", name, float64(used)/w/h, float64(i.Bytes)/w/h, err)
		require.LessOrEqual(t, used, i.Bytes+4*int64(len(data))+spare, name)
	}
}

// TestBrokenPictures: 500 cut, lying and damaged ones. Each is an error that says so or a picture of the size that the
// header says; none takes more memory than the bound.
func TestBrokenPictures(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 14))
	seeds := [][]byte{
		encoded(t, PNG, gradient(24, 16)), encoded(t, JPEG, gradient(24, 16)), encoded(t, GIF, gradient(24, 16)),
		webpFile(t, "lossy"), webpFile(t, "alpha"), webpFile(t, "lossless"), webpFile(t, "losslessalpha"),
		progressive(encoded(t, JPEG, gradient(24, 16))), turned(encoded(t, JPEG, gradient(24, 16)), 6),
		pngOf(64, 64, 16, 6, 1, pngRows(64, 64, 64, true)),
	}
	said := map[string]int{}
	for n := range 500 {
		data := broken(r, seeds[n%len(seeds)], n/len(seeds)%5)
		var b *Bitmap
		var err error
		used := allocated(func() { b, err = Decode(data) })
		require.LessOrEqual(t, used, int64(4*len(data)+MaxBytes+spare), "picture %d", n)
		if err == nil {
			require.Len(t, b.Pix, b.Width*b.Height*rgb)
			said["read all the same"]++
			continue
		}
		text := err.Error()
		require.Regexp(t, "^(this|the picture|these) ", text)
		require.Less(t, len(text), 200, text)
		said[strings.Join(strings.Fields(text)[:3], " ")]++
	}
	t.Log(said)
	require.Less(t, said["read all the same"], 250)
}

// broken breaks a picture in one of five ways.
func broken(r *rand.Rand, seed []byte, way int) []byte {
	data := append([]byte{}, seed...)
	switch way {
	case 0: // cut
		return data[:r.IntN(len(data))]
	case 1: // too large
		return sized(data, 60_000-r.IntN(20_000), 60_000-r.IntN(20_000))
	case 2: // another size than it has
		return sized(data, 1+r.IntN(1000), 1+r.IntN(1000))
	case 3: // a few bytes damaged
		for range 1 + r.IntN(4) {
			data[r.IntN(len(data))] = byte(r.UintN(256))
		}
	case 4: // a part missing, or doubled
		at := r.IntN(len(data))
		end := at + r.IntN(len(data)-at)
		if r.IntN(2) == 0 {
			return append(data[:at], data[end:]...)
		}
		return append(append(append([]byte{}, data[:end]...), seed[at:end]...), seed[end:]...)
	}
	return data
}

// fuzz decodes anything that begins as a format does: no panic, and a bitmap of the size that was said.
func fuzz(f *testing.F, format Format, seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := Inspect(data)
		if err != nil || i.Format != format || i.Width*i.Height > 1<<18 {
			return
		}
		used := allocated(func() {
			var b *Bitmap
			if b, err = Decode(data); err == nil && b.Width*b.Height != i.Width*i.Height {
				err = fmt.Errorf("%d x %d pixels, said %d x %d", b.Width, b.Height, i.Width, i.Height)
				t.Fatal(err)
			}
		})
		if used > i.Bytes+8*int64(len(data))+4*spare {
			t.Fatalf("took %d bytes, said %d", used, i.Bytes)
		}
	})
}

func FuzzPNG(f *testing.F) {
	fuzz(f, PNG, encoded(f, PNG, gradient(24, 16)), pngOf(16, 8, 16, 6, 1, pngRows(16, 8, 64, true)))
}

func FuzzJPEG(f *testing.F) {
	data := encoded(f, JPEG, gradient(24, 16))
	fuzz(f, JPEG, data, progressive(data), turned(data, 6))
}

func FuzzGIF(f *testing.F) { fuzz(f, GIF, encoded(f, GIF, gradient(24, 16))) }

func FuzzWebP(f *testing.F) {
	fuzz(f, WebP, webpFile(f, "lossy"), webpFile(f, "alpha"), webpFile(f, "lossless"), webpFile(f, "losslessalpha"))
}
