package kv

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// advance computes a text block by block, in a cache whose classes give back what is behind their windows.
func advance(t *testing.T, c *Cache, id Seq, letters string) (cached int) {
	t.Helper()
	ids := text(letters)
	cached, err := c.Open(id, 0, append(slices.Clone(ids), 0))
	require.NoError(t, err)
	for done := cached; done < len(ids); done += backend.BlockSize {
		end := done + backend.BlockSize
		require.NoError(t, c.Grow(id, len(ids), end))
		require.NoError(t, c.Publish(id, ids[:end]))
		_, err := c.Pass(id, end)
		require.NoError(t, err)
	}
	return cached
}

// first is the first position that each class still has.
func firsts(c *Cache, id Seq) (all []int) {
	for _, t := range c.Tables(id) {
		all = append(all, t.First*backend.BlockSize)
	}
	return all
}

// A row at 640 sees 100 positions: from 541 on, which is in the block from 512 on.
func TestGivesBackBehindAWindow(t *testing.T) {
	c := New(Class{Blocks: 3, Window: 100}, Class{Blocks: 10})
	require.Equal(t, 0, advance(t, c, 1, "abcdefghij"))
	require.Equal(t, []int{512, 0}, firsts(c, 1))
	require.Equal(t, 10+2, c.Stats().Used)
	require.Equal(t, 1, c.Stats().Cached, "the block before is behind the window")
	require.EqualValues(t, 7, c.Stats().Evictions, "three blocks go round")
	require.NoError(t, c.Close(1))
	require.Equal(t, 13, c.Stats().Cached)
}

// Only the end of what was computed can be found again: the window there has its blocks.
func TestHitNeedsTheWindow(t *testing.T) {
	c := New(Class{Blocks: 20}, Class{Blocks: 3, Window: 65})
	advance(t, c, 1, "abcdefgh")
	require.NoError(t, c.Close(1))
	require.Equal(t, 0, advance(t, c, 2, "abcz"), "the full blocks are there, those of the window at c are not")
	require.NoError(t, c.Close(2))

	c = New(Class{Blocks: 20}, Class{Blocks: 3, Window: 65})
	advance(t, c, 1, "abcdefgh")
	require.NoError(t, c.Close(1))
	cached, err := c.Open(3, 0, append(text("abcdefgh"), 0))
	require.NoError(t, err)
	require.Equal(t, 8*backend.BlockSize, cached)
	require.Equal(t, []int{0, 7 * backend.BlockSize}, firsts(c, 3), "the row at 512 sees 448 to 512")
	require.Len(t, c.Tables(3)[1].Blocks, 1)
}

// A window may be longer than what is cached, and so see all of it.
func TestShortHitInALongWindow(t *testing.T) {
	c := New(Class{Blocks: 8, Window: 1000})
	advance(t, c, 1, "ab")
	cached, err := c.Open(2, 0, text("abc"))
	require.NoError(t, err)
	require.Equal(t, 2*backend.BlockSize, cached)
	require.Equal(t, c.Tables(1), c.Tables(2))
}

// What is hit again stays: of two prefixes in a class that cannot hold both, the one used last.
func TestEvictsTheWindowUsedLongestAgo(t *testing.T) {
	c := New(Class{Blocks: 40}, Class{Blocks: 4, Window: 65})
	for _, letters := range []string{"ab", "xy"} {
		advance(t, c, 1, letters)
		require.NoError(t, c.Close(1))
	}
	require.Equal(t, 2*backend.BlockSize, advance(t, c, 1, "ab"))
	require.NoError(t, c.Close(1))
	advance(t, c, 1, "mno")
	require.NoError(t, c.Close(1))
	require.Equal(t, 2*backend.BlockSize, advance(t, c, 1, "ab"))
	require.NoError(t, c.Close(1))
	require.Equal(t, 0, advance(t, c, 1, "xy"))
}

// Two sequences that compute the same text at once: what the first gives back, the second still sees.
func TestTwinsInAWindow(t *testing.T) {
	c := New(Class{Blocks: 8, Window: 65})
	for id := Seq(1); id <= 2; id++ {
		_, err := c.Open(id, 0, text("abcd"))
		require.NoError(t, err)
		require.NoError(t, c.Grow(id, 256, 192))
	}
	require.NoError(t, c.Publish(1, text("ab")))
	require.NoError(t, c.Publish(2, text("ab")))
	mine := blocks(c, 2)
	_, err := c.Pass(1, 192)
	require.NoError(t, err)
	require.Equal(t, mine, blocks(c, 2))
	require.Equal(t, Stats{Blocks: 8, Free: 8 - 1 - 3, Used: 4, Misses: 512}, c.Stats(), "the second's a and b are the shared ones")
	cached, err := c.Open(3, 0, text("abz"))
	require.NoError(t, err)
	require.Equal(t, 128, cached)
	require.Equal(t, mine[1:2], blocks(c, 3))
}

