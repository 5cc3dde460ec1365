package speculate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// coin guesses the tokens of an answer of zeros: each is right so often, if those before it are.
type coin struct {
	right float64
	rand  *rand.Rand
}

func (c *coin) Guess(_ []int32, n int, out []int32) ([]int32, Trust) {
	for range n {
		token := int32(0)
		if c.rand.Float64() >= c.right {
			token = 1
		}
		out = append(out, token)
	}
	return out, Some
}

// measured is a clock that knows what steps without guesses cost.
func measured(s Shape) *Clock {
	c := NewClock(s)
	for range leastPlain {
		c.Observe(1, 0, time.Second)
	}
	return c
}

// device is what steps cost, in seconds.
type device func(rows int) float64

// play answers with guesses until a device has spent a time, and returns how many times as many tokens that are as
// without guesses. Others have so many rows in each step; noise is the part of a step's time by which it is off.
func play(a *Adaptive, c *Clock, d device, others int, noise float64, until float64) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	text, spent, steps := []int32{0}, 0.0, 0
	for spent < until {
		guesses := a.Propose(text, MostGuesses, nil)
		accepted := 0
		for accepted < len(guesses) && guesses[accepted] == 0 {
			accepted++
		}
		a.Settle(len(guesses), accepted)
		took := d(1+others+len(guesses)) * (1 + noise*(2*r.Float64()-1))
		spent += took
		steps++
		c.Observe(1+others+len(guesses), len(guesses), time.Duration(took*float64(time.Second)))
		text = append(text, make([]int32, accepted+1)...)
	}
	tokens := float64(len(text)-1+others*steps) / float64(others+1)
	return tokens / (spent / d(1+others))
}

func linear(each float64) device {
	return func(rows int) float64 { return 0.01 * (1 + each*float64(rows-1)) }
}

// The length is near the best one, whatever the device and however often guesses are right; where none is worth it,
// next to nothing is lost.
func TestLengthIsNearTheBest(t *testing.T) {
	devices := map[string]device{
		"a processor": linear(0.025), "a card": linear(0.2), "a slow one": linear(0.9),
		"streamed": linear(0), "by fours": func(rows int) float64 { return 0.01 * float64((rows+3)/4) },
	}
	for name, d := range devices {
		for _, right := range []float64{0, 0.1, 0.3, 0.5, 0.7, 0.9, 1} {
			for _, others := range []int{0, 3} {
				for _, noise := range []float64{0, 0.3} {
					t.Run(fmt.Sprint(name, right, others, noise), func(t *testing.T) {
						best := 1.0
						for k := 1; k <= MostGuesses; k++ {
							tokens := (float64(others) + Expected(right, k)) / float64(others+1)
							best = max(best, tokens/(d(1+others+k)/d(1+others)))
						}
						clock := NewClock(Shape{Fixed: 1, Row: 0.1})
						a := NewAdaptive(&coin{right, rand.New(rand.NewPCG(3, 4))}, clock, nil)
						got := play(a, clock, d, others, noise, 30)
						require.Greater(t, got, 0.98)
						require.Greater(t, got, (0.9-noise/2)*best, "best is %.2f", best)
					})
				}
			}
		}
	}
}

// What was not worth it is noticed when it is, and the other way round.
func TestLooksAgain(t *testing.T) {
	clock := NewClock(Shape{Fixed: 1, Row: 0.1})
	from := &coin{0, rand.New(rand.NewPCG(3, 4))}
	a := NewAdaptive(from, clock, nil)
	require.Greater(t, play(a, clock, linear(0.2), 0, 0, 30), 0.98)
	from.right = 0.9
	play(a, clock, linear(0.2), 0, 0, 6)
	require.Greater(t, play(a, clock, linear(0.2), 0, 0, 30), 1.7)
	from.right = 0
	require.Greater(t, play(a, clock, linear(0.2), 0, 0, 30), 0.97)
}

// A mixture whose experts are streamed is not even tried, a dense model that is streamed always is.
func TestShapesBeforeAnyGuess(t *testing.T) {
	text := []int32{0}
	length := func(s Shape) int {
		a := NewAdaptive(&coin{1, rand.New(rand.NewPCG(3, 4))}, measured(s), nil)
		return len(a.Propose(text, MostGuesses, nil))
	}
	require.Zero(t, length(Shape{Fixed: 0.05, Experts: 1 / 0.0625, Count: 128, Used: 8}))
	require.LessOrEqual(t, 7, length(Shape{Fixed: 1, Row: 0.005}))
	require.Equal(t, MostGuesses, length(Shape{}))
}

