package kv

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// text is one block for each letter, filled with it.
func text(letters string) []int32 {
	var ids []int32
	for _, l := range letters {
		ids = append(ids, slices.Repeat([]int32{l}, backend.BlockSize)...)
	}
	return ids
}

// blocks is a copy of the table of class 0.
func blocks(c *Cache, id Seq) []int32 { return slices.Clone(c.Tables(id)[0].Blocks) }

// compute runs a whole prompt: what is not cached is granted and published.
func compute(t *testing.T, c *Cache, id Seq, letters string) (cached int) {
	t.Helper()
	cached, err := c.Open(id, 0, append(text(letters), 0))
	require.NoError(t, err)
	require.NoError(t, c.Grow(id, len(letters)*backend.BlockSize, len(letters)*backend.BlockSize))
	require.NoError(t, c.Publish(id, text(letters)))
	return cached
}

func TestPrefixIsShared(t *testing.T) {
	c := New(Class{Blocks: 8})
	require.Equal(t, 0, compute(t, c, 1, "abc"))
	require.Equal(t, 2*backend.BlockSize, compute(t, c, 2, "abd"), "while the first is open")
	require.Equal(t, blocks(c, 1)[:2], blocks(c, 2)[:2])
	require.NotEqual(t, blocks(c, 1)[2], blocks(c, 2)[2])
	require.Equal(t, Stats{Blocks: 8, Free: 4, Used: 4, Hits: 128, Misses: 193 + 65}, c.Stats())

	require.NoError(t, c.Close(1))
	require.Equal(t, 1, c.Stats().Cached, "c alone")
	require.NoError(t, c.Close(2))
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 3, "abc"), "after both closed")
}

func TestLastTokenIsLeftToCompute(t *testing.T) {
	c := New(Class{Blocks: 8})
	compute(t, c, 1, "ab")
	for n, want := range map[int]int{0: 0, 1: 0, 64: 0, 65: 64, 127: 64, 128: 64, 129: 128, 1000: 128} {
		cached, err := c.Open(2, 0, append(text("ab"), make([]int32, 1000)...)[:n])
		require.NoError(t, err)
		require.Equal(t, want, cached, "of %d tokens", n)
		require.NoError(t, c.Close(2))
	}
}

func TestEvictsLeavesOfTheOldestFirst(t *testing.T) {
	c := New(Class{Blocks: 5})
	compute(t, c, 1, "abc")
	compute(t, c, 2, "xy")
	require.NoError(t, c.Close(1))
	require.NoError(t, c.Close(2))
	require.Equal(t, 5, c.Stats().Cached)

	compute(t, c, 3, "m") // c goes, not a
	require.NoError(t, c.Close(3))
	require.Equal(t, 2*backend.BlockSize, compute(t, c, 4, "abn"), "ab was left; n took a block of xy")
	require.EqualValues(t, 2, c.Stats().Evictions)
	require.NoError(t, c.Close(4))
	require.Equal(t, backend.BlockSize, compute(t, c, 5, "xz"), "x was left")
}

func TestGrowIsAllOrNone(t *testing.T) {
	c := New(Class{Blocks: 4})
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	_, err := c.Open(2, 0, nil)
	require.NoError(t, err)
	err = c.Grow(2, 300, 300)
	require.ErrorIs(t, err, ErrFull)
	require.EqualError(t, err, "grow sequence 2 to 300 positions by 5 blocks of class 0: 2 free and 2 cached of 4: "+
		"the KV cache is full")
	require.Equal(t, 2, c.Stats().Cached, "nothing was evicted for it")
	require.NoError(t, c.Grow(2, 256, 0))
	require.Len(t, blocks(c, 2), 4)
}

// Two prompts computed at the same time: the later copy is private until the first is gone, then it is the
// one that is cached. A lone sequence can therefore always use every block.
func TestTwins(t *testing.T) {
	c := New(Class{Blocks: 6})
	for id := Seq(1); id <= 2; id++ {
		_, err := c.Open(id, 0, text("abz"))
		require.NoError(t, err)
		require.NoError(t, c.Grow(id, 128, 128))
	}
	require.NoError(t, c.Publish(1, text("ab")))
	require.NoError(t, c.Publish(2, text("ab")))
	require.NotEqual(t, blocks(c, 1), blocks(c, 2))
	first := blocks(c, 1)

	_, err := c.Open(3, 0, text("abz"))
	require.NoError(t, err)
	require.Equal(t, first, blocks(c, 3))
	require.NoError(t, c.Close(3))
	require.NoError(t, c.Close(1))
	require.Equal(t, Stats{Blocks: 6, Free: 4, Used: 2, Hits: 128, Misses: 192*2 + 64}, c.Stats())
	require.NoError(t, c.Grow(2, 6*64, 6*64))
	require.NoError(t, c.Close(2))
	require.Equal(t, 2, c.Stats().Cached)
}

// A prompt that was cached in full is recomputed from its last block on: ours replaces the idle copy.
func TestReplacesAnIdleCopy(t *testing.T) {
	c := New(Class{Blocks: 3})
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	cached, err := c.Open(2, 0, text("ab"))
	require.NoError(t, err)
	require.Equal(t, backend.BlockSize, cached)
	require.NoError(t, c.Grow(2, 128, 128))
	require.NoError(t, c.Publish(2, text("ab")))
	require.Equal(t, Stats{Blocks: 3, Free: 1, Used: 2, Hits: 64, Misses: 129 + 64}, c.Stats())
}

func TestErrors(t *testing.T) {
	c := New(Class{Blocks: 2})
	err := c.Grow(7, 1, 1)
	require.ErrorIs(t, err, ErrUnknown)
	require.EqualError(t, err, "sequence 7: the sequence is not open")
	require.ErrorIs(t, c.Publish(7, nil), ErrUnknown)
	require.ErrorIs(t, c.Close(7), ErrUnknown)
	_, err = c.Pass(7, 1)
	require.ErrorIs(t, err, ErrUnknown)
	require.Nil(t, c.Tables(7))
	compute(t, c, 7, "a")
	require.NoError(t, c.Grow(7, -1, -1), "it has more")
	require.EqualError(t, c.Publish(7, text("ab")),
		"publish 128 positions of sequence 7: its blocks of class 0 hold 64: grow it first")
	c.Reset()
	require.ErrorIs(t, c.Close(7), ErrUnknown)
	require.Equal(t, 2, c.Stats().Free)
	require.Equal(t, 0, compute(t, c, 7, "a"), "the prefix is forgotten too")
}

// Publishing token by token touches new blocks only and allocates nothing.
func TestPublishIsCheap(t *testing.T) {
	c := New(Class{Blocks: 200})
	ids := text(string(slices.Repeat([]rune{'a'}, 150)))
	_, err := c.Open(1, 0, ids)
	require.NoError(t, err)
	require.NoError(t, c.Grow(1, len(ids), len(ids)))
	n := 0
	c.seqs[1].path = make([]int32, 0, 150)
	require.Zero(t, testing.AllocsPerRun(9000, func() {
		n++
		if err := c.Publish(1, ids[:n]); err != nil {
			t.Fatal(err)
		}
	}))
	require.Len(t, c.seqs[1].path, n/backend.BlockSize)
}
