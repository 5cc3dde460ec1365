package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// follower knows of a cache what its news say.
type follower struct {
	loose bool // no class keeps all: blocks may come without those before them
	at    map[Key]map[Tier]bool
	texts map[Key][]int32 // of all that was told since all was cleared
}

// follow takes news, each of which must say something new.
func (f *follower) follow(t require.TestingT, all []News) {
	for _, n := range all {
		if n.Kind == Cleared {
			f.at, f.texts = map[Key]map[Tier]bool{}, map[Key][]int32{}
			continue
		}
		before, known := f.texts[n.Parent]
		require.Equal(t, n.First, n.Parent == rootKey(0))
		require.True(t, n.First || known || n.Kind == Removed || f.loose, "what is before it is told first")
		text := append(before[:len(before):len(before)], n.Tokens[:]...)
		if n.Kind == Removed {
			require.True(t, f.at[n.Key][n.Tier], "it was there")
			delete(f.at[n.Key], n.Tier)
			continue
		}
		require.Equal(t, n.Key, n.Parent.next(&n.Tokens))
		require.False(t, f.at[n.Key][n.Tier], "it is told once")
		if f.at[n.Key] == nil {
			f.at[n.Key] = map[Tier]bool{}
		}
		f.at[n.Key][n.Tier] = true
		if n.First || known {
			require.Equal(t, n.Key, Keys(0, text)[len(text)/backend.BlockSize-1])
			f.texts[n.Key] = text
		}
	}
}

// agree checks what was told against the books, node by node.
func (f *follower) agree(t require.TestingT, c *Cache) {
	f.follow(t, c.News())
	there := map[Key]Tier{}
	for _, first := range c.tree.buckets {
		for n := first; n != noNode; n = c.tree.node(n).chain {
			d := c.tree.node(n)
			slowest, has, lacks := Tier(0), false, false
			for i, class := range c.classes {
				if e := c.tree.at(i, n); (class.Window == 0 || f.loose) && e.block != noBlock {
					slowest, has = max(slowest, e.tier), true
				} else if class.Window == 0 {
					lacks = true
				}
			}
			if d.salt == 0 && plainTokens(c, n) && has && !lacks {
				there[d.key] = slowest
			}
		}
	}
	told := map[Key]Tier{}
	for key, tiers := range f.at {
		for tier := range tiers {
			_, twice := told[key]
			require.False(t, twice, "it lies in one tier")
			told[key] = tier
		}
	}
	require.Equal(t, there, told)
}

// plainTokens says that no row of a picture is in a node's text.
func plainTokens(c *Cache, n int32) bool {
	for ; n != noNode; n = c.tree.node(n).parent {
		for _, id := range c.tree.node(n).tokens {
			if id < 0 {
				return false
			}
		}
	}
	return true
}

// News of a block come with its text, when it is shared and when it goes; of prompts of others, and of pictures, with
// what goes on from there, there are none.
func TestNewsAreOfWhatAllShare(t *testing.T) {
	c, f := New(Class{Blocks: 4}), &follower{}
	c.Watch()
	answer := func(id Seq, salt uint64, text []int32) {
		t.Helper()
		_, err := c.Open(id, salt, append(text[:len(text):len(text)], 0))
		require.NoError(t, err)
		require.NoError(t, c.Grow(id, len(text), len(text)))
		require.NoError(t, c.Publish(id, text))
		require.NoError(t, c.Close(id))
		f.agree(t, c)
	}
	answer(1, 0, text("ab"))
	a, b := Keys(0, text("ab"))[0], Keys(0, text("ab"))[1]
	require.Equal(t, map[Tier]bool{Device: true}, f.at[a])
	require.Equal(t, map[Tier]bool{Device: true}, f.at[b])
	answer(2, 7, text("cde"))
	require.Empty(t, f.at[b], "it had to go")
	require.Len(t, f.texts, 2, "whose prompts are apart is told of nothing")
	pictured := text("fgh")
	pictured[backend.BlockSize+6] = -5
	answer(3, 0, pictured)
	require.Len(t, f.texts, 3, "f, but not the block of a picture, and not what follows")
	c.Reset()
	require.Equal(t, []News{{Kind: Cleared}}, c.News())
	c.Reset()
	require.Empty(t, c.News(), "it was told")
}

// A block that lies in two tiers, because there are two classes, is told of in the slower one.
func TestNewsAreOfTheSlowestTier(t *testing.T) {
	c, f := New(Class{Blocks: 2, Host: 4}, Class{Blocks: 4, Host: 4}), &follower{}
	c.Watch()
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "c")
	f.agree(t, c)
	a, b := Keys(0, text("ab"))[0], Keys(0, text("ab"))[1]
	require.Equal(t, map[Tier]bool{Device: true}, f.at[a])
	require.Equal(t, map[Tier]bool{Host: true}, f.at[b], "where the second class has it on the device")
}
