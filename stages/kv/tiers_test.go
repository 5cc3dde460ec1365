package kv

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
)

// all carries out every move, and returns them.
func all(c *Cache) (moves []Move) {
	for n := -1; n < len(moves); {
		n = len(moves)
		moves = c.NextMoves(100, moves)
	}
	for range moves {
		c.Moved()
	}
	return moves
}

// What the device has no room for goes to the host's memory, leaves of the oldest first, and comes back when a prompt
// begins with it. What the host's memory has no room for is lost.
func TestMovesOutAndBack(t *testing.T) {
	c := New(Class{Blocks: 3, Host: 3})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	require.Empty(t, all(c), "nothing moves while there is room")

	compute(t, c, 2, "xy")
	require.True(t, c.Coming(2), "what its blocks held is still read")
	require.Equal(t, []Move{
		{From: Device, To: Host, Block: 2, Into: 0}, {From: Device, To: Host, Block: 1, Into: 1},
	}, all(c))
	require.False(t, c.Coming(2))
	require.Equal(t, Stats{Blocks: 3, Cached: 1, Used: 2, Host: 2, Out: 2, Misses: 193 + 129}, c.Stats())
	require.NoError(t, c.Close(2))

	require.Equal(t, 3*backend.BlockSize, compute(t, c, 3, "abc"), "a is there, b and c come back")
	require.True(t, c.Coming(3))
	require.Equal(t, []Move{
		{From: Device, To: Host, Block: 1, Into: 2}, {From: Host, To: Device, Block: 1, Into: 1},
		{From: Device, To: Host, Block: 2, Into: 1}, {From: Host, To: Device, Block: 0, Into: 2},
	}, all(c), "x and y go meanwhile")
	require.Zero(t, c.Stats().Evictions)
	require.NoError(t, c.Close(3))

	compute(t, c, 4, "mno")
	require.NoError(t, c.Close(4))
	require.EqualValues(t, 2, c.Stats().Evictions, "y, then x")
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 5, "abc"))
}

// What is on its way out and wanted back comes in a call of its own: of those that are made at once, none reads outside
// the device what another of them writes.
func TestOutAndBackAreNotAtOnce(t *testing.T) {
	c := New(Class{Blocks: 3, Host: 3})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "xy")
	require.NoError(t, c.Close(2)) // before c and b have left
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 3, "abc"))
	var at [][]Move
	for more := c.NextMoves(100, nil); len(more) > 0; more = c.NextMoves(100, nil) {
		at = append(at, more)
	}
	require.Equal(t, [][]Move{
		{{From: Device, To: Host, Block: 2, Into: 0}, {From: Device, To: Host, Block: 1, Into: 1},
			{From: Device, To: Host, Block: 1, Into: 2}},
		{{From: Host, To: Device, Block: 1, Into: 1}, {From: Device, To: Host, Block: 2, Into: 1},
			{From: Host, To: Device, Block: 0, Into: 2}},
	}, at)
}

// A sequence that shares what is on its way for another one waits with it. One that has nothing to do with it does not.
func TestComingIsShared(t *testing.T) {
	c := New(Class{Blocks: 4, Host: 4})
	compute(t, c, 1, "abcd")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "wxyz")
	require.NoError(t, c.Close(2))
	require.Len(t, all(c), 4)
	compute(t, c, 3, "a")
	require.Len(t, c.moves.due, 2, "z goes, a comes")
	require.Len(t, c.NextMoves(2, nil), 2)
	compute(t, c, 4, "a")
	c.Moved()
	require.True(t, c.Coming(3))
	require.True(t, c.Coming(4))
	c.Moved()
	require.False(t, c.Coming(3))
	require.False(t, c.Coming(4))
	require.False(t, c.Coming(5), "it is not open")
}

// What has no room on the device beside open sequences stays where it is, and nothing else changes.
func TestComesOnlyWithRoom(t *testing.T) {
	c := New(Class{Blocks: 3, Host: 3})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "xy")
	all(c)
	before := c.Stats()
	_, err := c.Open(3, 0, append(text("abc"), 0))
	require.ErrorIs(t, err, ErrFull)
	require.EqualError(t, err, "open sequence 3 with 2 blocks of class 0 from other memory: 0 free and 0 cached of 3: "+
		"the KV cache is full")
	require.Equal(t, before, c.Stats())
	require.NoError(t, c.Close(2))
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 3, "abc"))
}

