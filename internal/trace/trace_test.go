package trace

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func after(n int) time.Time { return time.Unix(1000, int64(n)) }

// TestSnapshot: the last spans are there, oldest first, with the sums of all of them.
func TestSnapshot(t *testing.T) {
	r := New(4, after(0))
	require.Empty(t, r.Snapshot(nil))
	device, kv := r.Track("device"), r.Track("kv")
	for n := 1; n <= 3; n++ {
		device.Record(Mix, uint64(n), after(10*n), after(10*n+1), after(10*n+5))
		kv.Record(Blocks, 0, after(10*n), after(10*n+2), after(10*n+9))
	}
	require.Equal(t, []Span{
		{"device", Mix, 2, 21, 1, 4}, {"kv", Blocks, 0, 22, 2, 7},
		{"device", Mix, 3, 31, 1, 4}, {"kv", Blocks, 0, 32, 2, 7},
	}, r.Snapshot(nil))
	require.Equal(t, Total{3, 3, 12}, device.Total())
	require.Equal(t, Total{3, 6, 21}, kv.Total())
	require.EqualValues(t, 12, device.Work(Mix))
	require.Zero(t, device.Work(FFN))
	require.Zero(t, kv.Work(Mix), "of this track")
	require.Equal(t, after(0), r.Origin())
	require.Zero(t, r.Lost())
}

// TestSpansAreWhole: with many writers in a ring that is far too small, whatever a reader sees is what one of them
// wrote, and what is neither there nor overwritten was counted.
func TestSpansAreWhole(t *testing.T) {
	const writers, each = 8, 5000
	r := New(16, after(0))
	var writing sync.WaitGroup
	for w := 1; w <= writers; w++ {
		writing.Go(func() {
			track := r.Track(strconv.Itoa(w))
			for n := range each {
				x := 1000*n + w
				track.Record(Kind(w), uint64(x), after(x-w), after(x), after(2*x))
			}
			if n := track.Total().Count; n != each {
				t.Errorf("%d spans of track %d", n, w)
			}
		})
	}
	done := make(chan struct{})
	var reading sync.WaitGroup
	seen := 0
	reading.Go(func() {
		var spans []Span
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			spans = r.Snapshot(spans[:0])
			for _, s := range spans {
				seen++
				x := int(s.Step)
				w := x % 1000
				want := Span{strconv.Itoa(w), Kind(w), uint64(x), time.Duration(x), time.Duration(w), time.Duration(x)}
				if s != want {
					t.Errorf("got %+v, want %+v", s, want)
					return
				}
			}
		}
	})
	writing.Wait()
	close(done)
	reading.Wait()
	require.Positive(t, seen)
	require.LessOrEqual(t, r.Lost(), uint64(writers*each/2), "a slot is seldom in two hands")
}

// TestBusySlot: who finds a slot in another writer's hands goes on, and the span is counted as lost.
func TestBusySlot(t *testing.T) {
	r := New(1, after(0))
	track := r.Track("a")
	r.slots[0].turn.Store(1)
	track.Record(Step, 7, after(1), after(2), after(3))
	require.EqualValues(t, 1, r.Lost())
	require.Empty(t, r.Snapshot(nil))
	r.slots[0].turn.Store(2 * 9) // by one who came later and was faster
	track.Record(Step, 8, after(1), after(2), after(3))
	require.EqualValues(t, 2, r.Lost())
}

func TestRecordAllocatesNothing(t *testing.T) {
	track := New(8, after(0)).Track("a")
	require.Zero(t, testing.AllocsPerRun(100, func() { track.Record(Step, 1, after(1), after(2), after(3)) }))
}

func TestKinds(t *testing.T) {
	for k := range kinds {
		require.NotContains(t, []string{"", "?"}, k.String())
	}
	require.Equal(t, "?", fmt.Sprint(kinds))
	text, err := Disk.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "disk", string(text))
}

func BenchmarkRecord(b *testing.B) {
	track := New(4096, after(0)).Track("a")
	at := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		track.Record(Step, 1, at, at, at)
	}
}
