package carry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTake: events pass unchanged and marks are taken out, however the stream is cut; what a client has is counted by
// slot, and records come before the events that they are of.
func TestTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.Bool().Draw(t, "lines")
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		var stream, events, records []byte
		seen := make([]int, slots)
		marked := false
		for range rapid.IntRange(0, 20).Draw(t, "puts") {
			slot := rapid.IntRange(0, slots-1).Draw(t, "slot")
			add := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "records")
			stream, marked = Mark(stream, slot, slots, add, lines), true
			records = append(records, add...)
			for i := range rapid.IntRange(0, 3).Draw(t, "events") {
				event := fmt.Sprintf("data: {%d}%s", i, End(lines))
				if !lines && rapid.Bool().Draw(t, "comment") {
					event = ": " + event
				} else {
					seen[slot]++
				}
				stream, events = append(stream, event...), append(events, event...)
			}
		}
		k := New(lines)
		var got []byte
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			var err error
			got, err = k.Take(got, rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, string(events), string(got))
		require.Equal(t, string(records), string(k.Records))
		require.True(t, k.Whole())
		require.True(t, k.Known())
		if !marked {
			seen = nil
		}
		require.Equal(t, seen, k.Seen)
		back, ok := ParseSeen(string(AppendSeen(nil, seen)))
		require.True(t, ok)
		require.Equal(t, seen, back)
	})
}

// TestAnew: the begin of an event that a member did not end is not passed on, and what the next one sends counts on.
func TestAnew(t *testing.T) {
	k := New(false)
	got, err := k.Take(nil, append(Mark(nil, 0, 1, []byte("a"), false), "data: 1\n\ndata: 2\n"...))
	require.NoError(t, err)
	require.Equal(t, "data: 1\n\n", string(got))
	require.False(t, k.Whole())
	k.Anew()
	got, err = k.Take(nil, append(Mark(nil, 0, 1, []byte("b"), false), "data: 2\n\n"...))
	require.NoError(t, err)
	require.Equal(t, "data: 2\n\n", string(got))
	require.Equal(t, []int{2}, k.Seen)
	require.Equal(t, "ab", string(k.Records))
}

// TestUnknown: an answer whose events had no marks, or too many records, cannot be gone on with.
func TestUnknown(t *testing.T) {
	k := New(true)
	_, err := k.Take(nil, []byte("{}\n"))
	require.NoError(t, err)
	require.False(t, k.Known())
	_, err = k.Take(nil, Mark(nil, 0, 1, nil, true))
	require.NoError(t, err)
	require.True(t, k.Known(), "it was told how its prompt is read")
	for range 3 {
		_, err = k.Take(nil, Mark(nil, 0, 1, make([]byte, mostRecords/2), true))
		require.NoError(t, err)
	}
	require.False(t, k.Known())
	require.Empty(t, k.Records)
}

// TestNoMarks: what another program could send is refused.
func TestNoMarks(t *testing.T) {
	for _, mark := range []string{"", "0", "0/1", "1/1 ", "-1/1 ", "0/0 ", "0/9999 ", "x/1 ", "0/x ", "0/1 !", "0/1 QQ=", "0/2 "} {
		k := New(true)
		_, err := k.Take(nil, Mark(nil, 0, 1, nil, true))
		require.NoError(t, err)
		_, err = k.Take(nil, []byte(prefix+mark+"\n"))
		require.ErrorIs(t, err, errMark, mark)
	}
	k := New(true)
	_, err := k.Take(nil, bytes.Repeat([]byte("x"), mostEvent+1))
	require.ErrorContains(t, err, "an event has more than")
	for _, seen := range []string{"-", "1-", "-1", "x", "1--2", "99999999999", strings.Repeat("1-", mostSlots) + "1"} {
		_, ok := ParseSeen(seen)
		require.False(t, ok, seen)
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte("data: 1\n\n"), false)
	f.Add(append(Mark(nil, 1, 2, []byte("records"), true), "{}\n"...), true)
	f.Fuzz(func(t *testing.T, stream []byte, lines bool) {
		whole, pieces := New(lines), New(lines)
		a, err := whole.Take(nil, stream)
		var b []byte
		var wrong error
		for i := 0; i < len(stream) && wrong == nil; i++ {
			b, wrong = pieces.Take(b, stream[i:i+1])
		}
		require.Equal(t, err == nil, wrong == nil)
		require.Equal(t, string(a), string(b))
		require.Equal(t, whole.Seen, pieces.Seen)
	})
}