// An equal block that is computed anew takes the place of one beyond the device.
func TestComputedAnew(t *testing.T) {
	c := New(Class{Blocks: 2, Host: 2})
	compute(t, c, 1, "ab")
	require.NoError(t, c.Close(1))
	_, err := c.Open(2, 0, nil) // it looks for nothing
	require.NoError(t, err)
	require.NoError(t, c.Grow(2, 128, 128))
	require.Equal(t, 2, c.Stats().Host)
	require.NoError(t, c.Publish(2, text("ab")))
	require.Equal(t, 0, c.Stats().Host)
	require.Len(t, c.free[Host][0], 2)
}

// Behind a window, what a prompt may go on from moves; what was passed does not.
func TestOnlyTheEndOfAWindowMoves(t *testing.T) {
	c := New(Class{Blocks: 12, Host: 12}, Class{Blocks: 4, Host: 4, Window: 65})
	advance(t, c, 1, "abcdefgh")
	require.Empty(t, all(c), "4 blocks went round, each was passed")
	require.NoError(t, c.Close(1))
	advance(t, c, 2, "stuvwxyz")
	require.NoError(t, c.Close(2))
	for _, m := range all(c) {
		require.True(t, m.Class == 0 || m.Block == 0 || m.Block == 3, "those of g and h: %v", m)
	}
	require.Equal(t, 8*backend.BlockSize, advance(t, c, 3, "abcdefgh"))
}

// A device that lost its memory finds again what was elsewhere, of whole texts: what was on its way is lost, and so is
// what goes on from it.
func TestLoseKeepsOtherTiers(t *testing.T) {
	c := New(Class{Blocks: 3, Host: 6})
	compute(t, c, 1, "abc")
	require.NoError(t, c.Close(1))
	compute(t, c, 2, "xyz")
	require.NoError(t, c.Close(2))
	require.Len(t, all(c), 3, "c, b and a")
	compute(t, c, 3, "k")
	require.NoError(t, c.Close(3))
	require.Len(t, c.NextMoves(1, nil), 1, "z, which does not arrive")
	c.Lose()
	require.Equal(t, Stats{Blocks: 3, Free: 3, Host: 3, Out: 4, Misses: 2*193 + 65}, c.Stats())
	require.Empty(t, all(c))
	require.Zero(t, compute(t, c, 4, "x"))
	require.NoError(t, c.Close(4))
	require.Equal(t, 3*backend.BlockSize, compute(t, c, 5, "abc"))
	require.NoError(t, c.Close(5))
	all(c)
	compute(t, c, 6, "pq") // b and c go
	all(c)
	c.Lose()
	require.Equal(t, 1, c.Stats().Host, "x: a, which b and c go on from, was on the device alone")
	require.Len(t, c.free[Host][0], 5)
	require.Zero(t, compute(t, c, 7, "abc"))
	require.NoError(t, c.Close(7))
	require.Equal(t, backend.BlockSize, compute(t, c, 8, "x"))
}

// contents is the memory of all tiers, in which a block holds the text that it is computed of. Moves are carried out
// late; what a sequence may use has to hold what it was computed of.
type contents struct {
	c       *Cache
	classes []Class
	blocks  [Disk][]map[int32]string // by class
	files   map[file]string
	texts   map[file]Text
	told    follower

	begun     []Move
	open      map[Seq]*computed
	unremoved bool // removing a file failed: it may be there for good
	faults    int  // of this many moves of files, and one more, one fails
	crowded   bool // there are salts, transfers and requests that are refused
}

// file is a block on the disk.
type file struct {
	Key
	class int
}

// step computes a block of a sequence, where it may.
func (x *contents) step(t *rapid.T) {
	for _, id := range slices.Sorted(maps.Keys(x.open)) {
		s := x.open[id]
		if s.way != computes || (s.done+1)*backend.BlockSize > len(s.text) || !rapid.Bool().Draw(t, "has rows") {
			continue
		}
		end := (s.done + 1) * backend.BlockSize
		if err := x.c.Grow(id, end, end); err != nil {
			require.ErrorIs(t, err, ErrFull)
			continue
		}
		if x.c.Coming(id) {
			continue
		}
		s.done++
		for c := range x.classes {
			table := x.c.Tables(id)[c]
			x.blocks[Device][c][table.At(s.done-1)] = x.key(s, s.done)
		}
		require.NoError(t, x.c.Publish(id, s.text[:end]))
		_, err := x.c.Pass(id, end)
		require.NoError(t, err)
	}
}

