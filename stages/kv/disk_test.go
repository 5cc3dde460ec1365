package kv

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/place"
)

// ways lists moves, each as its tiers.
func ways(moves []Move) (all []string) {
	for _, m := range moves {
		all = append(all, fmt.Sprint(m.From, m.To))
	}
	return all
}

// kept is what the disk has after moves, used in this order.
func kept(moves []Move) (all []Kept) {
	for i, m := range moves {
		if m.To == Disk {
			all = append(all, Kept{Text: m.Text, Class: m.Class, Used: int64(i)})
		}
	}
	return all
}

// What is computed is written when nothing else is due, what comes first in a text first. Then its place costs no move,
// and it comes back from the disk, once.
func TestBlocksAreWritten(t *testing.T) {
	c := New(Class{Blocks: 3, Disk: 9})
	compute(t, c, 1, "abc")
	moves := all(c)
	require.False(t, c.Saved(), "it is open")
	require.NoError(t, c.Close(1))
	require.Empty(t, all(c))
	require.Equal(t, []string{"0 2", "0 2", "0 2"}, ways(moves))
	require.True(t, c.Saved())
	for i, m := range moves {
		require.Equal(t, text("abc")[i*backend.BlockSize:][:backend.BlockSize], m.Text.Tokens[:])
		require.EqualValues(t, i, m.Block)
	}
	require.Equal(t, moves[0].Text.Key, moves[1].Text.Parent)
	compute(t, c, 2, "xy")
	require.False(t, c.Coming(2))
	require.NoError(t, c.Close(2))
	require.Equal(t, []string{"0 2", "0 2"}, ways(all(c)))
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 3, "abc"))
	require.True(t, c.Coming(3))
	require.Equal(t, []string{"2 0", "2 0"}, ways(all(c)), "b and c; a is still there")
	require.NoError(t, c.Close(3))
	require.Empty(t, all(c), "they are on the disk")
	require.Equal(t, Stats{Blocks: 3, Cached: 3, Disk: 5, Hits: 192, Misses: 193 + 129 + 1, Saved: 5, Read: 2}, c.Stats())
}

// A block whose place is wanted before it was written is written first.
func TestWrittenInTime(t *testing.T) {
	c := New(Class{Blocks: 1, Disk: 2})
	for i, letter := range []string{"a", "b", "c"} {
		compute(t, c, Seq(i), letter)
		require.Equal(t, i > 0, c.Coming(Seq(i)))
		require.NoError(t, c.Close(Seq(i)))
	}
	require.Equal(t, []string{"0 2", "0 2", "2 3", "0 2"}, ways(all(c)), "a, b; a is dropped for c")
	require.EqualValues(t, 1, c.Stats().Evictions)
	require.Equal(t, backend.BlockSize, compute(t, c, 4, "b"))
	require.NoError(t, c.Close(4))
	require.Zero(t, compute(t, c, 5, "a"))
}

// Behind a window, what a prompt may go on from is written; what was passed is not.
func TestOnlyTheEndOfAWindowIsWritten(t *testing.T) {
	c := New(Class{Blocks: 12, Disk: 12}, Class{Blocks: 4, Disk: 4, Window: 65})
	advance(t, c, 1, "abcdefgh")
	require.NoError(t, c.Close(1))
	moves := all(c)
	require.Len(t, moves, 8+1, "all of the first class, h of the second")
	again := New(Class{Blocks: 12, Disk: 12}, Class{Blocks: 4, Disk: 4, Window: 65})
	again.Restore(kept(moves))
	require.Empty(t, all(again))
	require.Equal(t, 8*backend.BlockSize, advance(t, again, 3, "abcdefgh"))
}

