package bill

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var began = time.Unix(1000, 0)

func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func TestPhasesOfAnAccount(t *testing.T) {
	a := Begin(began)
	a.Until(at(3), Queue)
	a.Until(at(2), Room) // before the last move
	a.Computed(at(23), &Pass{Weights: ms(4), Host: ms(1), Own: 1, Rows: 3, Fixed: 2})
	a.Sampled(at(26), 1, 3, Sampling)
	require.Equal(t, ms(3), a.Spent(Queue))
	require.Zero(t, a.Spent(Room))
	require.Equal(t, ms(4), a.Spent(Weights))
	require.Equal(t, ms(1), a.Spent(Host))
	require.Equal(t, ms(6+2), a.Spent(Others), "15 ms, of which two of five rows; 3 ms of drawing, two of three")
	require.Equal(t, ms(9), a.Spent(Compute))
	require.Equal(t, ms(1), a.Spent(Sampling))

	a.Decodes()
	a.Computed(at(30), &Pass{Weights: ms(9), Own: 1, Rows: 1})
	a.Until(at(31), Write)
	require.Equal(t, ms(4), a.Decoding(Weights), "no longer than the step")
	require.Equal(t, ms(9), a.Spent(Compute))
	require.Equal(t, ms(1), a.Spent(Write))
	require.Equal(t, ms(31), a.Sum())
}

// Whatever happens, in any order: causes sum to the time that has passed, and none is negative.
func TestCausesSumToTheTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, last := Begin(began), 0
		for range r.IntN(40) {
			if r.IntN(9) == 0 {
				a.Decodes()
			}
			to := r.IntN(1000)
			last = max(last, to)
			switch r.IntN(4) {
			case 0:
				a.Until(at(to), Cause(r.IntN(int(Causes))))
			case 1:
				a.Sampled(at(to), r.IntN(3), r.IntN(5), Grammar)
			default:
				own := r.IntN(20)
				a.Computed(at(to), &Pass{Weights: ms(r.Float64()*200 - 50), Host: ms(r.Float64() * 20), Own: own,
					Rows: own + r.IntN(50), Fixed: r.IntN(1 << 30)})
			}
		}
		require.Equal(t, at(last).Sub(began), a.Sum())
		for _, d := range a.spent {
			require.GreaterOrEqual(t, d, time.Duration(0))
		}
	}
}

func TestNobodysAccount(t *testing.T) {
	var a Bill
	a.Until(at(5), Queue)
	a.Computed(at(9), &Pass{Own: 1, Rows: 1})
	require.Equal(t, Bill{}, a)
	require.False(t, a.Begun())
}

func TestNamesOfCauses(t *testing.T) {
	seen := map[string]bool{}
	for c := range Causes {
		require.NotEmpty(t, c.String())
		require.False(t, seen[c.String()])
		seen[c.String()] = true
	}
}

func BenchmarkStep(b *testing.B) {
	a, now := Begin(began), began
	s := Pass{Own: 1, Rows: 16, Fixed: 8}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		a.Until(now, Host)
		now = now.Add(time.Microsecond)
		a.Computed(now, &s)
		now = now.Add(time.Microsecond)
		a.Sampled(now, 1, 16, Sampling)
	}
}
