package speculate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// playDrafted has several sequences of zeros answer in common steps, each with a draft model of which a guess is right
// so often and costs each, in steps without guesses; tokens that it has missed cost it read. It returns how many times
// as many tokens that gives as without guesses.
func playDrafted(n int, right, each, read float64, d device, until float64) float64 {
	r := rand.New(rand.NewPCG(7, 8))
	clock := NewClock(Shape{Fixed: 1, Row: 0.1})
	drafts := NewDrafts(2 * each)
	all, texts, known := make([]*Adaptive, n), make([][]int32, n), make([]int, n)
	for i := range all {
		all[i], texts[i] = NewAdaptive(nil, clock, drafts), []int32{0}
	}
	spent, tokens := 0.0, 0
	for spent < until {
		most, asked, took := 0, 0, 0.0
		for i, a := range all {
			k := a.Drafts(texts[i])
			if k == 0 {
				continue
			}
			took += read * d(n) * float64(max(len(texts[i])-known[i]-1, 0))
			known[i] = len(texts[i])
			guesses := make([]int32, k)
			for j := range guesses {
				if r.Float64() >= right {
					guesses[j] = 1
				}
			}
			a.Drafted(guesses)
			most, asked = max(most, k), asked+1
		}
		if asked > 0 {
			took += each * d(n) * float64(most)
			drafts.Observe(most, asked, time.Duration(took*float64(time.Second)))
			spent += took
		}
		guessed := 0
		for i, a := range all {
			tried, accepted := tryZeros(a, texts[i])
			guessed += tried
			tokens += accepted + 1
			known[i] += min(accepted, max(tried-1, 0)) // it has computed them
			texts[i] = append(texts[i], make([]int32, accepted+1)...)
		}
		spent += d(n + guessed)
		clock.Observe(n+guessed, guessed, time.Duration(d(n+guessed)*float64(time.Second)))
	}
	return float64(tokens) / float64(n) * d(n) / spent
}

// A draft model makes as many guesses as give most, whatever they cost; where none is worth it, next to nothing is
// lost.
func TestDrafts(t *testing.T) {
	devices := map[string]device{"a processor": linear(0.025), "a card": linear(0.2), "streamed": linear(0)}
	for name, d := range devices {
		for _, right := range []float64{0, 0.3, 0.7, 0.9, 1} {
			for _, each := range []float64{0.02, 0.1, 0.3, 1} {
				for _, n := range []int{1, 4} {
					t.Run(fmt.Sprint(name, right, each, n), func(t *testing.T) {
						best := 1.0
						for k := 1; k <= MostGuesses; k++ {
							best = max(best, Expected(right, k)/(float64(k)*each+d(n+n*k)/d(n)))
						}
						got := playDrafted(n, right, each, each/20, d, 20)
						require.Greater(t, got, 0.96)
						if best > 1.3 {
							require.Greater(t, got, 0.85*best, "best is %.2f", best)
						}
					})
				}
			}
		}
	}
}

// What a text has long matched is guessed from it, and the rest by a draft model; what that did not guess, too.
func TestDraftsBesideText(t *testing.T) {
	text := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	a := NewAdaptive(NewNGram(text, 64), measured(Shape{Fixed: 1, Row: 0.1}), NewDrafts(0.1))
	a.known[Drafted].weigh(9, 1)
	require.True(t, a.Ready(text))
	require.Zero(t, a.Drafts(text), "the text says it for nothing")
	require.Equal(t, []int32{1, 2}, a.Propose(text, 2, nil))

	text = append(text, 1, 99)
	require.True(t, a.Ready(text))
	n := a.Drafts(text)
	require.Positive(t, n)
	require.Empty(t, a.Propose(text, 5, nil), "before the draft model has answered")
	a.Drafted([]int32{7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7})
	require.Zero(t, a.Drafts(text))
	require.Equal(t, []int32{7, 8}, a.Propose(text, 2, nil))
	right := a.known[Drafted].right()
	a.Settle(2, 0)
	require.Less(t, a.known[Drafted].right(), right)

	text = append(text, 4, 98)
	require.Positive(t, a.Drafts(text))
	a.Drafted(nil)
	require.False(t, a.Ready(text), "it had nothing")
	require.Empty(t, a.Propose(text, 2, nil))
}

