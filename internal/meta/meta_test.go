package meta

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookups(t *testing.T) {
	var m Map
	m.Set("u8", uint8(7))
	m.Set("huge", uint64(math.MaxUint64))
	m.Set("f", float32(1.5))
	m.Set("s", "text")
	m.Set("i32s", []int32{-1, 2})
	m.Set("u8", uint8(8)) // replaced, not moved

	require.Equal(t, []string{"u8", "huge", "f", "s", "i32s"}, m.Keys())
	n, err := m.Int("u8")
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
	x, err := m.Float("u8")
	require.NoError(t, err)
	require.Equal(t, 8.0, x)
	_, err = m.Int("huge")
	require.EqualError(t, err, "huge: is of type uint64, want an integer")
	_, err = m.Int("s")
	require.EqualError(t, err, "s: is of type string, want an integer")
	_, err = m.String("none")
	require.ErrorIs(t, err, ErrMissing)
	ints, err := m.Ints("i32s")
	require.NoError(t, err)
	require.Equal(t, []int64{-1, 2}, ints)
	_, err = m.Strings("i32s")
	require.EqualError(t, err, "i32s: is of type []int32, want an array of strings")
}
