package exchange

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// forced is how many collections the program has asked for.
func forced() uint64 {
	s := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

var garbage [][]byte

// TestTidy: what many small requests leave behind together goes back to the system soon after the last of them, and who
// leaves little has nobody collect.
func TestTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewIntake(1<<20, 1<<20, time.Second)
		in.tidied = heap()
		look := func() (collections uint64) {
			before := forced()
			in.tidy()
			time.Sleep(again + soon)
			return forced() - before
		}
		require.Zero(t, look())
		for range 1000 {
			garbage = append(garbage, make([]byte, 100<<10))
			in.tidy()
		}
		full := heap()
		garbage = nil
		require.EqualValues(t, 1, look())
		require.Less(t, heap(), full-80<<20)
		require.Zero(t, look())
		for range 100 { // no more often than that
			garbage = append(garbage, make([]byte, 1<<20))
		}
		before := forced()
		for range 10 {
			in.tidy()
			time.Sleep(soon / 2)
			garbage = append(garbage, make([]byte, 40<<20))
		}
		require.LessOrEqual(t, forced()-before, uint64(2))
		garbage = nil
		time.Sleep(again + soon)
		runtime.GC()
	})
}