// A window's last block alone is no window: what lies before it was evicted while somebody still used the last.
func TestHitNeedsTheWholeWindow(t *testing.T) {
	c := New(Class{Blocks: 20}, Class{Blocks: 4, Window: 100})
	advance(t, c, 1, "ab")
	require.NoError(t, c.Grow(1, 256, 192))
	_, err := c.Pass(1, 190)
	require.NoError(t, err)
	require.Equal(t, []int{0, 64}, firsts(c, 1), "b is in use, a is not")
	_, err = c.Open(2, 0, nil)
	require.NoError(t, err)
	require.NoError(t, c.Grow(2, 128, 128), "which takes a's block of the window")
	cached, err := c.Open(3, 0, text("abc"))
	require.NoError(t, err)
	require.Equal(t, 0, cached)
}

// Without a class that keeps all, a text is found by its end, also where nothing is left of its beginning.
func TestFindsTheEndOfAText(t *testing.T) {
	c := New(Class{Blocks: 3, Window: 65})
	advance(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	for id := Seq(2); id < 4; id++ {
		_, err := c.Open(id, 0, nil)
		require.NoError(t, err)
		require.NoError(t, c.Grow(id, 64, 64))
		cached, err := c.Open(9, 0, text("abcd"))
		require.NoError(t, err)
		require.Equal(t, 192, cached)
		require.NoError(t, c.Close(9))
	}
	require.NoError(t, c.Close(2))
	require.NoError(t, c.Close(3))
	_, err := c.Open(2, 0, nil)
	require.NoError(t, err)
	require.NoError(t, c.Grow(2, 192, 192))
	require.Equal(t, int(c.tree.size), spares(c), "nothing is left")
}

// spares counts the nodes that no text uses.
func spares(c *Cache) (n int) {
	for at := c.tree.spare; at != noNode; at = c.tree.node(at).chain {
		n++
	}
	return n
}

// A full block that goes takes the window's with it: nobody can find them any more.
func TestWindowGoesWithTheFullBlock(t *testing.T) {
	c := New(Class{Blocks: 2}, Class{Blocks: 8, Window: 200})
	advance(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	advance(t, c, 2, "xy")
	require.Equal(t, 8-2, len(c.free[Device][1]))
	require.EqualValues(t, 4, c.Stats().Evictions)
}

func TestNoneIsGrantedUnlessAllAre(t *testing.T) {
	c := New(Class{Blocks: 8}, Class{Blocks: 1, Window: 65})
	_, err := c.Open(1, 0, nil)
	require.NoError(t, err)
	require.EqualError(t, c.Grow(1, 256, 128), "grow sequence 1 to 256 positions by 2 blocks of class 1: "+
		"1 free and 0 cached of 1: the KV cache is full")
	require.Equal(t, 9, c.Stats().Free)
	require.NoError(t, c.Grow(1, 256, 64))
	require.Equal(t, 4, c.Stats().Free)
}

// Least is enough for one sequence, however it advances.
func TestLeast(t *testing.T) {
	for _, window := range []int{2, 64, 65, 100, 1024} {
		for _, rows := range []int{1, 5, 64, 100} {
			class := Class{Window: window}
			class.Blocks = class.Least(2 * rows)
			c := New(class)
			_, err := c.Open(1, 0, nil)
			require.NoError(t, err)
			passed := 0
			for done := 0; done < 3000; done += rows {
				if done/backend.BlockSize > passed/backend.BlockSize {
					_, err := c.Pass(1, done)
					require.NoError(t, err)
					passed = done
				}
				require.NoError(t, c.Grow(1, 10_000, done+2*rows), "window %d, %d rows, at %d", window, rows, done)
			}
		}
	}
}

// Texts of different salts are different texts.
func TestSalt(t *testing.T) {
	c := New(Class{Blocks: 8})
	compute(t, c, 1, "ab")
	for salt, want := range map[uint64]int{0: 128, 7: 0} {
		cached, err := c.Open(2, salt, text("abc"))
		require.NoError(t, err)
		require.Equal(t, want, cached)
		require.NoError(t, c.Grow(2, 192, 192))
		require.NoError(t, c.Publish(2, text("ab")))
		require.NoError(t, c.Close(2))
	}
	cached, err := c.Open(2, 7, text("abc"))
	require.NoError(t, err)
	require.Equal(t, 128, cached)
}

// What was handed out is never written again, whatever becomes of the sequence: a step may be reading it.
func TestTablesStayAsTheyAre(t *testing.T) {
	for name, end := range map[string]func(*Cache){
		"pass":  func(c *Cache) { _, _ = c.Pass(1, 256) },
		"close": func(c *Cache) { _ = c.Close(1) },
		"reset": func(c *Cache) { c.Reset() },
		"grow":  func(c *Cache) { _ = c.Grow(1, 320, 320) },
	} {
		c := New(Class{Blocks: 5, Window: 65})
		_, err := c.Open(1, 0, nil)
		require.NoError(t, err)
		require.NoError(t, c.Grow(1, 256, 256))
		held := c.Tables(1)[0]
		want := slices.Clone(held.Blocks)
		end(c)
		for id := Seq(2); id < 6; id++ {
			_, err := c.Open(id, 0, nil)
			require.NoError(t, err)
			_ = c.Grow(id, 64, 64)
		}
		require.Equal(t, want, held.Blocks, name)
	}
}