// A prompt that comes again is found up to its last whole block, also by the next process, whatever its length and that
// of the answer that it had: behind a window and of states, what it goes on from lies before the answer's end.
func TestPromptsAreFoundAgain(t *testing.T) {
	full, states := Class{Blocks: 12, Disk: 12}, Class{Blocks: 12, Disk: 12, Window: 65}
	window := Class{Blocks: 12, Disk: 12, Window: 150}
	for _, classes := range [][]Class{{states}, {full, states}, {full, window}, {window}, {full}} {
		for _, prompt := range []int{1, 63, 64, 65, 255, 256, 257, 319} {
			for _, answer := range []int{1, 63, 64, 65, 200} {
				c, ids := New(classes...), text("abcdefghi")[:prompt+answer]
				_, err := c.Open(1, 0, ids[:prompt])
				require.NoError(t, err)
				for done := 0; done < len(ids); {
					end := min(done+backend.BlockSize, len(ids))
					if done < prompt {
						end = min(end, prompt)
					}
					require.NoError(t, c.Grow(1, end, end))
					require.NoError(t, c.Publish(1, ids[:end]))
					_, err := c.Pass(1, end)
					require.NoError(t, err)
					done = end
				}
				require.NoError(t, c.Close(1))
				again := New(classes...)
				again.Restore(kept(all(c)))
				whole := (prompt - 1) / backend.BlockSize * backend.BlockSize
				require.Equal(t, whole, again.Cached(0, ids[:prompt]), "%d tokens, %d of an answer, classes %+v", prompt, answer,
					classes)
				require.Equal(t, len(ids)/backend.BlockSize*backend.BlockSize, again.Cached(0, append(ids, 0)))
			}
		}
	}
}

// Where no class keeps all, a block brings the text before it along.
func TestRestoreStates(t *testing.T) {
	states := Class{Blocks: 5, Disk: 4, Window: 65}
	c := New(states)
	advance(t, c, 1, "abcdef")
	require.NoError(t, c.Close(1))
	advance(t, c, 2, "abx")
	require.NoError(t, c.Close(2))
	files := kept(all(c))
	require.Len(t, files, 2)
	again := New(states)
	again.Restore(files)
	require.Empty(t, all(again))
	require.Equal(t, 6*backend.BlockSize, advance(t, again, 1, "abcdef"))
	require.Equal(t, 3*backend.BlockSize, advance(t, again, 2, "abx"))
	files[1].Before[200]++ // of abcdef
	again = New(states)
	again.Restore(files)
	require.Equal(t, []string{"2 3"}, ways(all(again)), "something before it is missing")
}

// The next process finds what was written of whole texts, for whom it was written, and drops the rest: what has no
// room, what goes on from something that is missing, and what is not what it says.
func TestRestore(t *testing.T) {
	c := New(Class{Blocks: 9, Disk: 20})
	compute(t, c, 1, "abc")
	compute(t, c, 2, "abxyz")
	require.NoError(t, c.Close(2))
	require.NoError(t, c.Close(1))
	files := kept(all(c))
	require.Len(t, files, 6)

	again := New(Class{Blocks: 9, Disk: 20})
	again.Restore(files)
	require.Equal(t, Stats{Blocks: 9, Free: 9, Disk: 6}, again.Stats())
	require.Equal(t, 5*backend.BlockSize, compute(t, again, 1, "abxyz"))
	_, err := again.Open(2, 7, append(text("abc"), 0))
	require.NoError(t, err)
	require.Zero(t, again.Tables(2)[0].First+len(again.Tables(2)[0].Blocks), "another salt")
	require.Equal(t, []string{"2 0", "2 0", "2 0", "2 0", "2 0"}, ways(all(again)))

	less := New(Class{Blocks: 9, Disk: 4})
	less.Restore(files)
	require.Equal(t, []string{"2 3", "2 3"}, ways(all(less)))
	require.Equal(t, 4, less.Stats().Disk)
	require.Equal(t, 2*backend.BlockSize, compute(t, less, 1, "ab"), "leaves were dropped")

	for i := range files {
		if files[i].Tokens == [64]int32(text("x")) {
			files[i].Tokens[3]++ // so x is missing
		}
	}
	torn := New(Class{Blocks: 9, Disk: 20})
	torn.Restore(files)
	require.Equal(t, 3, torn.Stats().Disk)
	require.Len(t, all(torn), 2, "y and z are of no use")
	require.Equal(t, 2*backend.BlockSize, compute(t, torn, 1, "abxyz"))
}

