package kernel

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestUsesMeet: columns beside each other in rows of one buffer, as queries and values of different types are, have no
// byte in common; ranges that overlap have, whichever rows they are made of.
func TestUsesMeet(t *testing.T) {
	bytes := func(from, to uint64) Use { return Use{from, 1, to - from, to - from} }
	rows := func(n int, from, to uint64) Use { return Use{1000 + from, n, 100, to - from} } // columns of rows of 100 bytes
	for _, c := range []struct {
		name  string
		a, b  Use
		meets bool
	}{
		{"ranges one after the other", bytes(0, 100), bytes(100, 200), false},
		{"ranges with a byte in common", bytes(0, 101), bytes(100, 200), true},
		{"a range within another", bytes(0, 300), bytes(100, 200), true},
		{"columns side by side", rows(3, 0, 10), rows(3, 10, 20), false},
		{"columns side by side, of different heights", rows(1, 0, 10), rows(3, 10, 20), false},
		{"columns with a byte in common", rows(3, 0, 11), rows(3, 10, 20), true},
		{"columns and all of the rows", rows(3, 0, 10), rows(3, 0, 100), true},
		{"columns and a range", rows(3, 0, 10), bytes(1010, 1020), true},
		{"columns and a range behind them", rows(3, 0, 10), bytes(1210, 1300), false},
		{"columns of other rows", rows(3, 0, 10), Use{1010, 3, 200, 10}, true},
		{"rows behind each other", rows(3, 0, 10), Use{1300, 3, 100, 10}, false},
		{"rows beside the last one", rows(3, 0, 10), Use{1220, 3, 100, 10}, false},
		{"a column over the end of rows", rows(3, 0, 10), Use{1095, 1, 100, 10}, true},
		{"no rows", rows(0, 0, 10), rows(3, 0, 10), false},
		{"no columns", rows(3, 5, 5), rows(3, 0, 10), false},
		{"no stride", Use{1000, 1, 0, 10}, Use{1005, 1, 0, 10}, true},
		{"a row again and again", Use{1000, 3, 0, 10}, Use{1005, 3, 0, 10}, true},
		{"a row again and again, behind another", Use{1000, 3, 0, 10}, Use{1010, 3, 0, 10}, false},
	} {
		require.Equal(t, c.meets, c.a.Meets(c.b), c.name)
		require.Equal(t, c.meets, c.b.Meets(c.a), "%s, turned round", c.name)
	}
}

// TestUsesMeetBytes: two uses that do not meet have no byte in common. Of rows with equal strides, those that do have
// one.
func TestUsesMeetBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		use := func(name string, stride uint64) Use {
			return Use{rapid.Uint64Range(1, 60).Draw(t, name), rapid.IntRange(0, 4).Draw(t, name+" rows"), stride,
				rapid.Uint64Range(0, stride).Draw(t, name+" width")}
		}
		strides := rapid.Uint64Range(1, 12)
		first := strides.Draw(t, "stride")
		second := rapid.OneOf(rapid.Just(first), strides).Draw(t, "other stride")
		a, b := use("a", first), use("b", second)
		both := common(a, b)
		if meets := a.Meets(b); both != meets && (both || first == second) {
			t.Fatalf("%v and %v meet: %v, and have a byte in common: %v", a, b, meets, both)
		}
		if a.Meets(b) != b.Meets(a) {
			t.Fatalf("%v meets %v, but not turned round", a, b)
		}
	})
}

// common says whether two uses have a byte in common, byte by byte.
func common(a, b Use) bool {
	bytes := map[uint64]bool{}
	for r := range uint64(a.Rows) {
		for i := range a.Width {
			bytes[a.At+r*a.Stride+i] = true
		}
	}
	for r := range uint64(b.Rows) {
		for i := range b.Width {
			if bytes[b.At+r*b.Stride+i] {
				return true
			}
		}
	}
	return false
}

// TestExchangesFollow: exchanges of values that have nothing in common keep their order, which all cards share.
func TestExchangesFollow(t *testing.T) {
	uses := func(at uint64) (u Uses) {
		box := &Box{Member: 1, At: []uint64{1 << 30, 1 << 31}}
		(&Exchange{Box: box, Part: at, Y: at + 256, PartStride: 4, YStride: 4, Width: 4, Rows: 1}).Uses(&u)
		return u
	}
	a, b := uses(1<<10), uses(1<<20)
	require.True(t, slices.ContainsFunc(a.Writes, func(x Use) bool {
		return slices.ContainsFunc(b.Writes, x.Meets)
	}))
}
