package kv

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
)

// computed is an open sequence. Blocks of its text are computed in order, or, if it copies, come in or go out.
type computed struct {
	salt        uint64
	text        []int32
	found, done int // blocks that were cached, and those that are there by now
	way         way
}

// way is what a sequence does with its blocks.
type way string

const (
	computes way = ""
	copiesIn way = "in"
	copies   way = "out"
)

func (x *contents) key(s *computed, n int) string {
	m := modelSeq{text: s.text, salt: s.salt}
	return m.key(n)
}

// of draws a sequence that is not open.
func (x *contents) of(t *rapid.T, to way) (Seq, *computed) {
	id := Seq(rapid.IntRange(0, 4).Draw(t, "id"))
	if to != computes {
		id = 9 // of one transfer at a time
	}
	if x.open[id] != nil {
		return id, nil
	}
	salt := uint64(0)
	if x.crowded {
		salt = rapid.SampledFrom([]uint64{0, 0, 0, 0, 0, 0, 1}).Draw(t, "salt")
	}
	return id, &computed{salt: salt, text: texts.Draw(t, "text"), way: to}
}

// enter opens a sequence, as far as there is room for it, and maybe for all that it needs.
func (x *contents) enter(t *rapid.T, id Seq, s *computed) {
	open := x.c.Open
	if s.way == copies {
		open = x.c.Hold
		s.text = s.text[:len(s.text)/backend.BlockSize*backend.BlockSize]
	}
	cached, err := open(id, s.salt, s.text)
	if err != nil {
		require.ErrorIs(t, err, ErrFull)
		return
	}
	if s.found = cached / backend.BlockSize; s.way == copies {
		s.text = s.text[:cached]
	} else if x.crowded && rapid.IntRange(0, 3).Draw(t, "wants all") == 0 {
		if err := x.c.Grow(id, len(s.text), cached+1); err != nil {
			require.ErrorIs(t, err, ErrFull)
			require.NoError(t, x.c.Close(id)) // what it found may be on its way already
			return
		}
	}
	s.done, x.open[id] = s.found, s
}

func (x *contents) begin(t *rapid.T) {
	if id, s := x.of(t, computes); s != nil {
		x.enter(t, id, s)
	}
}

// save begins a sequence that copies what is cached of a text.
func (x *contents) save(t *rapid.T) {
	if id, s := x.of(t, copies); s != nil {
		x.enter(t, id, s)
	}
}

// restore begins a sequence whose blocks come in.
func (x *contents) restore(t *rapid.T) {
	id, s := x.of(t, copiesIn)
	if s == nil {
		return
	}
	s.text = s.text[:len(s.text)/backend.BlockSize*backend.BlockSize]
	if err := x.c.Fill(id, s.salt, len(s.text)/backend.BlockSize); err != nil {
		require.ErrorIs(t, err, ErrFull)
		return
	}
	x.open[id] = s
}

// come has the next block come in, and shares them all after the last one.
func (x *contents) come(t *rapid.T) {
	id, s := Seq(9), x.open[9]
	switch {
	case s == nil || s.way != copiesIn || x.c.Coming(id):
		return
	case s.done*backend.BlockSize < len(s.text):
		s.done++
		for c, table := range x.c.Tables(id) {
			if s.done > table.First {
				x.blocks[Device][c][table.At(s.done-1)] = x.key(s, s.done)
			}
		}
	case rapid.Bool().Draw(t, "it is whole"):
		require.NoError(t, x.c.Publish(id, s.text))
		s.way = copies
	}
}

// forget drops a text.
func (x *contents) forget(t *rapid.T) {
	if _, s := x.of(t, computes); s != nil && rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
		x.c.Forget(s.salt, s.text[:len(s.text)/backend.BlockSize*backend.BlockSize])
	}
}

// settle: once all moves are done, nobody waits, and the disk has what the books say, and nothing else. So it is when
// all sequences have ended, too.
func (x *contents) settle(t *rapid.T) {
	for range 2 {
		for x.begun = append(x.begun, x.c.NextMoves(9, nil)...); len(x.begun) > 0; {
			m := x.begun[0]
			if x.begun = x.begun[1:]; m.Text != nil && x.missing(m) {
				x.fail(t, m)
			} else {
				x.move(t, m)
				x.c.Moved()
			}
			x.begun = append(x.begun, x.c.NextMoves(9, nil)...)
		}
		x.check(t)
		booked := map[file]bool{}
		for n := range x.c.tree.size {
			for c := range x.classes {
				if x.c.tree.has(c, n) && x.c.slot(c, n) != noBlock {
					at := file{x.c.tree.node(n).key, c}
					require.Contains(t, x.files, at, "the books have a file that is not there")
					booked[at] = true
				}
			}
		}
		require.True(t, x.unremoved || len(booked) == len(x.files), "%d files, the books have %d", len(x.files), len(booked))
		for id := range x.open {
			require.False(t, x.c.Coming(id))
			require.NoError(t, x.c.Close(id))
		}
		x.open = map[Seq]*computed{}
	}
	require.True(t, x.c.Saved())
}
