package vk

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestArena takes and gives back at random: nothing overlaps, and in the end all is one gap.
func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 64 * grain
		a := newArena(size)
		held := map[uint64]uint64{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") {
				n := rapid.Uint64Range(1, 9*grain).Draw(t, "bytes")
				at, ok := a.take(n)
				if !ok {
					continue
				}
				if at%grain != 0 || at+n > size {
					t.Fatalf("%d bytes at %d", n, at)
				}
				for other, m := range held {
					if at < other+m && other < at+n {
						t.Fatalf("%d bytes at %d overlap %d at %d", n, at, m, other)
					}
				}
				held[at] = n
				continue
			}
			for at, n := range held {
				a.give(at, n)
				delete(held, at)
				break
			}
		}
		for at, n := range held {
			a.give(at, n)
		}
		if !a.empty() {
			t.Fatalf("gaps %v are left", a.gaps)
		}
	})
	a := newArena(3 * grain)
	_, ok := a.take(3*grain + 1)
	require.False(t, ok)
	_, ok = a.take(3 * grain)
	require.True(t, ok)
}