// A new sequence begins with what others have learned.
func TestDraftsAreLearnedOfAll(t *testing.T) {
	clock, drafts := measured(Shape{Fixed: 1, Row: 0.1}), NewDrafts(0.1)
	one := NewAdaptive(nil, clock, drafts)
	require.Positive(t, one.Drafts([]int32{1}))
	one.Drafted([]int32{1, 2, 3})
	for range 20 {
		one.Settle(3, 0)
	}
	require.Zero(t, NewAdaptive(nil, clock, drafts).Drafts([]int32{1}))
}

// An answer that may end soon is no reason to read a long prompt; nor is curiosity, but now and then.
func TestDraftsReadWhenTheAnswerIsLong(t *testing.T) {
	d, clock := NewDrafts(0.1), measured(Shape{Fixed: 1})
	require.False(t, d.Reads(1000, 19, 0.02, false))
	require.True(t, d.Reads(1000, 20, 0.02, false))
	require.True(t, d.Reads(0, 0, 0.02, false))
	require.False(t, d.Reads(1000, 19, 0.02, true))
	require.True(t, d.Reads(1000, 20, 0.02, true))
	require.True(t, d.Reads(1000, 20, 0.02, true))
	require.False(t, d.Reads(1000, 20, 0.02, true), "it has looked enough")
	require.True(t, d.Reads(1000, 20, 0.02, false))
	for range 1100 {
		d.look(clock)
	}
	require.True(t, d.Reads(1000, 20, 0.02, true))
	require.False(t, d.Reads(1000, 20, 0.02, true))
	d.Lost()
	require.True(t, d.Reads(1000, 20, 0.02, true), "what was read is lost")
}

// What a draft model is to be asked, to learn of it, is still to be asked where the text has gone on meanwhile.
func TestLookOutlastsTokensInFlight(t *testing.T) {
	a, text, n := NewAdaptive(nil, measured(Shape{Fixed: 1, Row: 0.1}), NewDrafts(1)), make([]int32, 100), 1
	for ; !a.Ready(text[:n]); n++ {
		require.Less(t, n, 90)
	}
	require.True(t, a.Looks())
	require.True(t, a.Ready(text[:n+1]))
	require.Equal(t, fewGuesses, a.Drafts(text[:n+1]))
	a.Drafted(make([]int32, fewGuesses))
	require.False(t, a.Ready(text[:n+2]))
}

// Law NoAlloc, for a draft model's guesses.
func TestDraftsDoNotAllocate(t *testing.T) {
	text := make([]int32, 2000)
	clock, drafts := NewClock(Shape{Fixed: 1, Row: 0.1}), NewDrafts(0.1)
	a := NewAdaptive(nil, clock, drafts)
	out, guesses, n := make([]int32, 0, MostGuesses), make([]int32, MostGuesses), 1
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if k := a.Drafts(text[:n]); k > 0 {
			a.Drafted(guesses[:k])
			drafts.Observe(k, 1, time.Millisecond)
		}
		out = a.Propose(text[:n], MostGuesses, out[:0])
		a.Settle(len(out), len(out)/2)
		clock.Observe(1+len(out), len(out), time.Millisecond)
		n++
	}))
}

// A look is made again at once only if the draft model was ready for none of its sequences.
func TestLookOfSome(t *testing.T) {
	clock, drafts := measured(Shape{Fixed: 1, Row: 0.1}), NewDrafts(0.1)
	clock.Observe(2, 0, time.Millisecond)
	look := func(ready bool) {
		require.Equal(t, fewGuesses, drafts.look(clock))
		if !ready {
			drafts.unlooked()
		}
	}
	for drafts.wait > 1 {
		require.Zero(t, drafts.look(clock))
	}
	look(false)
	look(true)
	require.Zero(t, drafts.look(clock), "one of two was ready")
	for drafts.wait > 1 {
		require.Zero(t, drafts.look(clock))
	}
	look(false)
	look(false)
	look(true)
}
