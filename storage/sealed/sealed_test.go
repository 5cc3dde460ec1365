package sealed

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func key(t testing.TB, digit string) *Key {
	k, err := Parse(strings.Repeat(digit, 2*keySize))
	require.NoError(t, err)
	return k
}

func TestParse(t *testing.T) {
	k, err := Parse("  ")
	require.NoError(t, err)
	require.Nil(t, k)
	hex := key(t, "0")
	k, err = Parse(base64.StdEncoding.EncodeToString(make([]byte, keySize)) + "\n")
	require.NoError(t, err)
	require.Equal(t, hex, k)
	for _, bad := range []string{"secret", strings.Repeat("0", 62), strings.Repeat("0", 66), base64.StdEncoding.EncodeToString(
		make([]byte, 31))} {
		_, err := Parse(bad)
		require.ErrorContains(t, err, "want 64 hexadecimal digits")
		require.NotContains(t, err.Error(), bad)
	}
}

// What was sealed comes back by the same key for the same place, and not with any bit changed.
func TestOpen(t *testing.T) {
	k := key(t, "a")
	for _, plain := range []string{"", "x", strings.Repeat("text ", 1000)} {
		part := k.Seal([]byte("before"), []byte(plain), "block 1")[len("before"):]
		require.Len(t, part, len(plain)+k.Over())
		require.NotContains(t, string(part), "text ")
		again := k.Seal(nil, []byte(plain), "block 1")
		require.NotEqual(t, part[:saltSize+nonceSize], again[:saltSize+nonceSize])
		for name, c := range map[string]struct {
			key   *Key
			bound string
		}{"another key": {key(t, "b"), "block 1"}, "another place": {k, "block 2"}} {
			_, err := c.key.Open([]byte(string(part)), c.bound)
			require.ErrorIs(t, err, ErrOpen, name)
		}
		for _, at := range []int{0, saltSize, saltSize + nonceSize, len(part) - 1} {
			bad := []byte(string(part))
			bad[at] ^= 1
			_, err := k.Open(bad, "block 1")
			require.ErrorIs(t, err, ErrOpen, "byte %d", at)
		}
		for _, n := range []int{0, Overhead - 1, len(part) - 1} {
			_, err := k.Open([]byte(string(part[:n])), "block 1")
			require.ErrorIs(t, err, ErrOpen)
		}
		got, err := k.Open(part, "block 1")
		require.NoError(t, err)
		require.Equal(t, plain, string(got))
	}
}

// Names differ by key and by what they are of.
func TestName(t *testing.T) {
	a, b := key(t, "a"), key(t, "b")
	require.Equal(t, a.Name([]byte("x")), a.Name([]byte("x")))
	require.NotEqual(t, a.Name([]byte("x")), b.Name([]byte("x")))
	require.NotEqual(t, a.Name([]byte("x")), a.Name([]byte("y")))
}

func TestWithoutKey(t *testing.T) {
	var k *Key
	require.Zero(t, k.Over())
	require.Equal(t, "ab", string(k.Seal([]byte("a"), []byte("b"), "")))
	got, err := k.Open([]byte("x"), "")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func FuzzOpen(f *testing.F) {
	k := key(f, "a")
	f.Add([]byte{}, "")
	f.Add(k.Seal(nil, []byte("text"), "here"), "here")
	f.Fuzz(func(t *testing.T, part []byte, bound string) {
		plain, err := k.Open(part, bound)
		if err != nil {
			require.ErrorIs(t, err, ErrOpen)
			return
		}
		require.Len(t, plain, len(part)-Overhead)
	})
}