// Where rows of right guesses are computed again that is counted, too.
func TestRowsAgain(t *testing.T) {
	length := func(again bool, right, row float64) int {
		a := NewAdaptive(&coin{1, rand.New(rand.NewPCG(3, 4))}, measured(Shape{Fixed: 1, Row: row}), nil)
		a.Again = again
		for range 9 {
			a.known[Some].weigh(9*right, 9*(1-right))
		}
		return len(a.Propose([]int32{0}, MostGuesses, nil))
	}
	require.Greater(t, length(false, 0.9, 0.5), length(true, 0.9, 0.5))
	require.Positive(t, length(true, 0.9, 0.05))
	require.Zero(t, length(true, 0.9, 3))
	require.Positive(t, length(false, 0.9, 3))
}

// No more is proposed than there is room for, and the same however often it is asked.
func TestProposesWhatItIsReadyFor(t *testing.T) {
	a := NewAdaptive(NewNGram([]int32{1, 2, 3, 4, 1, 2}, 6), measured(Shape{}), nil)
	text := []int32{1, 2, 3, 4, 1, 2}
	require.True(t, a.Ready(text))
	require.Equal(t, []int32{9, 3, 4}, a.Propose(text, 2, []int32{9}))
	require.Equal(t, []int32{3, 4, 1, 2, 3, 4, 1, 2, 3, 4}, a.Propose(text, 10, nil))
	require.False(t, a.Ready([]int32{1, 2, 3, 4, 1, 2, 9}))
}

// Law NoAlloc, for guesses.
func TestGuessesDoNotAllocate(t *testing.T) {
	text := make([]int32, 0, 2000)
	for i := range cap(text) {
		text = append(text, int32(i%97))
	}
	clock := NewClock(Shape{Fixed: 1, Row: 0.1})
	a := NewAdaptive(NewPredicted(text[500:600], 100, NewNGram(text[:100], 2000)), clock, nil)
	out, n := make([]int32, 0, 8), 100
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		out = a.Propose(text[:n], 8, out[:0])
		a.Settle(len(out), len(out)/2)
		clock.Observe(1+len(out), len(out), time.Millisecond)
		n++
	}))
}

// BenchmarkNGram is what a token costs, of a text that repeats itself at many places.
func BenchmarkNGram(b *testing.B) {
	text := make([]int32, 32<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range text {
		text[i] = r.Int32N(8)
	}
	var out []int32
	for n := range b.N {
		if n%len(text) == 0 {
			b.StopTimer()
			g = NewNGram(text[:1], len(text))
			b.StartTimer()
		}
		out, _ = g.Guess(text[:n%len(text)+1], MostGuesses, out[:0])
	}
}

var g *NGram

// tryZeros has tokens guessed after a text, and those accepted that are zeros up to the first that is none.
func tryZeros(a *Adaptive, text []int32) (tried, accepted int) {
	guesses := a.Propose(text, MostGuesses, nil)
	for accepted < len(guesses) && guesses[accepted] == 0 {
		accepted++
	}
	a.Settle(len(guesses), accepted)
	return len(guesses), accepted
}

// playTogether has several sequences answer in common steps, each with guesses of its own, and returns how many times
// as many tokens that gives as none would. held is how often a step is held up, by up to nine times its own.
func playTogether(n int, right, held float64, d device, until float64) float64 {
	r := rand.New(rand.NewPCG(5, 6))
	clock := NewClock(Shape{Fixed: 1, Row: 0.1})
	all, texts := make([]*Adaptive, n), make([][]int32, n)
	for i := range all {
		all[i] = NewAdaptive(&coin{right, rand.New(rand.NewPCG(3, uint64(i)))}, clock, nil)
		texts[i] = []int32{0}
	}
	spent, tokens := 0.0, 0
	for spent < until {
		guessed := 0
		for i, a := range all {
			tried, accepted := tryZeros(a, texts[i])
			guessed += tried
			tokens += accepted + 1
			texts[i] = append(texts[i], make([]int32, accepted+1)...)
		}
		took := d(n + guessed)
		spent += took
		if r.Float64() < held {
			took *= 1 + 9*r.Float64()
		}
		clock.Observe(n+guessed, guessed, time.Duration(took*float64(time.Second)))
	}
	return float64(tokens) / float64(n) * d(n) / spent
}

// Sequences that guess together lose next to nothing where rows are dear, also on a machine that does other work: where
// three steps of ten are held up, by as long as they take up to nine times, or six.
func TestTogetherNothingIsLost(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		for _, right := range []float64{0.1, 0.4, 0.7} {
			for held, least := range map[float64]float64{0: 0.98, 0.3: 0.98, 0.6: 0.88} {
				got := playTogether(n, right, held, linear(0.43), 15)
				require.Greater(t, got, least, "%d sequences, %.1f right, %.1f held up", n, right, held)
			}
		}
		require.Greater(t, playTogether(n, 0.98, 0.3, linear(0.1), 15), 1.3, "%d sequences", n)
	}
}
