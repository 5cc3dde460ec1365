package promise

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/batch"
)

// traffic is made from a seed: conversations of clients, of which half of the prompts are partly
// cached, and whose answers mostly end before they have as many tokens as they may.
func traffic(seed uint64, clients, each int) (all [][]arrival) {
	r := rand.New(rand.NewPCG(seed, 3))
	for range clients {
		var one []arrival
		for range each {
			most := 16 + r.IntN(200)
			a := arrival{pause: r.ExpFloat64() * 0.5, prompt: 50 + r.IntN(2000), most: most, answer: 1 + r.IntN(2*most)}
			a.cached = a.prompt / 2 / 64 * 64 * r.IntN(2)
			one = append(one, a)
		}
		all = append(all, one)
	}
	return all
}

// How far predictions are off for requests that are promised what they were told, beside others that are not, and
// where all are. What comes after the prediction is not known: when others ask, and when their answers end.
func TestErrorsOfPredictions(t *testing.T) {
	for _, c := range []struct {
		share   float64 // of requests that are promised
		clients int
	}{{0.3, 1}, {0.3, 4}, {0.3, 16}, {0.3, 40}, {1, 4}, {1, 16}, {1, 40}} {
		if testing.Short() && c.clients > 4 {
			continue
		}
		w := newWorld(1, traffic(2, c.clients, max(int(1300-900*c.share)/c.clients, 12)))
		w.share = c.share
		w.run()
		t.Logf("%.1f promised, %2d clients: %3d answers, first token off by %.3f (median), %.3f (95 of 100), rate by %.3f, %.3f",
			c.share, c.clients, len(w.first), part(w.first, 0.5), part(w.first, 0.95), part(w.each, 0.5), part(w.each, 0.95))
		require.Less(t, part(w.first, 0.95), 0.15)
		require.Less(t, part(w.each, 0.95), 0.15)
	}
}

// loaded is a load at a known speed: a step takes 2 ms, and 0.1 ms for each row.
func loaded(seqs ...batch.Ahead) *Load {
	l := &Load{Limits: batch.Limits{Seqs: 2, Rows: 100, Wanted: 8, Beside: 100},
		Budget: batch.Budget{Rows: 100, Alone: 100, Fixed: 20}, Seqs: seqs}
	for rows := 1; rows <= 100; rows++ {
		for _, prompt := range []bool{false, true} {
			l.Speed.Observe(Shape{Rows: rows, Prompt: prompt}, 2*time.Millisecond+time.Duration(rows)*100*time.Microsecond)
		}
	}
	return l
}

func TestWhatIsPredicted(t *testing.T) {
	predict := func(l *Load, a Ask) Forecast {
		all, known := l.Predict([]Ask{a})
		require.True(t, known)
		return all[0]
	}
	near := func(want, got time.Duration) { require.InEpsilon(t, want, got, 0.02) }
	alone := predict(loaded(), Ask{Prompt: 250, Most: 50})
	near(31*time.Millisecond, alone.First) // 100, 100 and 50 rows
	near(2100*time.Microsecond, alone.Each)
	near(31*time.Millisecond+9*2100*time.Microsecond, alone.Whole(10))
	require.Equal(t, 10, alone.Within(alone.Whole(10)))
	require.Zero(t, alone.Within(30*time.Millisecond))

	near(12*time.Millisecond, predict(loaded(), Ask{Prompt: 250, Cached: 150, Most: 50}).First)
	reading := loaded(batch.Ahead{Left: 100, Answer: 1, Reading: true})
	near(43*time.Millisecond, predict(reading, Ask{Prompt: 250, Most: 9}).First)

	flying := loaded()
	flying.Flying, flying.Since = Shape{Rows: 80, Prompt: true}, 4*time.Millisecond
	near(37*time.Millisecond, predict(flying, Ask{Prompt: 250, Most: 9}).First) // 6 of 10 ms are left

	full := loaded(batch.Ahead{Client: "b", Left: 1, Answer: 40}, batch.Ahead{Client: "c", Left: 1, Answer: 40})
	waits := predict(full, Ask{Client: "a", Prompt: 100, Most: 9})
	require.Greater(t, waits.First, 80*time.Millisecond, "until one of two places is free")
	given := predict(full, Ask{Client: "a", Prompt: 100, Most: 9, Promised: true})
	require.Less(t, given.First, 30*time.Millisecond)

	var unknown Load
	_, known := unknown.Predict([]Ask{{Prompt: 1, Most: 1}})
	require.False(t, known)
}

// A prompt that is too long to be played to its end is taken to go on as it began.
func TestLongPromptsArePredicted(t *testing.T) {
	l := loaded()
	f, _ := l.Predict([]Ask{{Prompt: 1 << 20, Most: 5}})
	require.InEpsilon(t, float64(1<<20)/100*12, float64(f[0].First.Milliseconds()), 0.05)
}