// A lost device loses no file. What was being written is dropped.
func TestLoseKeepsTheDisk(t *testing.T) {
	c := New(Class{Blocks: 6, Host: 2, Disk: 9})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	all(c)
	compute(t, c, 2, "xy")
	require.NoError(t, c.Close(2))
	require.Len(t, c.NextMoves(1, nil), 1, "x, which may not arrive")
	compute(t, c, 3, "abc")
	c.Lose()
	require.Equal(t, 3, c.Stats().Disk, "a, b and c, which were used")
	require.Equal(t, []string{"2 3"}, ways(all(c)))
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 4, "abc"))
	require.Len(t, all(c), 3)
	require.NoError(t, c.Close(4))
	require.Zero(t, compute(t, c, 5, "xy"))
}

// Who waits for a file that cannot be read is opened again and computes it. What could not be written stays in memory.
func TestFailedMoves(t *testing.T) {
	c := New(Class{Blocks: 4, Disk: 9})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	files := kept(all(c))
	c = New(Class{Blocks: 8, Disk: 9})
	c.Restore(files)
	for id := range Seq(2) {
		cached, err := c.Open(id, 0, append(text("abc"), 0))
		require.NoError(t, err)
		require.Equal(t, 192, cached)
	}
	moves := c.NextMoves(9, nil)
	require.Len(t, moves, 3)
	c.Moved()
	require.Equal(t, []Seq{0, 1}, c.Failed(moves[1]))
	require.Nil(t, c.Tables(0))
	require.Equal(t, 1*backend.BlockSize, compute(t, c, 0, "abc"))
	c.Moved() // c, which nobody waits for
	moves = c.NextMoves(9, nil)
	require.Equal(t, []string{"2 3"}, ways(moves), "b's file")
	c.Moved()
	moves = c.NextMoves(9, nil)
	require.Equal(t, []string{"0 2"}, ways(moves), "b is written anew; c has a file")
	require.Empty(t, c.Failed(moves[0]))
	require.Equal(t, []string{"2 3"}, ways(all(c)), "what there may be of it is dropped, and nothing tried at once")
	require.NoError(t, c.Close(0))
	require.Equal(t, []string{"0 2"}, ways(all(c)))
	require.True(t, c.Saved())
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 3, "abc"), "it is in memory")
}

// What was dropped from the disk goes although the device is lost before: whether that was begun or not.
func TestDroppedWhileTheDeviceIsLost(t *testing.T) {
	for _, begun := range []bool{false, true} {
		c := New(Class{Blocks: 1, Disk: 1})
		compute(t, c, 1, "a")
		require.NoError(t, c.Close(1))
		require.Equal(t, []string{"0 2"}, ways(all(c)))
		require.Equal(t, backend.BlockSize, c.Forget(0, text("a")))
		if begun {
			require.Equal(t, []string{"2 3"}, ways(c.NextMoves(9, nil)))
		}
		c.Lose()
		require.Equal(t, []string{"2 3"}, ways(all(c)), "begun: %t", begun)
		c.Lose()
		require.Empty(t, all(c))
	}
}

// What could not be written, and was wanted back meanwhile, is computed again: its place in memory had gone to others.
func TestUnwrittenAndWantedBack(t *testing.T) {
	c := New(Class{Blocks: 1, Disk: 9})
	compute(t, c, 1, "a")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "x")
	require.NoError(t, c.Close(2))
	require.Equal(t, backend.BlockSize, compute(t, c, 3, "a"))
	written, read := c.NextMoves(9, nil), c.NextMoves(9, nil)
	require.Equal(t, []string{"0 2", "0 2"}, ways(written), "a and x")
	require.Equal(t, []string{"2 0"}, ways(read))
	require.Empty(t, c.Failed(written[0]))
	c.Moved()
	require.True(t, c.Coming(3))
	require.Equal(t, []Seq{3}, c.Failed(read[0]))
	require.Zero(t, compute(t, c, 3, "a"))
	require.NoError(t, c.Close(3))
	require.Equal(t, backend.BlockSize, compute(t, c, 4, "x"))
	require.Equal(t, []string{"2 3", "0 2", "2 0"}, ways(all(c)), "what there may be of a, a anew, x")
}

