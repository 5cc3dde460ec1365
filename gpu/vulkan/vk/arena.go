package vk

import (
	"cmp"
	"slices"
)

// grain is the alignment of offset and size of every sub-allocation, in bytes: enough for any access, and for the
// fastest path of copies.
const grain = 256

// arena is a first-fit allocator for a range of memory: the first gap that is large enough is taken, and neighbouring
// gaps are joined.
type arena struct {
	size uint64
	gaps []span // free ranges by offset; no two adjoin
}

type span struct{ at, size uint64 }

func newArena(size uint64) arena { return arena{size: size, gaps: []span{{0, size}}} }

func round(n, to uint64) uint64 { return (n + to - 1) / to * to }

// take finds room for n bytes, and says whether there was any.
func (a *arena) take(n uint64) (at uint64, ok bool) {
	n = max(round(n, grain), grain)
	for i := range a.gaps {
		g := &a.gaps[i]
		if g.size < n {
			continue
		}
		at = g.at
		g.at, g.size = g.at+n, g.size-n
		if g.size == 0 {
			a.gaps = slices.Delete(a.gaps, i, i+1)
		}
		return at, true
	}
	return 0, false
}

// give frees n bytes at an offset that take returned for n.
func (a *arena) give(at, n uint64) {
	n = max(round(n, grain), grain)
	i, _ := slices.BinarySearchFunc(a.gaps, at, func(g span, at uint64) int { return cmp.Compare(g.at, at) })
	a.gaps = slices.Insert(a.gaps, i, span{at, n})
	if i+1 < len(a.gaps) && at+n == a.gaps[i+1].at {
		a.gaps[i].size += a.gaps[i+1].size
		a.gaps = slices.Delete(a.gaps, i+1, i+2)
	}
	if i > 0 && a.gaps[i-1].at+a.gaps[i-1].size == at {
		a.gaps[i-1].size += a.gaps[i].size
		a.gaps = slices.Delete(a.gaps, i, i+1)
	}
}

// empty says whether all was given back.
func (a *arena) empty() bool { return len(a.gaps) == 1 && a.gaps[0] == span{0, a.size} }
