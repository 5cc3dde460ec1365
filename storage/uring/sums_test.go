package uring

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/source"
)

// TestSums: whichever block comes with other bytes is noticed, wherever the reads begin and end; what comes again as it
// was is not.
func TestSums(t *testing.T) {
	const size = 40*Block + 500
	file := content(size)
	from := &source.Source{Name: "m.gguf", Path: "/m.gguf", Size: size}
	cut := func(s *Sums, data []byte, n int) (err error) {
		for at := 0; at < size && err == nil; at += n {
			err = s.Check(from, int64(at), data[at:min(at+n, size)])
		}
		return err
	}
	for _, first := range []int{size, 3*Block + 77, 10*Block - 1, 1000} {
		for _, second := range []int{size, 5 * Block, 7*Block + 13} {
			s := NewSums()
			require.NoError(t, cut(s, file, first))
			require.NoError(t, cut(s, file, second))
			for block := range 40 {
				wrong := slices.Clone(file)
				copy(wrong[block*Block:][:Block], content(Block)) // another block's
				err := cut(s, wrong, second)
				require.ErrorIs(t, err, ErrBytes)
				require.ErrorContains(t, err, "m.gguf: bytes from ")
			}
			require.NoError(t, cut(s, file, second), "what was wrong is not remembered")
			require.NoError(t, s.Close())
		}
	}
}

// TestSumsOfLittle: what lies within a block is known as well.
func TestSumsOfLittle(t *testing.T) {
	s := NewSums()
	from := &source.Source{Name: "m.gguf", Path: "/m.gguf", Size: 2 * Block}
	for n := 1; n < 200; n++ {
		data := content(n)
		require.NoError(t, s.Check(from, int64(n), data))
		require.NoError(t, s.Check(from, int64(n), data))
		data[0] ^= 1
		require.ErrorIs(t, s.Check(from, int64(n), data), ErrBytes)
	}
	require.NoError(t, s.Close())
}

// TestSumsAreOfOneFile: files are known by their paths, and what lies in memory is not checked.
func TestSumsAreOfOneFile(t *testing.T) {
	s := NewSums()
	a, b, memory := content(3*Block), content(4*Block), &source.Source{Size: 3 * Block}
	require.NoError(t, s.Check(&source.Source{Path: "a", Size: 3 * Block}, 0, a))
	require.NoError(t, s.Check(&source.Source{Path: "b", Size: 4 * Block}, 0, b))
	require.NoError(t, s.Check(memory, 0, a))
	require.NoError(t, s.Check(memory, 0, b[:3*Block]))
	require.ErrorIs(t, s.Check(&source.Source{Path: "a", Size: 3 * Block}, 0, b[:3*Block]), ErrBytes)
	require.NoError(t, s.Close())
	require.NoError(t, s.Check(&source.Source{Path: "a", Size: 3 * Block}, 0, b[:3*Block]), "all is forgotten")
	require.NoError(t, s.Close())
}

// BenchmarkSums is what a check costs beside a read of the same bytes.
func BenchmarkSums(b *testing.B) {
	s, data := NewSums(), content(16<<20)
	from := &source.Source{Path: "a", Size: 16 << 20}
	b.SetBytes(16 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(from, 0, data); err != nil {
			b.Fatal(err)
		}
	}
}
