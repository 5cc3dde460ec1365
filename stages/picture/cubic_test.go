package picture

import (
	"bytes"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCubic: a plain picture stays plain up to its edges, a slope stays a slope within them, and an impulse has the
// values of Keys' formula.
func TestCubic(t *testing.T) {
	const n = 9
	plain, slope, impulse := newBitmap(n, n), newBitmap(n, n), newBitmap(n, n)
	for i := range plain.Pix {
		plain.Pix[i] = 51
		slope.Pix[i] = uint8(10 * (i / rgb % n))
	}
	impulse.Pix[(4*n+4)*rgb] = 255
	for _, scale := range []int{1, 2, 4} {
		flat, rising, spread := plain.Cubic(scale), slope.Cubic(scale), impulse.Cubic(scale)
		for y := range n * scale {
			for x := range n * scale {
				require.InDelta(t, 0.2, flat(y, x, 1), 1e-12)
				if at := (float64(x)+0.5)/float64(scale) - 0.5; at >= 1 && at <= n-2 {
					require.InDelta(t, at*10/255, rising(y, x, 2), 1e-12)
				}
			}
		}
		require.Zero(t, spread(4*scale, 4*scale, 1))
		if scale == 2 { // a quarter of a pixel away: 1.5/64 − 2.5/16 + 1
			const w = 1.5/64 - 2.5/16 + 1
			require.InDelta(t, w*w, spread(8, 8, 0), 1e-12)
			require.InDelta(t, w*w, spread(9, 8, 0), 1e-12)
		}
	}
}

func TestWritePNG(t *testing.T) {
	b := &Bitmap{Width: 2, Height: 1, Pix: []uint8{1, 2, 3, 250, 251, 252}}
	var file bytes.Buffer
	require.NoError(t, b.WritePNG(&file))
	m, err := png.Decode(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	r, g, bl, a := m.At(1, 0).RGBA()
	require.Equal(t, []uint32{250 * 257, 251 * 257, 252 * 257, 0xffff}, []uint32{r, g, bl, a})
	again, err := Decode(file.Bytes())
	require.NoError(t, err)
	require.Equal(t, b, again)

	var said bytes.Buffer
	require.NoError(t, b.WritePNG(&said, Text{"parameters", "a cat, «wet»"}))
	require.Equal(t, 1, bytes.Count(said.Bytes(), []byte("\x00\x00\x00\x1diTXtparameters\x00\x00\x00\x00\x00a cat, «wet»")))
	again, err = Decode(said.Bytes()) // whose decoder compares the chunk's sum
	require.NoError(t, err)
	require.Equal(t, b, again)
}
