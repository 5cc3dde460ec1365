package exec

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestShares: the time between two timestamps is divided as that of the last step that was timed in full, whatever
// their bits and wherever these run over; no time is lost, and none is told twice.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &clock{tick: rapid.SampledFrom([]float64{1, 10, 52.08}).Draw(t, "tick"),
			bits: rapid.SampledFrom([]uint32{32, 36, 64}).Draw(t, "bits")}
		mask := ^uint64(0) >> (64 - k.bits)
		took := rapid.SliceOfN(rapid.Uint64Range(0, 1<<20), 2, 9).Draw(t, "took")
		var all uint64
		begin := rapid.Uint64().Draw(t, "begin")
		ticks := []uint64{begin & mask}
		for _, n := range took {
			all += n
			ticks = append(ticks, (begin+all)&mask)
		}
		s := &shares{}
		if rapid.Bool().Draw(t, "known") {
			s.learn(k, ticks)
		}
		times := rapid.Uint64Range(1, 16).Draw(t, "times") // as long
		first := rapid.Uint64().Draw(t, "first")
		got := s.divide(nil, k, first&mask, (first+all*times)&mask, len(took))
		require.Len(t, got, len(took)+1)
		require.Equal(t, first&mask, got[0])
		require.Equal(t, (first+all*times)&mask, got[len(took)])
		for i, n := range took {
			want := float64(n * times)
			if s.ends == nil {
				want = float64(all*times) / float64(len(took))
			}
			require.InDelta(t, want, float64(k.between(got[i], got[i+1])), 2+2*float64(times)/k.tick, "segment %d", i)
		}
	})
}

// TestSharesDue: one step of each sixteen is timed in full, the first one too.
func TestSharesDue(t *testing.T) {
	s, due := &shares{}, []int{}
	for i := range 40 {
		if s.due() {
			due = append(due, i)
		}
	}
	require.Equal(t, []int{0, 16, 32}, due)
}
