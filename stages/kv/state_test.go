package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// hybrid has a full class and states: 3 slots.
func hybrid(t *testing.T) *Cache {
	t.Helper()
	return New(Class{Blocks: 20}, Class{Blocks: 3, State: true})
}

// begin opens a sequence with its slot.
func begin(t *testing.T, c *Cache, id Seq, letters string) (cached int) {
	t.Helper()
	cached, err := c.Open(id, 0, append(text(letters), 0))
	require.NoError(t, err)
	require.NoError(t, c.Grow(id, len(letters)*backend.BlockSize, 0))
	return cached
}

// snap keeps the state after so many blocks of a text.
func snap(t *testing.T, c *Cache, id Seq, letters string) (slot int32) {
	t.Helper()
	slot, ok, err := c.Snapshot(id, 1, len(letters)*backend.BlockSize)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.Publish(id, text(letters)))
	require.NoError(t, c.Snapped(id, 1))
	return slot
}

// A prefix is found only where its state was kept.
func TestHitNeedsASnapshot(t *testing.T) {
	c := hybrid(t)
	require.Equal(t, 0, begin(t, c, 1, "abcd"))
	_, ok := c.Start(1, 1)
	require.False(t, ok, "it begins at nothing")
	slot := snap(t, c, 1, "ab")
	require.NoError(t, c.Publish(1, text("abcd")))
	require.NoError(t, c.Close(1))

	require.Equal(t, 2*backend.BlockSize, begin(t, c, 2, "abcd"), "d is cached, but its state is not")
	from, ok := c.Start(2, 1)
	require.True(t, ok)
	require.Equal(t, slot, from)
	require.NotEqual(t, from, c.Tables(2)[1].Blocks[0])
}

// What a sequence begins with is not evicted before it has been read.
func TestSnapshotIsPinnedUntilItIsRead(t *testing.T) {
	c := hybrid(t)
	begin(t, c, 1, "ab")
	snap(t, c, 1, "ab")
	require.NoError(t, c.Close(1))

	require.Equal(t, 128, begin(t, c, 2, "abc"))
	begin(t, c, 3, "x")
	_, err := c.Open(4, 0, nil)
	require.NoError(t, err)
	require.ErrorIs(t, c.Grow(4, 1, 1), ErrFull)
	_, err = c.Pass(2, 128)
	require.NoError(t, err)
	require.ErrorIs(t, c.Grow(4, 1, 1), ErrFull, "nothing was computed yet")
	gave, err := c.Pass(2, 129)
	require.NoError(t, err)
	require.True(t, gave)
	_, ok := c.Start(2, 1)
	require.False(t, ok)
	require.NoError(t, c.Grow(4, 1, 1))
	require.NoError(t, c.Close(2))
	require.Equal(t, 0, begin(t, c, 5, "abc"), "it is gone")
}

// Without a free slot there is no snapshot, and that is all.
func TestNoSlotForASnapshot(t *testing.T) {
	c := hybrid(t)
	for id := Seq(1); id <= 3; id++ {
		begin(t, c, id, "ab")
	}
	_, ok, err := c.Snapshot(1, 1, 64)
	require.NoError(t, err)
	require.False(t, ok)
	require.ErrorContains(t, c.Snapped(1, 1), "none is under way")
}

// A copy that comes back after, before or without its text being published, and one of a state that is there already.
func TestSnapshotsComeBack(t *testing.T) {
	c := hybrid(t)
	begin(t, c, 1, "ab")
	_, _, err := c.Snapshot(1, 1, 128)
	require.NoError(t, err)
	require.NoError(t, c.Snapped(1, 1))
	require.Equal(t, 0, c.Stats().Cached, "its text is not known yet")
	require.NoError(t, c.Publish(1, text("ab")))
	require.Equal(t, 1, c.Stats().Cached)

	snap(t, c, 1, "ab")
	require.Len(t, c.free[1], 1, "an equal one was there")

	_, _, err = c.Snapshot(1, 1, 64)
	require.NoError(t, err)
	require.NoError(t, c.Close(1))
	require.Len(t, c.free[1], 2, "one that never came back")
	require.Equal(t, 128, begin(t, c, 2, "abc"))
	require.NoError(t, c.Close(2))
	require.Len(t, c.free[1], 2, "one that was never read")
	require.Zero(t, c.Stats().Used)
}

func TestSnapshotErrors(t *testing.T) {
	c := hybrid(t)
	begin(t, c, 1, "ab")
	for _, bad := range []struct {
		id         Seq
		class, pos int
		want       string
	}{
		{9, 1, 64, "sequence 9: the sequence is not open"},
		{1, 0, 64, "snapshot of sequence 1: class 0 has no states"},
		{1, 1, 65, "snapshot of sequence 1 after 65 positions: want whole blocks of 64"},
		{1, 1, 0, "snapshot of sequence 1 after 0 positions: want whole blocks of 64"},
	} {
		_, _, err := c.Snapshot(bad.id, bad.class, bad.pos)
		require.EqualError(t, err, bad.want)
	}
	_, _, err := c.Snapshot(1, 1, 64)
	require.NoError(t, err)
	_, _, err = c.Snapshot(1, 1, 128)
	require.EqualError(t, err, "snapshot of sequence 1 after 128 positions: the one after 64 is under way")
}