// Who has computed a block anew goes on with it when a read of its file fails that was under way: for a prompt that was
// closed meanwhile, or, as a twin, for one that is open. Who comes later has it, too.
func TestComputedBeforeAReadFailed(t *testing.T) {
	c := New(Class{Blocks: 4, Disk: 9})
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	files := kept(all(c))
	for i := range 4 {
		twin, closed := i&1 > 0, i&2 > 0
		c := New(Class{Blocks: 4, Disk: 9})
		c.Restore(files)
		anew := func() {
			_, err := c.Open(1, 0, nil) // it looks for nothing
			require.NoError(t, err)
			require.NoError(t, c.Grow(1, 128, 128))
		}
		if twin {
			anew()
		}
		cached, err := c.Open(0, 0, append(text("ab"), 0))
		require.NoError(t, err)
		require.Equal(t, 128, cached)
		reads := c.NextMoves(9, nil)
		require.Equal(t, []string{"2 0", "2 0"}, ways(reads))
		if twin {
			require.NoError(t, c.Publish(1, text("ab")))
		}
		require.Equal(t, []Seq{0}, c.Failed(reads[0]))
		if !twin {
			anew()
			require.NoError(t, c.Publish(1, text("ab")))
		}
		mine := blocks(c, 1)
		require.Len(t, mine, 2)
		if closed {
			require.NoError(t, c.Close(1))
		}
		require.Empty(t, c.Failed(reads[1]))
		require.Equal(t, []string{"2 3", "2 3", "0 2", "0 2"}, ways(all(c)), "the files, and both anew")
		if !closed {
			require.Equal(t, mine, blocks(c, 1))
			require.NoError(t, c.Close(1))
		}
		require.Equal(t, 128, compute(t, c, 2, "ab"))
		require.Equal(t, mine, blocks(c, 2))
		require.False(t, c.Coming(2))
	}
}

// Where nothing can be written, that is tried once for each reason to write, not for ever.
func TestFailuresEnd(t *testing.T) {
	c := New(Class{Blocks: 9, Disk: 9})
	compute(t, c, 1, "abcdef")
	require.NoError(t, c.Close(1))
	for range 2 {
		moves := c.NextMoves(2, nil)
		require.Equal(t, []string{"0 2", "0 2"}, ways(moves))
		for _, m := range moves {
			c.Failed(m)
		}
		require.Equal(t, []string{"2 3", "2 3"}, ways(all(c)))
		require.True(t, c.Saved())
		compute(t, c, 2, "x")
		require.NoError(t, c.Close(2))
	}
	require.Len(t, all(c), 7, "it works again")
}

// Keys of a text are those that its blocks have: they tell salts, and what stands before, apart.
func TestKeys(t *testing.T) {
	c := New(Class{Blocks: 3, Disk: 9})
	_, err := c.Open(1, 7, append(text("aba"), 0))
	require.NoError(t, err)
	require.NoError(t, c.Grow(1, 3*backend.BlockSize, 3*backend.BlockSize))
	require.NoError(t, c.Publish(1, text("aba")))
	require.NoError(t, c.Close(1))
	var want []Key
	for _, m := range all(c) {
		want = append(want, m.Text.Key)
	}
	require.Len(t, want, 3)
	require.Equal(t, want, Keys(7, append(text("aba"), 'a')), "the last block is not whole")
	require.NotEqual(t, want[0], want[2])
	require.NotEqual(t, want[0], Keys(8, text("a"))[0])
	require.Empty(t, Keys(7, nil))
}

// What the books take of blocks that are in files alone is what plans count for it.
func TestBooksTakeWhatIsPlanned(t *testing.T) {
	const blocks = 1 << 13
	all := make([]Kept, 0, blocks)
	for i := range int32(blocks / 2) { // two blocks of each text
		first := &Text{Parent: rootKey(0), Tokens: tokenBlock{i}}
		first.Key = first.Parent.next(&first.Tokens)
		second := &Text{Parent: first.Key, Tokens: tokenBlock{i, 1}}
		second.Key = second.Parent.next(&second.Tokens)
		all = append(all, Kept{Text: first, Used: int64(i)}, Kept{Text: second, Used: int64(i)})
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	c := New(Class{Blocks: 8, Disk: blocks})
	c.Restore(all)
	each := (heap() - before) / blocks
	require.Equal(t, blocks, c.Stats().Disk)
	runtime.KeepAlive(all)
	require.LessOrEqual(t, each, int64(place.KeptBook))
	require.Greater(t, each, int64(place.KeptBook*3/4), "plans count too much")
}
