package actors

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Law Bounded: more requests than there are places are refused, the others wait, and no mailbox ever holds more
// than the credits of its edges.
func TestBounded(t *testing.T) {
	e := startFixture(t, fixture, func(c *Config) { c.Sequences, c.Context, c.Blocks = 4, 256, 8 })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var open []*Stream
	for i := range maxSessions + 50 {
		s, err := e.Generate(plain([]int32{int32(1 + i%500), 2, 3}, 200))
		if i < maxSessions {
			require.NoError(t, err)
			open = append(open, s)
			continue
		}
		require.ErrorIs(t, err, ErrBusy)
	}
	require.Eventually(t, func() bool { s := e.Snapshot(); return s.Running == 4 && s.Waiting == maxSessions-4 },
		10*time.Second, time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(32<<20), "heap of %d waiting requests", maxSessions)
	for _, s := range open {
		s.Close()
	}
	require.Eventually(t, func() bool { return e.Snapshot().Open == 0 }, 10*time.Second, time.Millisecond)
	for _, a := range e.Snapshot().Actors {
		require.Zero(t, a.Refused, a.ID)
		require.LessOrEqual(t, a.Peak, int64(2*capacity(kindOf(a.ID))), a.ID)
	}
}

// kindOf is the kind of actor that an id names.
func kindOf(id string) string {
	kind := id
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '/' {
			kind = id[i+1:]
			break
		}
	}
	if len(kind) > 0 && kind[0] >= '0' && kind[0] <= '9' {
		return "session"
	}
	return kind
}
