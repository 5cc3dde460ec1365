package kv

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// text is one block for each letter, filled with it.
func text(letters string) []int32 {
	var ids []int32
	for _, l := range letters {
		ids = append(ids, slices.Repeat([]int32{l}, BlockSize)...)
	}
	return ids
}

// compute runs a whole prompt: what is not cached is granted and published.
func compute(t *testing.T, c *Cache, id Seq, letters string) (cached int) {
	t.Helper()
	_, cached, err := c.Open(id, append(text(letters), 0))
	require.NoError(t, err)
	_, err = c.Grow(id, len(letters)-cached/BlockSize)
	require.NoError(t, err)
	require.NoError(t, c.Publish(id, text(letters)))
	return cached
}

func TestPrefixIsShared(t *testing.T) {
	c := New(8)
	require.Equal(t, 0, compute(t, c, 1, "abc"))
	require.Equal(t, 2*BlockSize, compute(t, c, 2, "abd"), "while the first is open")
	require.Equal(t, c.Table(1)[:2], c.Table(2)[:2])
	require.NotEqual(t, c.Table(1)[2], c.Table(2)[2])
	require.Equal(t, Stats{Blocks: 8, Free: 4, Used: 4, Hits: 128, Misses: 193 + 65}, c.Stats())

	require.NoError(t, c.Close(1))
	require.Equal(t, 1, c.Stats().Cached, "c alone")
	require.NoError(t, c.Close(2))
	require.Equal(t, 3*BlockSize, compute(t, c, 3, "abc"), "after both closed")
}

func TestLastTokenIsLeftToCompute(t *testing.T) {
	c := New(8)
	compute(t, c, 1, "ab")
	for n, want := range map[int]int{0: 0, 1: 0, 64: 0, 65: 64, 127: 64, 128: 64, 129: 128, 1000: 128} {
		_, cached, err := c.Open(2, append(text("ab"), make([]int32, 1000)...)[:n])
		require.NoError(t, err)
		require.Equal(t, want, cached, "of %d tokens", n)
		require.NoError(t, c.Close(2))
	}
}

func TestEvictsLeavesOfTheOldestFirst(t *testing.T) {
	c := New(5)
	compute(t, c, 1, "abc")
	compute(t, c, 2, "xy")
	require.NoError(t, c.Close(1))
	require.NoError(t, c.Close(2))
	require.Equal(t, 5, c.Stats().Cached)

	compute(t, c, 3, "m") // c goes, not a
	require.NoError(t, c.Close(3))
	require.Equal(t, 2*BlockSize, compute(t, c, 4, "abn"), "ab was left; n took a block of xy")
	require.EqualValues(t, 2, c.Stats().Evictions)
	require.NoError(t, c.Close(4))
	require.Equal(t, BlockSize, compute(t, c, 5, "xz"), "x was left")
}

func TestGrowIsAllOrNone(t *testing.T) {
	c := New(4)
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	_, _, err := c.Open(2, nil)
	require.NoError(t, err)
	_, err = c.Grow(2, 5)
	require.ErrorIs(t, err, ErrFull)
	require.EqualError(t, err, "grow sequence 2 by 5 blocks: 2 free and 2 cached of 4: the KV cache is full")
	require.Equal(t, 2, c.Stats().Cached, "nothing was evicted for it")
	got, err := c.Grow(2, 4)
	require.NoError(t, err)
	require.Len(t, got, 4)
}

// Two prompts computed at the same time: the later copy is private until the first is gone, then it is the
// one that is cached. A lone sequence can therefore always use every block.
func TestTwins(t *testing.T) {
	c := New(6)
	for id := Seq(1); id <= 2; id++ {
		_, _, err := c.Open(id, text("abz"))
		require.NoError(t, err)
		_, err = c.Grow(id, 2)
		require.NoError(t, err)
	}
	require.NoError(t, c.Publish(1, text("ab")))
	require.NoError(t, c.Publish(2, text("ab")))
	require.NotEqual(t, c.Table(1), c.Table(2))
	first := slices.Clone(c.Table(1))

	table, _, err := c.Open(3, text("abz"))
	require.NoError(t, err)
	require.Equal(t, first, slices.Clone(table))
	require.NoError(t, c.Close(3))
	require.NoError(t, c.Close(1))
	require.Equal(t, Stats{Blocks: 6, Free: 4, Used: 2, Hits: 128, Misses: 192*2 + 64}, c.Stats())
	_, err = c.Grow(2, 4)
	require.NoError(t, err)
	require.NoError(t, c.Close(2))
	require.Equal(t, 2, c.Stats().Cached)
}

// A prompt that was cached in full is recomputed from its last block on: ours replaces the idle copy.
func TestReplacesAnIdleCopy(t *testing.T) {
	c := New(3)
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	_, cached, err := c.Open(2, text("ab"))
	require.NoError(t, err)
	require.Equal(t, BlockSize, cached)
	_, err = c.Grow(2, 1)
	require.NoError(t, err)
	require.NoError(t, c.Publish(2, text("ab")))
	require.Equal(t, Stats{Blocks: 3, Free: 1, Used: 2, Hits: 64, Misses: 129 + 64}, c.Stats())
}

func TestErrors(t *testing.T) {
	c := New(2)
	_, err := c.Grow(7, 1)
	require.ErrorIs(t, err, ErrUnknown)
	require.EqualError(t, err, "sequence 7: the sequence is not open")
	require.ErrorIs(t, c.Publish(7, nil), ErrUnknown)
	require.ErrorIs(t, c.Close(7), ErrUnknown)
	require.Nil(t, c.Table(7))
	compute(t, c, 7, "a")
	_, err = c.Grow(7, -1)
	require.EqualError(t, err, "grow sequence 7 by -1 blocks: want 0 or more")
	require.EqualError(t, c.Publish(7, text("ab")),
		"publish 128 positions of sequence 7: its 1 blocks hold 64: grow it first")
	c.Reset()
	require.ErrorIs(t, c.Close(7), ErrUnknown)
	require.Equal(t, 2, c.Stats().Free)
	require.Equal(t, 0, compute(t, c, 7, "a"), "the prefix is forgotten too")
}

// Publishing token by token touches new blocks only and allocates nothing.
func TestPublishIsCheap(t *testing.T) {
	c := New(200)
	ids := text(string(slices.Repeat([]rune{'a'}, 150)))
	_, _, err := c.Open(1, ids)
	require.NoError(t, err)
	_, err = c.Grow(1, 150)
	require.NoError(t, err)
	n := 0
	c.seqs[1].path = make([]int32, 0, 150)
	require.Zero(t, testing.AllocsPerRun(9000, func() {
		n++
		if err := c.Publish(1, ids[:n]); err != nil {
			t.Fatal(err)
		}
	}))
	require.Len(t, c.seqs[1].path, n/BlockSize)
}

// Of several that computed the same at once, each keeps its block until it closes, whoever closes first.
func TestManyTwins(t *testing.T) {
	for _, order := range [][]Seq{{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 1, 4, 3}, {1, 4, 2, 3}} {
		c := New(4)
		for id := Seq(1); id <= 4; id++ {
			_, _, err := c.Open(id, text("ab"))
			require.NoError(t, err)
			_, err = c.Grow(id, 1)
			require.NoError(t, err)
		}
		for id := Seq(1); id <= 4; id++ {
			require.NoError(t, c.Publish(id, text("a")))
		}
		for i, id := range order {
			require.NoError(t, c.Close(id))
			require.Equal(t, 3-i, c.Stats().Used)
		}
		require.Equal(t, 1, c.Stats().Cached)
		require.Equal(t, 3, c.Stats().Free)
	}
}