func (x *contents) end(t *rapid.T) {
	ids := slices.Sorted(maps.Keys(x.open))
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "ends")
	if x.c.Coming(id) {
		return // its owner waits for an answer
	}
	require.NoError(t, x.c.Close(id))
	delete(x.open, id)
}

// carry begins moves, and ends some that were begun: their copies are made as late as can be.
func (x *contents) carry(t *rapid.T) {
	if most := rapid.IntRange(1, 4).Draw(t, "at once"); len(x.begun) < 3 {
		more := x.c.NextMoves(most, nil)
		require.LessOrEqual(t, len(more), most)
		for i, m := range more { // a device may read the memory of all before it fills any
			for _, before := range more[:i] {
				require.False(t, m.From != Device && before.To == m.From && before.Class == m.Class && before.Into == m.Block)
			}
		}
		x.begun = append(x.begun, more...)
	}
	for range rapid.IntRange(0, len(x.begun)).Draw(t, "done") {
		m := x.begun[0]
		x.begun = x.begun[1:]
		if m.Text != nil && (x.missing(m) || rapid.IntRange(0, x.faults).Draw(t, "fails") == 0) {
			x.fail(t, m)
			continue
		}
		x.move(t, m)
		x.c.Moved()
	}
}

// missing: there is no file of what is to be read, because it could not be written.
func (x *contents) missing(m Move) bool {
	_, there := x.files[file{m.Text.Key, m.Class}]
	return m.From == Disk && m.To == Device && !there
}

func (x *contents) move(t *rapid.T, m Move) {
	if m.Text == nil {
		require.Equal(t, 1, int(m.From)+int(m.To), "between the device and the host")
		x.blocks[m.To][m.Class][m.Into] = x.blocks[m.From][m.Class][m.Block]
		return
	}
	at := file{m.Text.Key, m.Class}
	switch {
	case m.To == Gone:
		delete(x.files, at)
	case m.To == Disk:
		x.files[at], x.texts[at] = x.blocks[m.From][m.Class][m.Block], *m.Text
	default:
		require.Equal(t, [2]Tier{Disk, Device}, [2]Tier{m.From, m.To})
		require.Contains(t, x.files, at)
		x.blocks[Device][m.Class][m.Into] = x.files[at]
	}
}

// fail: a file cannot be read, or written, or removed. Sequences that wait for it begin again.
func (x *contents) fail(t *rapid.T, m Move) {
	at := file{m.Text.Key, m.Class}
	switch m.To {
	case Device:
		x.blocks[Device][m.Class][m.Into] = "a failure"
		if rapid.Bool().Draw(t, "it is torn") { // then it is removed
			delete(x.files, at)
		}
	case Gone:
		x.unremoved = true
	}
	waited := map[Seq]bool{}
	for id := range x.open {
		waited[id] = x.c.Coming(id)
	}
	for _, id := range x.c.Failed(m) {
		s := x.open[id]
		require.True(t, m.To == Device && waited[id])
		require.Equal(t, s.found, s.done, "its owner waits for what it opened")
		delete(x.open, id)
		x.enter(t, id, &computed{salt: s.salt, text: s.text, way: s.way})
	}
	if m.To == Disk && rapid.Bool().Draw(t, "others have the room") {
		x.c.Shrink(m.Class)
	}
}

// restart: all is lost but the files, in some order.
func (x *contents) restart(t *rapid.T) {
	if rapid.IntRange(0, 19).Draw(t, "restarts") > 0 {
		return
	}
	var all []Kept
	for at := range x.files {
		text := x.texts[at]
		all = append(all, Kept{Text: &text, Class: at.class, Used: int64(at.Key[0] / 8)})
	}
	x.c = New(x.classes...)
	x.c.Watch()
	x.begun, x.open = nil, map[Seq]*computed{}
	for tier := range x.blocks {
		for c := range x.classes {
			x.blocks[tier][c] = map[int32]string{}
		}
	}
	x.c.Restore(all)
	s := x.c.Stats()
	require.Equal(t, len(all), s.Disk+len(x.c.moves.due), "what is not there is dropped")
}

// lose: the device's memory is gone, and what was on its way. The end of a text is found again if all of it is
// elsewhere.
func (x *contents) lose(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "device is lost") > 0 {
		return
	}
	x.c.Lose()
	x.begun, x.open = nil, map[Seq]*computed{}
	for c := range x.classes {
		x.blocks[Device][c] = map[int32]string{}
	}
	require.Zero(t, x.c.Stats().Cached+x.c.Stats().Used)
}

