package picture

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSizesAreTheProcessors: pictures get the sizes that transformers' processors of Pixtral, Gemma 4 and InternVL give
// them; the numbers are from the formulas of these, computed elsewhere.
func TestSizesAreTheProcessors(t *testing.T) {
	base := Settings{Filter: Bicubic, Patch: 14, Merge: 2, Frames: 1, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
	with := func(way Way, f func(*Settings)) *Settings { s := base; s.Way = way; f(&s); return &s }
	mistral := with(Fit, func(s *Settings) { s.Width, s.Height = 1540, 1540 })
	pixtral := with(Fit, func(s *Settings) { s.Width, s.Height, s.Patch, s.Merge = 1024, 1024, 16, 1 })
	gemma := with(Spend, func(s *Settings) { s.Patch, s.Merge, s.Most = 16, 3, 280*48*48 })
	intern := with(Tiles, func(s *Settings) { s.Width, s.Height, s.Least, s.Most, s.Tokens = 448, 448, 1, 12, 256 })
	six := with(Tiles, func(s *Settings) { s.Width, s.Height, s.Least, s.Most, s.Tokens = 448, 448, 1, 6, 256 })
	for _, c := range []struct {
		s                    *Settings
		w, h, toW, toH, rows int
	}{
		{mistral, 640, 480, 644, 504, 18*24 - 1}, {mistral, 4000, 3000, 1540, 1176, 42*56 - 1}, {mistral, 17, 5000, 28, 1540, 55*2 - 1},
		{mistral, 1540, 1541, 1540, 1540, 55*56 - 1}, {mistral, 1, 1, 28, 28, 1}, {mistral, 10000, 3, 1540, 28, 55},
		{pixtral, 640, 480, 640, 480, 30*41 - 1}, {pixtral, 4000, 3000, 1024, 768, 48*65 - 1},
		{gemma, 640, 480, 912, 672, 19 * 14}, {gemma, 17, 5000, 48, 13440, 280}, {gemma, 1540, 1541, 768, 768, 256},
		{gemma, 1, 1, 768, 768, 256}, {gemma, 10000, 3, 13440, 48, 280},
		{intern, 640, 480, 448, 13 * 448, 13 * 256}, {intern, 300, 300, 448, 448, 256}, {intern, 900, 900, 448, 5 * 448, 5 * 256},
		{intern, 2000, 1990, 448, 10 * 448, 10 * 256}, {intern, 1000, 500, 448, 3 * 448, 3 * 256}, {six, 640, 480, 448, 7 * 448, 7 * 256},
		{six, 2000, 1990, 448, 5 * 448, 5 * 256}, {six, 100, 4000, 448, 7 * 448, 7 * 256},
	} {
		require.NoError(t, c.s.Check())
		w, h, rows, err := c.s.size(c.w, c.h)
		require.NoError(t, err)
		require.Equal(t, []int{c.toW, c.toH, c.rows}, []int{w, h, rows}, "%d × %d: %+v", c.w, c.h, *c.s)
	}
	across, down := intern.squares(640, 480)
	require.Equal(t, []int{4, 3}, []int{across, down})
}

// TestTiles: squares are those of the picture as a whole, line by line, and then the picture itself.
func TestTiles(t *testing.T) {
	s := &Settings{Way: Tiles, Filter: Bicubic, Width: 16, Height: 16, Least: 1, Most: 6, Patch: 4, Merge: 2, Frames: 1,
		Tokens: 4, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
	require.NoError(t, s.Check())
	b := newBitmap(50, 30)
	for i := range b.Pix {
		b.Pix[i] = uint8(i*i*31 + i*7)
	}
	p, err := s.process(b)
	require.NoError(t, err)
	require.Equal(t, []int{16, 7 * 16, 7 * 4}, []int{p.Width, p.Height, p.Tokens})
	whole := resize(b, 48, 32, area{0, 0, 48, 32}, Bicubic)
	for i := range 6 {
		for y := range 16 {
			require.Equal(t, whole.row(i/3*16 + y)[i%3*16*rgb:][:16*rgb], p.pix[(i*16+y)*16*rgb:][:16*rgb])
		}
	}
	require.Equal(t, resize(b, 16, 16, area{0, 0, 16, 16}, Bicubic).Pix, p.pix[6*16*16*rgb:])
	require.Len(t, p.Values(), 3*16*7*16)
}

// TestWays: whatever a picture's size is, the tower's is whole blocks within bounds, and what it takes was said before.
func TestWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Settings{Way: rapid.SampledFrom([]Way{Fit, Spend, Tiles}).Draw(t, "way"), Filter: Bilinear, Frames: 1,
			Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
		s.Patch, s.Merge = rapid.IntRange(1, 6).Draw(t, "patch"), rapid.IntRange(1, 3).Draw(t, "merge")
		block, side := s.block(), rapid.IntRange(1, 4).Draw(t, "side")
		switch s.Way {
		case Spend:
			s.Most = side * 5 * block * block
		default:
			s.Width, s.Height, s.Tokens, s.Least = side*block, side*block, side*side, 1
			s.Most = rapid.IntRange(1, 7).Draw(t, "most")
		}
		require.NoError(t, s.Check())
		w, h := rapid.IntRange(1, 300).Draw(t, "w"), rapid.IntRange(1, 300).Draw(t, "h")
		p, err := s.process(newBitmap(w, h))
		require.NoError(t, err)
		toW, toH, tokens, err := s.size(w, h)
		require.NoError(t, err)
		require.Equal(t, []int{toW, toH, tokens}, []int{p.Width, p.Height, p.Tokens})
		require.Zero(t, toW%block+toH%block)
		require.Positive(t, tokens)
		require.GreaterOrEqual(t, s.Bytes(Info{}), int64(len(p.pix)*5))
		if s.Way == Spend {
			require.LessOrEqual(t, toW*toH, s.Most)
		}
	})
}
