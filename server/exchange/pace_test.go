package exchange

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPace: who takes some bytes now and then does not read; who reads slowly, or late and then much, does.
func TestPace(t *testing.T) {
	const ever = time.Hour
	for _, c := range []struct {
		name       string
		bytes      int           // of each write
		waits      time.Duration // before it is taken
		pause      time.Duration // before the next one
		from, till time.Duration // when it is found not to be read
	}{
		{"nothing", 100, ever, 0, 2 * time.Second, 3 * time.Second},
		{"nothing of much", 64 << 10, ever, 0, 2 * time.Second, 3 * time.Second},
		{"a byte each second", 1, time.Second, 0, 2 * time.Second, 4 * time.Second},
		{"an event just in time", 200, 1900 * time.Millisecond, 0, 2 * time.Second, 4 * time.Second},
		{"events at a trickle", 200, 200 * time.Millisecond, time.Millisecond, 2 * time.Second, 20 * time.Second},
		{"half of it", 4 << 10, time.Second, 0, 2 * time.Second, 10 * time.Second},
		{"as much as it has to", 8 << 10, time.Second, 0, ever, 2 * ever},
		{"in portions", 40 << 10, 5 * time.Second, 0, 2 * time.Second, 3 * time.Second},
		{"a model that is slow", 200, time.Millisecond, time.Second, ever, 2 * ever},
		{"at full speed", 64 << 10, 10 * time.Millisecond, 0, ever, 2 * ever},
	} {
		var p pace
		start := time.Unix(1000, 0)
		now, found := start, 2*ever
	clock:
		for now.Sub(start) < ever {
			p.begin(now)
			for end := now.Add(c.waits); now.Before(end); now = now.Add(min(end.Sub(now), 50*time.Millisecond)) {
				if p.unread(now) {
					found = now.Sub(start)
					break clock
				}
			}
			p.end(now, c.bytes)
			require.False(t, p.unread(now), "%s: nothing waits for it", c.name)
			now = now.Add(c.pause)
		}
		require.GreaterOrEqual(t, found, c.from, c.name)
		require.LessOrEqual(t, found, c.till, c.name)
	}
}

// TestPaceForgives: who took much at once may be late for a time, not for ever, and who was late long ago reads again.
func TestPaceForgives(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	after := func(d time.Duration, bytes int) {
		p.begin(now)
		now = now.Add(d)
		p.end(now, bytes)
	}
	after(0, 100<<20)
	p.begin(now)
	require.False(t, p.unread(now.Add(ahead+patient)))
	require.True(t, p.unread(now.Add(ahead+patient+1)))
	after(time.Hour, 1)
	after(time.Second, slowest*2)
	p.begin(now)
	require.False(t, p.unread(now.Add(time.Second)))
	require.True(t, p.unread(now.Add(time.Second+1)))
}
