package picture

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestCutsAreTheProcessors: pictures are cut as transformers' processors of Idefics 3 and Llama 4 cut them; the numbers
// are from the formulas of these, computed elsewhere.
func TestCutsAreTheProcessors(t *testing.T) {
	base := Settings{Filter: Bilinear, Patch: 14, Merge: 2, Frames: 1, Tokens: 9, Factor: 1.0 / 255,
		Std: [3]float32{1, 1, 1}}
	with := func(way Way, side, most int) *Settings {
		s := base
		s.Way, s.Width, s.Height, s.Least, s.Most = way, side, side, 1, most
		return &s
	}
	idefics, smol, llama := with(Split, 364, 1820), with(Split, 512, 2048), with(Canvas, 336, 16)
	for _, c := range []struct {
		s                  *Settings
		w, h, across, down int
	}{
		{idefics, 640, 480, 5, 4}, {idefics, 480, 640, 4, 5}, {idefics, 1000, 100, 5, 1}, {idefics, 64, 64, 5, 5},
		{idefics, 2048, 512, 5, 2}, {idefics, 1, 500, 1, 5}, {idefics, 5000, 10, 5, 1},
		{smol, 640, 480, 4, 3}, {smol, 480, 640, 3, 4}, {smol, 3000, 2999, 4, 4}, {smol, 2048, 512, 4, 1},
		{with(Split, 512, 512), 640, 480, 0, 0},
		{llama, 640, 480, 2, 2}, {llama, 336, 336, 0, 0}, {llama, 300, 300, 0, 0}, {llama, 337, 336, 2, 1}, {llama, 1000, 100, 3, 1},
		{llama, 4000, 3000, 4, 3}, {llama, 2000, 2000, 4, 4}, {llama, 100, 2000, 1, 6}, {llama, 5376, 336, 16, 1},
		{llama, 700, 900, 3, 3}, {llama, 1, 1, 0, 0},
	} {
		require.NoError(t, c.s.Check())
		cut, err := c.s.cut(c.w, c.h)
		require.NoError(t, err)
		n := c.across*c.down + 1
		require.Equal(t, Cut{c.across, c.down, slices.Repeat([]int{9}, n)}, cut, "%d × %d: %+v", c.w, c.h, *c.s)
	}
	cut, err := llama.Cut(Info{Width: 100, Height: 2000, orientation: 6})
	require.NoError(t, err)
	require.Equal(t, []int{6, 1}, []int{cut.Across, cut.Down}, "as it is turned")
}

// TestLongest: the longer side becomes as long as it may be, and no more than 4096 pixels; the other one is even.
func TestLongest(t *testing.T) {
	for _, c := range [][5]int{{2048, 640, 481, 2048, 1540}, {2048, 481, 640, 1540, 2048}, {2048, 640, 480, 2048, 1536},
		{2048, 5000, 1, 2048, 1}, {5000, 640, 480, 4096, 3072}, {5000, 480, 640, 3072, 4096}} {
		w, h := (&Settings{Most: c[0]}).longest(c[1], c[2])
		require.Equal(t, []int{c[3], c[4]}, []int{w, h}, c)
	}
}

