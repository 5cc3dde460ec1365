package tiers

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/source"
)

// copies is a file with copies elsewhere.
func copies(paths ...string) *source.Source {
	s := &source.Source{Path: paths[0]}
	for _, p := range paths[1:] {
		s.Copies = append(s.Copies, source.Source{Path: p})
	}
	return s
}

// pull keeps sixteen reads of a MiB under way for a while, on drives that give so many a second, one after another. It
// returns how many each gave.
func pull(l *lanes, s *source.Source, during time.Duration, perSecond map[string]int) map[string]int {
	type answer struct {
		path string
		lane *lane
	}
	const mib = 1 << 20
	gave, done, queues := map[string]int{}, make(chan answer), map[string]chan answer{}
	for path, n := range perSecond {
		queue := make(chan answer, 16)
		queues[path] = queue
		go func() {
			for a := range queue {
				time.Sleep(time.Second / time.Duration(n))
				done <- a
			}
		}()
	}
	ask := func() {
		from, x := l.choose(s, mib)
		x.begin(mib)
		queues[from.Path] <- answer{from.Path, x}
	}
	for range 16 {
		ask()
	}
	for began := now(); ; {
		a := <-done
		gave[a.path]++
		a.lane.end(mib, nil)
		if now().Sub(began) > during {
			break
		}
		ask()
	}
	for range 15 {
		a := <-done
		a.lane.end(mib, nil)
	}
	for _, q := range queues {
		close(q)
	}
	return gave
}

// TestLanes: drives give what they can, whatever their speeds, and when those change.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLanes(), copies("a", "b")
		for _, c := range []struct{ a, b int }{{300, 100}, {100, 300}, {200, 200}, {1000, 20}} {
			gave := pull(l, s, 10*time.Second, map[string]int{"a": c.a, "b": c.b})
			require.GreaterOrEqual(t, gave["a"]+gave["b"], (c.a+c.b)*10*95/100, "%d and %d: %v", c.a, c.b, gave)
			require.Greater(t, gave["b"], 0)
		}
	})
}

// TestLanesRest: a copy that fails is left alone for a while, and then tried again; if all do, the file itself is read.
func TestLanesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLanes(), copies("a", "b")
		use := func(err error) string {
			from, x := l.choose(s, 1)
			x.begin(1)
			time.Sleep(time.Millisecond)
			x.end(1, err)
			return from.Path
		}
		bad := errors.New("bad")
		require.Equal(t, "a", use(bad))
		for range 20 {
			require.Equal(t, "b", use(nil))
		}
		require.Equal(t, "b", use(bad))
		require.Equal(t, "a", use(bad), "both rest")
		time.Sleep(laneRests)
		seen := map[string]bool{}
		for range 20 {
			seen[use(nil)] = true
		}
		require.Contains(t, seen, "a")
	})
}

// TestLaneRestsOnce: of many reads that fail together, the first says so.
func TestLaneRestsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, x := newLanes().choose(copies("a", "b"), 1)
		x.begin(1)
		x.begin(1)
		require.True(t, x.end(1, errModelClosed))
		require.False(t, x.end(1, errModelClosed))
		require.Zero(t, x.underWay)
		from, none := newLanes().choose(copies("a"), 1)
		require.Nil(t, none)
		require.Equal(t, "a", from.Path)
		require.False(t, none.end(1, errModelClosed))
	})
}
