package picture

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// minicpm are the settings of MiniCPM-V 2.6.
var minicpm = Settings{Way: Slices, Filter: Bicubic, Patch: 14, Merge: 1, Frames: 1, Width: 448, Height: 448,
	Least: 1, Most: 9, Tokens: 64, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}

// TestSlicesAreTheProcessors: pictures are laid out as MiniCPM-V's own processor lays them out; the numbers are from
// its formulas, computed elsewhere.
func TestSlicesAreTheProcessors(t *testing.T) {
	require.NoError(t, minicpm.Check())
	for _, c := range []struct {
		w, h int
		want layout
	}{
		{640, 480, layout{2, 1, size{518, 392}, size{364, 546}}}, {448, 448, layout{0, 0, size{448, 448}, size{0, 0}}},
		{449, 448, layout{2, 1, size{448, 448}, size{322, 630}}}, {100, 50, layout{0, 0, size{630, 322}, size{0, 0}}},
		{1000, 100, layout{0, 0, size{1414, 140}, size{0, 0}}}, {4000, 3000, layout{3, 3, size{518, 392}, size{518, 392}}},
		{2000, 2000, layout{3, 3, size{448, 448}, size{448, 448}}}, {100, 3000, layout{1, 3, size{84, 2450}, size{140, 1414}}},
		{5376, 336, layout{9, 1, size{1792, 112}, size{602, 336}}}, {1, 1, layout{0, 0, size{448, 448}, size{0, 0}}},
		{1, 65535, layout{0, 0, size{14, 114688}, size{0, 0}}}, {700, 900, layout{2, 2, size{392, 504}, size{392, 504}}},
		{940, 940, layout{2, 2, size{448, 448}, size{448, 448}}},
	} {
		require.Equal(t, c.want, minicpm.sliced(c.w, c.h), "%d × %d", c.w, c.h)
		cut, err := minicpm.cut(c.w, c.h)
		require.NoError(t, err)
		require.Equal(t, []int{c.want.across, c.want.down}, []int{cut.Across, cut.Down})
		require.Len(t, cut.Tokens, cut.Across*cut.Down+1)
		require.Equal(t, 64, cut.Tokens[0])
	}
}

// TestSlices: the whole picture comes first, then slices of it line by line; what they take was said before.
func TestSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := minicpm
		s.Patch, s.Width, s.Height = 2, 12, 12
		w, h := rapid.IntRange(1, 90).Draw(t, "w"), rapid.IntRange(1, 90).Draw(t, "h")
		b := newBitmap(w, h)
		for i := range b.Pix {
			b.Pix[i] = uint8(i*i*31 + i*7)
		}
		all, err := s.pieces(b)
		require.NoError(t, err)
		l := s.sliced(w, h)
		require.Len(t, all, l.across*l.down+1)
		require.Equal(t, b.to(l.whole, Bicubic).Pix, all[0].pix)
		bytes := len(all[0].pix)
		for i, p := range all[1:] {
			whole := b.to(size{l.across * l.each.w, l.down * l.each.h}, Bicubic)
			require.Equal(t, whole.part(i%l.across*l.each.w, i/l.across*l.each.h, l.each.w, l.each.h).Pix, p.pix)
			bytes += len(p.pix)
		}
		require.GreaterOrEqual(t, s.Bytes(Info{Width: w, Height: h}), int64(bytes*5))
		for _, p := range all {
			require.Zero(t, p.Width%2+p.Height%2)
			require.Equal(t, [3]int{1, p.Height / 2, p.Width / 2}, p.Grid)
		}
	})
}
