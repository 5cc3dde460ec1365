package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Hold finds a text's last block, too, and what lies in other tiers comes to the device; nothing is counted.
func TestHold(t *testing.T) {
	c := New(Class{Blocks: 3, Host: 3})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "xy")
	require.NoError(t, c.Close(2))
	all(c)
	before := c.Stats()
	cached, err := c.Hold(9, 0, text("abcd"))
	require.NoError(t, err)
	require.Equal(t, 3*backend.BlockSize, cached)
	require.Len(t, blocks(c, 9), 3)
	require.True(t, c.Coming(9))
	require.Equal(t, before.Hits, c.Stats().Hits)
	require.Equal(t, before.Misses, c.Stats().Misses)
	_, err = c.Hold(9, 0, text("a"))
	require.ErrorContains(t, err, "already open")
	require.NoError(t, c.Close(9))
	cached, err = c.Hold(9, 1, text("abcd"))
	require.NoError(t, err)
	require.Zero(t, cached, "another salt")
}

// What Fill has places for is found once it is published, and not before; of a window, what the next row sees is
// enough.
func TestFill(t *testing.T) {
	classes := []Class{{Blocks: 6}, {Blocks: 3, Window: 65}, {Blocks: 4, Window: 100, Chunked: true}}
	c := New(classes...)
	require.NoError(t, c.Fill(1, 0, 4))
	require.ErrorContains(t, c.Fill(1, 0, 4), "already open")
	require.Len(t, c.Tables(1)[0].Blocks, 4)
	require.Equal(t, 3, c.Tables(1)[1].First)
	require.Len(t, c.Tables(1)[1].Blocks, 1)
	require.Equal(t, 3, c.Tables(1)[2].First, "row 256 sees from 200 on")
	require.Zero(t, advance(t, c, 2, "ab"), "nothing is shared yet")
	require.NoError(t, c.Close(2))
	free := c.Stats().Free
	require.NoError(t, c.Close(1))
	require.Greater(t, c.Stats().Free, free, "what was not published is free")
	require.NoError(t, c.Fill(1, 0, 4))
	require.NoError(t, c.Publish(1, text("abcd")))
	require.NoError(t, c.Close(1))
	cached, err := c.Open(3, 0, append(text("abcd"), 0))
	require.NoError(t, err)
	require.Equal(t, 4*backend.BlockSize, cached)
	require.ErrorIs(t, c.Fill(4, 0, 5), ErrFull)
	require.Nil(t, c.Tables(4))
}

// Forget drops a text from its end up to what others use or go on from, in memory and on the disk.
func TestForget(t *testing.T) {
	c := New(Class{Blocks: 8, Disk: 8}, Class{Blocks: 8, Disk: 8, Window: 65})
	advance(t, c, 1, "abcd")
	advance(t, c, 2, "abx")
	require.NoError(t, c.Close(1))
	require.Equal(t, 2*backend.BlockSize, c.Forget(0, text("abcd")))
	require.Zero(t, c.Forget(0, text("abx")), "it is open")
	require.Zero(t, c.Forget(7, text("abx")))
	require.NoError(t, c.Close(2))
	all(c)
	require.Positive(t, c.Stats().Disk)
	require.Equal(t, 3*backend.BlockSize, c.Forget(0, text("abx")))
	all(c)
	require.Equal(t, 0, c.Stats().Disk+c.Stats().Cached)
	require.Zero(t, advance(t, c, 3, "abx"))
}