// check: what was told is so, what a sequence may use holds its text, and every place of every tier is free or has
// one owner.
func (x *contents) check(t *rapid.T) {
	x.told.agree(t, x.c)
	for id, s := range x.open {
		if x.c.Coming(id) {
			continue
		}
		for c, table := range x.c.Tables(id) {
			for i := table.First; i < s.done; i++ {
				require.Equal(t, x.key(s, i+1), x.blocks[Device][c][table.At(i)], "class %d, block %d of sequence %d", c, i, id)
			}
		}
	}
	for c, class := range x.classes {
		for tier := range Tiers {
			x.checkTier(t, c, Tier(tier), class.room(Tier(tier)))
		}
	}
}

func (x *contents) checkTier(t *rapid.T, c int, tier Tier, room int) {
	owned := map[int32]string{}
	own := func(b int32, by string) {
		require.True(t, owned[b] == "" || owned[b] == by, "block %d of tier %d is %s and %s", b, tier, owned[b], by)
		owned[b] = by
	}
	for _, b := range x.c.free[tier][c] {
		require.Empty(t, owned[b], "it is free twice")
		own(b, "free")
	}
	tree := &x.c.tree
	for n := range tree.size {
		if e := tree.at(c, n); tier == Disk && e.block != noBlock && e.kept != noBlock {
			require.NotEqual(t, Disk, e.tier)
			own(e.kept, fmt.Sprint("kept at node ", n))
		}
	}
	l, length, before := &tree.idle[tier][c], 0, noNode
	for n := l.oldest; n != noNode; n = tree.at(c, n).newer {
		e := tree.at(c, n)
		require.True(t, e.tier == tier && e.users == 0 && e.block != noBlock && e.older == before)
		own(e.block, fmt.Sprint("idle at node ", n))
		length, before = length+1, n
	}
	require.Equal(t, before, l.newest)
	require.Equal(t, length, l.length)
	if tier == Device {
		for id := range x.open {
			for i, b := range x.c.Tables(id)[c].Blocks {
				require.NotEqual(t, "free", owned[b])
				if owned[b] == "" {
					own(b, fmt.Sprint("used at ", i))
				}
			}
		}
	}
	require.Len(t, owned, room)
}

func tiersProperty(t *rapid.T) {
	blocks := func(most int, name string) int { return rapid.IntRange(0, most).Draw(t, name) }
	host := rapid.SampledFrom([]int{0, 0, 0, 3, 12}).Draw(t, "host") // without any, places go while they are written
	var classes []Class
	for range rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "windows") {
		window := rapid.SampledFrom([]int{64, 65, 130}).Draw(t, "window")
		classes = append(classes, Class{Blocks: 1 + blocks(7, "blocks"), Host: host, Disk: blocks(4, "disk"),
			Window: window})
	}
	if len(classes) == 0 || rapid.Bool().Draw(t, "full") {
		classes = append(classes, Class{Blocks: 1 + blocks(9, "blocks"), Host: host, Disk: blocks(8, "disk")})
	}
	x := &contents{c: New(classes...), classes: classes, open: map[Seq]*computed{}, files: map[file]string{},
		texts: map[file]Text{}, told: follower{loose: !slices.ContainsFunc(classes, Class.keepsAll)}}
	x.c.Watch()
	for tier := range x.blocks {
		for range classes {
			x.blocks[tier] = append(x.blocks[tier], map[int32]string{})
		}
	}
	calls := []func(*rapid.T){x.begin, x.begin, x.step, x.step, x.step, x.end, x.carry, x.carry, x.lose, x.restart}
	x.faults = rapid.SampledFrom([]int{1, 1, 9}).Draw(t, "faults")
	if x.crowded = rapid.Bool().Draw(t, "crowded"); x.crowded {
		calls = append(calls, x.begin, x.step, x.carry, x.save, x.restore, x.come, x.come, x.forget)
	}
	for range rapid.IntRange(50, 200).Draw(t, "calls") {
		calls[rapid.IntRange(0, len(calls)-1).Draw(t, "call")](t)
		x.check(t)
	}
	x.settle(t)
	sum, s := 0, x.c.Stats()
	for _, class := range classes {
		sum += class.Blocks
	}
	require.Equal(t, sum, s.Blocks)
	require.Equal(t, sum, s.Free+s.Cached+s.Used)
}

// Whatever is moved late, and however prompts meet: what a sequence may use holds what it was computed of.
func TestTiersHoldWhatWasComputed(t *testing.T) {
	for range 10 { // what failures do to each other is rare
		rapid.Check(t, tiersProperty)
	}
}
