package divergence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestKnown: of two tokens with probabilities known, all figures are.
func TestKnown(t *testing.T) {
	logits := func(p float64) []float32 { return []float32{float32(math.Log(p)) + 3, float32(math.Log(1-p)) + 3} }
	var s Sum
	s.Add(logits(0.5), logits(0.75), 0)
	s.EndChunk()
	s.Add(logits(0.25), logits(0.75), 1)
	s.EndChunk()
	s.EndChunk() // nothing was in it
	r := s.Result()
	kl := []float64{0.75*math.Log(0.75/0.5) + 0.25*math.Log(0.25/0.5), 0.75*math.Log(0.75/0.25) + 0.25*math.Log(0.25/0.75)}
	require.InEpsilon(t, math.Exp(-(math.Log(0.5)+math.Log(0.75))/2), r.PPL, 1e-6)
	require.InEpsilon(t, math.Exp(-(math.Log(0.75)+math.Log(0.25))/2), r.Against, 1e-6)
	require.InEpsilon(t, r.PPL/r.Against, r.Ratio, 1e-9)
	require.InEpsilon(t, (kl[0]+kl[1])/2, r.KLMean, 1e-6)
	require.InEpsilon(t, kl[0], r.KLMedian, 0.006)
	require.InEpsilon(t, kl[1], r.KLP999, 0.006)
	require.InDelta(t, 0.5, r.SameTop, 1e-9, "of equals the lower one counts")
	a, b := math.Log(0.75/0.5), math.Log(0.25/0.75)
	require.InEpsilon(t, math.Abs(a-b)/2, r.RatioErr, 1e-6)
	require.Equal(t, 2, s.Positions())
	require.Equal(t, Result{}, (&Sum{}).Result())
}

// TestSame: a run differs in nothing from itself.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-40, 40), 2, 50).Draw(t, "logits")
		var s Sum
		for range 3 {
			s.Add(logits, logits, 1)
			s.EndChunk()
		}
		r := s.Result()
		require.InDelta(t, 0, r.KLMean, 1e-12)
		require.Equal(t, []float64{1, 1, 0}, []float64{r.Ratio, r.SameTop, r.RatioErr})
		require.InDelta(t, 0, r.KLP999, 1e-12)
	})
}

// TestQuantiles: those of the histogram are those of the sorted numbers.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []float64
	for range 5000 {
		x := math.Exp(rng.NormFloat64()*3 - 8)
		all = append(all, x)
		h.add(x)
	}
	slices.Sort(all)
	for _, share := range []float64{0.001, 0.5, 0.9, 0.999, 1} {
		require.InEpsilon(t, all[int(math.Ceil(share*5000))-1], h.quantile(share), 0.006, share)
	}
	for range 10000 {
		h.add(0)
	}
	require.Zero(t, h.quantile(0.5))
	h = histogram{}
	h.add(1e300)
	require.Greater(t, h.quantile(0.5), 200.0)
}