// TestPieces: pieces are those of the whole, line by line, and then all of it as one.
func TestPieces(t *testing.T) {
	s := &Settings{Way: Split, Filter: Lanczos, Width: 16, Height: 16, Most: 40, Patch: 4, Merge: 2, Frames: 1,
		Tokens: 4, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
	require.NoError(t, s.Check())
	b := newBitmap(50, 30)
	for i := range b.Pix {
		b.Pix[i] = uint8(i*i*31 + i*7)
	}
	same := func(p *Picture, of *Bitmap, left, top int) {
		require.Equal(t, []int{16, 16, 4}, []int{p.Width, p.Height, p.Tokens})
		require.Equal(t, [3]int{1, 4, 4}, p.Grid)
		for y := range 16 {
			require.Equal(t, of.row(top + y)[left*rgb:][:16*rgb], p.pix[y*16*rgb:][:16*rgb])
		}
	}
	all, err := s.pieces(b)
	require.NoError(t, err)
	require.Len(t, all, 7)
	whole := resize(resize(b, 40, 24, area{0, 0, 40, 24}, Lanczos), 48, 32, area{0, 0, 48, 32}, Lanczos)
	for i := range 6 {
		same(all[i], whole, i%3*16, i/3*16)
	}
	same(all[6], resize(whole, 16, 16, area{0, 0, 16, 16}, Lanczos), 0, 0)

	s.Way, s.Filter, s.Least, s.Most = Canvas, Bilinear, 1, 6
	all, err = s.pieces(b)
	require.NoError(t, err)
	require.Len(t, all, 7, "three squares across and two down hold most of it")
	laid := newBitmap(48, 32) // 28 lines of it are the picture's
	small := resize(b, 48, 28, area{0, 0, 48, 28}, Bilinear)
	copy(laid.Pix, small.Pix)
	for i := range 6 {
		same(all[i], laid, i%3*16, i/3*16)
	}
	same(all[6], resize(b, 16, 16, area{0, 0, 16, 16}, Bilinear), 0, 0)
}

// TestLanczos: a pixel that stands out has the values of the formula around it, sinc(x)·sinc(x/3) at x = 0.25, 0.75 up
// to 2.75 over the sum of these.
func TestLanczos(t *testing.T) {
	b := newBitmap(15, 1)
	for i := range b.Pix {
		b.Pix[i] = 100
	}
	b.Pix[7*rgb] = 228
	out := resize(b, 30, 1, area{0, 0, 30, 1}, Lanczos)
	for i, want := range []uint8{214, 135, 83, 91, 104, 101} {
		require.Equal(t, want, out.Pix[(15+i)*rgb])
		require.Equal(t, want, out.Pix[(14-i)*rgb])
	}
}

// TestPiecesWithin: however a picture is long and wide, pieces are as many as was said before, and differ in their
// hashes; what they take was said before, too.
func TestPiecesWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Settings{Way: rapid.SampledFrom([]Way{Split, Canvas, Squeeze}).Draw(t, "way"), Filter: Bilinear, Frames: 1,
			Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}, Patch: 2, Merge: 2, Tokens: 4, Width: 8, Height: 8, Least: 1}
		s.Most = rapid.IntRange(1, 16).Draw(t, "most")
		if s.Way == Split {
			s.Most = rapid.IntRange(8, 64).Draw(t, "longest")
		}
		require.NoError(t, s.Check())
		w, h := rapid.IntRange(1, 100).Draw(t, "w"), rapid.IntRange(1, 100).Draw(t, "h")
		cut, err := s.cut(w, h)
		require.NoError(t, err)
		require.Contains(t, []int{1, cut.Across*cut.Down + 1}, len(cut.Tokens))
		all, err := s.pieces(newBitmap(w, h))
		require.NoError(t, err)
		require.Len(t, all, len(cut.Tokens))
		bytes := 0
		for i, p := range all {
			require.Equal(t, cut.Tokens[i], p.Tokens)
			bytes += len(p.pix) * 5
		}
		require.GreaterOrEqual(t, s.Bytes(Info{}), int64(bytes))
	})
	s := &Settings{Way: Canvas, Filter: Bilinear, Frames: 1, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}, Patch: 2,
		Merge: 2, Tokens: 4, Width: 8, Height: 8, Least: 1, Most: 4}
	data := encoded(t, PNG, gradient(16, 16))
	all, err := s.Process(data)
	require.NoError(t, err)
	require.Len(t, all, 5)
	seen := map[Hash]bool{}
	for _, p := range all {
		seen[p.Hash] = true
	}
	require.Len(t, seen, 5)
	require.Equal(t, s.HashOf(data), all[0].Hash)
}
