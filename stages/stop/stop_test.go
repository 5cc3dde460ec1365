package stop

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// feed pushes the pieces and returns all that was emitted.
func feed(t require.TestingT, m *Matcher, pieces []string) (text string, stopped bool) {
	var out bytes.Buffer
	for _, p := range pieces {
		emit, now := m.Push([]byte(p))
		require.False(t, stopped && (!now || len(emit) > 0), "a stop is final")
		out.Write(emit)
		stopped = now
	}
	held := m.Flush()
	require.False(t, stopped && len(held) > 0, "nothing is held after a stop")
	out.Write(held)
	return out.String(), stopped
}

// naive searches the whole text: the end that comes first, then the longest stop.
func naive(stops []string, text string) (string, bool) {
	for end := range len(text) + 1 {
		cut := -1
		for _, s := range stops {
			if s != "" && strings.HasSuffix(text[:end], s) && (cut < 0 || end-len(s) < cut) {
				cut = end - len(s)
			}
		}
		if cut >= 0 {
			return text[:cut], true
		}
	}
	return text, false
}

// TestFound: it is the stop that comes first, at one byte the longest, however the text is cut; Flush forgets it.
func TestFound(t *testing.T) {
	for _, c := range []struct {
		stops []string
		text  string
		want  string
	}{
		{nil, "anything", ""}, {[]string{"x"}, "anything", ""}, {[]string{"y", "thing"}, "anything", "y"},
		{[]string{"bc", "abc"}, "xabcd", "abc"}, {[]string{"abcd", "bc"}, "xabcd", "bc"}, {[]string{"\n\n"}, "a\nb\n\n", "\n\n"},
	} {
		for cut := range len(c.text) + 1 {
			m := New(c.stops)
			m.Push([]byte(c.text[:cut]))
			m.Push([]byte(c.text[cut:]))
			require.Equal(t, c.want, m.Found(), "%q of %q, cut at %d", c.stops, c.text, cut)
			m.Flush()
			require.Empty(t, m.Found())
		}
	}
}

func TestMatcher(t *testing.T) {
	for _, c := range []struct {
		stops   []string
		pieces  []string
		want    string
		stopped bool
	}{
		{nil, []string{"any", "thing"}, "anything", false},
		{[]string{""}, []string{"any", "thing"}, "anything", false},
		{[]string{"STOP"}, []string{"go S", "T", "OP on"}, "go ", true},
		{[]string{"STOP"}, []string{"go S", "TO", " on ST"}, "go STO on ST", false},
		{[]string{"\n\n"}, []string{"a\n", "b\n", "\nc"}, "a\nb", true},
		{[]string{"aab"}, []string{"aa", "aa", "b"}, "aa", true},
		{[]string{"abcd", "bc"}, []string{"xabcd"}, "xa", true},  // bc is complete first
		{[]string{"bc", "abc"}, []string{"xa", "bc"}, "x", true}, // both at once: the longest
		{[]string{"abx", "b"}, []string{"a", "b"}, "a", true},
		{[]string{"end", "the end"}, []string{"at the ", "en", "ding"}, "at ", true},
		{[]string{"あい"}, []string{"あ", "う", "あ", "い"}, "あう", true},
		{[]string{"é"}, []string{"è", "é"}, "è", true},
		{[]string{"STOP"}, []string{"STOP"}, "", true},
	} {
		if c.stops == nil {
			got, stopped := feed(t, &Matcher{}, c.pieces)
			require.Equal(t, c.want, got, "zero value")
			require.False(t, stopped)
		}
		m := New(c.stops)
		for range 2 { // again after Flush
			got, stopped := feed(t, m, c.pieces)
			require.Equal(t, c.want, got, "%q in %q", c.stops, c.pieces)
			require.Equal(t, c.stopped, stopped)
		}
	}
}

// What cannot be the beginning of a stop is emitted at once.
func TestHoldsBackNoMoreThanNeeded(t *testing.T) {
	m := New([]string{"</think>", "<|"})
	for _, c := range [][2]string{
		{"a <", "a "}, {"/", ""}, {"b", "</b"}, {" <", " "}, {"<", "<"}, {"/thin", ""}, {"g", "</thing"},
	} {
		emit, stopped := m.Push([]byte(c[0]))
		require.Equal(t, c[1], string(emit))
		require.False(t, stopped)
	}
	emit, stopped := m.Push([]byte("x<|y"))
	require.Equal(t, "x", string(emit))
	require.True(t, stopped)
	require.Equal(t, "<|", string(m.text[m.sent:len(m.text)]), "nothing but the stop, however long the piece")
}

// pieces cuts a text between characters.
func pieces(t *rapid.T, text string) (list []string) {
	for len(text) > 0 {
		n := rapid.IntRange(0, 5).Draw(t, "cut")
		end := len(text)
		for i := range text {
			if n == 0 && i > 0 {
				end = i
				break
			}
			n--
		}
		list, text = append(list, text[:end]), text[end:]
	}
	return list
}

func property(t *rapid.T) {
	letters := rapid.SampledFrom([]rune("aaabéè日本")) // é and è, 日 and 本 share bytes
	stops := rapid.SliceOfN(rapid.StringOfN(letters, 0, 5, -1), 0, 4).Draw(t, "stops")
	text := rapid.StringOfN(letters, 0, 60, -1).Draw(t, "text")
	m := New(stops)
	for _, p := range pieces(t, text) {
		emit, stopped := m.Push([]byte(p))
		require.True(t, utf8.Valid(emit), "whole characters")
		require.LessOrEqual(t, len(m.text)-m.sent, 20, "holds no more than a stop")
		if stopped {
			break
		}
	}
	m.Flush()
	got, stopped := feed(t, m, pieces(t, text))
	want, wantStopped := naive(stops, text)
	require.Equal(t, want, got)
	require.Equal(t, wantStopped, stopped)
}

func TestLikeNaive(t *testing.T) { rapid.Check(t, property) }

// Any bytes, in any pieces.
func FuzzMatcher(f *testing.F) {
	f.Add("STOP", "\n\n", "go ST\nOP\n\n", uint8(3))
	f.Add("aab", "aaaab", "aaaaaaab", uint8(1))
	f.Add("\xc3", "\xa9", "\xc3\xa9", uint8(1))
	f.Fuzz(func(t *testing.T, a, b, text string, size uint8) {
		var list []string
		for rest := text; len(rest) > 0; {
			n := min(max(1, int(size)), len(rest))
			list, rest = append(list, rest[:n]), rest[n:]
		}
		got, stopped := feed(t, New([]string{a, b}), list)
		want, wantStopped := naive([]string{a, b}, text)
		require.Equal(t, want, got)
		require.Equal(t, wantStopped, stopped)
	})
}

// A stop that never comes, of many equal letters: after its length, each letter sends one and holds the rest, and
// memory stays within twice the stop.
func TestLongBeginning(t *testing.T) {
	const n = 20000
	m := New([]string{strings.Repeat("a", n) + "b", strings.Repeat("a", n/2) + "c"})
	require.Len(t, m.nodes, n+3)
	for i := range 3 * n {
		emit, stopped := m.Push([]byte("a"))
		require.False(t, stopped)
		require.Len(t, emit, min(1, i/n))
		require.LessOrEqual(t, len(m.text), 2*n+2)
	}
	emit, stopped := m.Push([]byte("b"))
	require.True(t, stopped)
	require.Empty(t, emit)
}

func TestNoAlloc(t *testing.T) {
	m := New([]string{"STOP", "\n\n"})
	piece := []byte("some ST text\n")
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Push(piece) }))
}
