package trace

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func after(n int) time.Time { return time.Unix(1000, int64(n)) }

// TestSnapshot: the last spans are there, oldest first, with the sums of all of them.
func TestSnapshot(t *testing.T) {
	r := New(4, after(0))
	require.Empty(t, r.Snapshot(nil))
	device, kv := r.Track("device"), r.Track("kv")
	for n := 1; n <= 3; n++ {
		device.Record(Mix, OfSegment(uint64(n), 2*n, n), after(10*n), after(10*n+1), after(10*n+5))
		kv.Record(Blocks, Nothing(), after(10*n), after(10*n+2), after(10*n+9))
	}
	require.Equal(t, []Span{
		{"device", Mix, Unknown, Of{2, 4, 2, -1}, 21, 1, 4}, {"kv", Blocks, Unknown, Nothing(), 22, 2, 7},
		{"device", Mix, Unknown, Of{3, 6, 3, -1}, 31, 1, 4}, {"kv", Blocks, Unknown, Nothing(), 32, 2, 7},
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
				track.Record(Kind(w), Of{uint64(x), x % 60000, w, x}, after(x-w), after(x), after(2*x))
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
				of := Of{uint64(x), x % 60000, w, x}
				want := Span{strconv.Itoa(w), Kind(w), Unknown, of, time.Duration(x), time.Duration(w), time.Duration(x)}
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
	require.LessOrEqual(t, r.Lost(), uint64(writers*each/2), "a cell is seldom in two hands")
}

// TestBusyCell: who finds a cell in another writer's hands goes on, and the span is counted as lost.
func TestBusyCell(t *testing.T) {
	r := New(1, after(0))
	track := r.Track("a")
	r.cells[0].turn.Store(1)
	track.Record(Step, OfStep(7), after(1), after(2), after(3))
	require.EqualValues(t, 1, r.Lost())
	require.Empty(t, r.Snapshot(nil))
	r.cells[0].turn.Store(2 * 9) // by one who came later and was faster
	track.Record(Step, OfStep(8), after(1), after(2), after(3))
	require.EqualValues(t, 2, r.Lost())
	r.cells[0].turn.Store(2*1 + 3) // by a reader of the span before
	track.Record(Step, OfStep(9), after(1), after(2), after(3))
	require.EqualValues(t, 3, r.Lost())
}

// TestReadersTakeTurns: no reader misses a span because another one looks at it, and reading changes nothing.
func TestReadersTakeTurns(t *testing.T) {
	r := New(64, after(0))
	track := r.Track("a")
	for n := range 64 {
		track.Record(Step, OfStep(uint64(n)), after(n), after(n), after(n+1))
	}
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for range 500 {
				if n := len(r.Snapshot(nil)); n != 64 {
					t.Errorf("%d spans", n)
					return
				}
			}
		})
	}
	reading.Wait()
	track.Record(Step, OfStep(64), after(64), after(64), after(65))
	require.Len(t, r.Snapshot(nil), 64)
	require.Zero(t, r.Lost())
}

func TestRecordAllocatesNothing(t *testing.T) {
	track := New(8, after(0)).Track("a")
	require.Zero(t, testing.AllocsPerRun(100, func() { track.Record(Step, OfStep(1), after(1), after(2), after(3)) }))
}

func TestKinds(t *testing.T) {
	for k := range kinds {
		require.NotContains(t, []string{"", "?"}, k.String())
	}
	require.Equal(t, "?", fmt.Sprint(kinds))
	for c := range Causes {
		require.NotContains(t, []string{"", "?"}, c.String())
	}
	require.Equal(t, "?", fmt.Sprint(Causes))
	text, err := Disk.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "disk", string(text))
}

// TestTap: each span is taken once, in order; what went by is counted, and one that is being written is waited for.
func TestTap(t *testing.T) {
	r := New(8, after(0))
	track := r.Track("a")
	write := func(from, to int) {
		for n := from; n < to; n++ {
			track.Record(Step, OfStep(uint64(n)), after(n), after(n), after(n+1))
		}
	}
	steps := func(spans []Span) (n []uint64) {
		for _, s := range spans {
			n = append(n, s.Step)
		}
		return n
	}
	write(1, 3)
	tap := r.Tap()
	require.Empty(t, tap.Drain(nil))
	write(3, 6)
	require.Equal(t, []uint64{3, 4, 5}, steps(tap.Drain(nil)))
	write(6, 17)
	require.Equal(t, []uint64{9, 10, 11, 12, 13, 14, 15, 16}, steps(tap.Drain(nil)))
	require.EqualValues(t, 3, tap.Missed())

	cell := &r.cells[r.next.Load()%8]
	turn := cell.turn.Load()
	cell.turn.Store(turn | 1) // by a slow writer, a round ago: the span is lost
	write(17, 19)
	require.Empty(t, tap.Drain(nil), "the first one may still come")
	write(19, 22)
	cell.turn.Store(turn)
	require.Equal(t, []uint64{18, 19, 20, 21}, steps(tap.Drain(nil)))
	require.EqualValues(t, 4, tap.Missed())
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := Of{
			Step:    rapid.Uint64Max(1<<56-1).Draw(t, "step"),
			Segment: rapid.IntRange(-1, 1<<16-2).Draw(t, "segment"),
			Layer:   rapid.IntRange(-1, 1<<16-2).Draw(t, "layer"),
			Group:   rapid.IntRange(-1, 1<<24-2).Draw(t, "group"),
		}
		kind, cause := Kind(rapid.Uint8Max(255).Draw(t, "kind")), Cause(rapid.Uint8Max(255).Draw(t, "cause"))
		k, c, o := unpack(pack(kind, cause, of))
		if k != kind || c != cause || o != of {
			t.Fatalf("%v %v %v, want %v %v %v", k, c, o, kind, cause, of)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	track := New(4096, after(0)).Track("a")
	at := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		track.Record(Step, OfStep(1), at, at, at)
	}
}
