package tiers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

func of(homes ...place.Home) *Cargo { return &Cargo{Source: Source{Plan: &place.Model{Homes: homes}}} }

// What a step waits for goes first, then what it will come to, a few at a time, and then what is loaded.
func TestWhatTravelsFirst(t *testing.T) {
	own := of(place.Home{Slot: -1, Group: ir.Group{Use: ir.Table}}, place.Home{Slot: 7})
	shared := of(place.Home{Slot: -1}, place.Home{Slot: -1}, place.Home{Slot: -1}, place.Home{Slot: -1})
	p := &prefetcher{all: []*Cargo{own}, pending: map[item]urgency{}}
	at := func(slot int) item { return item{shared, slot, slot, 1} }
	goes := func(want item, u urgency) {
		t.Helper()
		x, got, ok := p.choose()
		require.True(t, ok)
		require.Equal(t, want, x)
		require.Equal(t, u, got)
		p.take(x, u)
		p.pending[x] = u
	}
	for slot := range 3 {
		p.want(&Want{at(slot), ahead})
	}
	p.want(&Want{at(3), demanded})
	goes(at(3), demanded)
	goes(at(0), ahead)
	p.want(&Want{at(0), demanded}) // it travels already
	goes(at(1), ahead)
	_, _, ok := p.choose()
	require.False(t, ok, "two travel")
	p.want(&Want{at(2), demanded})
	p.want(&Want{at(2), ahead}) // not less urgent for that
	goes(at(2), demanded)
	delete(p.pending, at(0))
	require.False(t, p.isLoaded(own))
	goes(item{own, 1, 7, 1}, ahead)
	require.False(t, p.isLoaded(own))
	delete(p.pending, item{own, 1, 7, 1})
	require.True(t, p.isLoaded(own))
	_, _, ok = p.choose()
	require.False(t, ok, "nothing is left")
}

// TestGuessesWait: a guess goes only when nothing else is on its way, and one that was forsaken does not.
func TestGuessesWait(t *testing.T) {
	shared := of(place.Home{Slot: -1}, place.Home{Slot: -1}, place.Home{Slot: -1}, place.Home{Slot: -1})
	p := &prefetcher{pending: map[item]urgency{}}
	at := func(slot int) item { return item{shared, slot, slot, 1} }
	next := func() (item, bool) {
		x, u, ok := p.choose()
		if ok {
			p.take(x, u)
			p.pending[x] = u
		}
		return x, ok
	}
	p.want(&Want{at(0), guessed})
	p.want(&Want{at(1), guessed})
	p.want(&Want{at(2), demanded})
	x, _ := next()
	require.Equal(t, at(2), x)
	_, ok := next()
	require.False(t, ok, "a step's is on its way")
	delete(p.pending, at(2))
	x, _ = next()
	require.Equal(t, at(0), x)
	_, ok = next()
	require.False(t, ok, "one at a time")
	p.want(&Want{at(1), demanded}) // it was chosen
	x, _ = next()
	require.Equal(t, at(1), x)
	require.Empty(t, p.queued[guessed])
}
