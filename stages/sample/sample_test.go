package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func noneAllowed(n int) string {
	return fmt.Sprintf("no logit of %d is above -Inf: no token is allowed", n)
}

// plain has every sampler off but temperature 1.
func plain() Params {
	p := Defaults()
	p.Temp, p.TopK, p.TopP, p.MinP = 1, 0, 1, 0
	return p
}

// logsOf are the logits of given probabilities.
func logsOf(probs ...float64) []float32 {
	logits := make([]float32, len(probs))
	for i, p := range probs {
		logits[i] = float32(math.Log(p))
	}
	return logits
}

// noise is a row as a model might give it: a few large logits, many small ones.
func noise(n int, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 1))
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(random.NormFloat64() * 2.5)
	}
	return logits
}

func TestDefaults(t *testing.T) {
	p := Defaults()
	require.NoError(t, p.Check(100))
	require.False(t, p.adjusts(), "the ordinary case copies nothing")
}

func TestGreedy(t *testing.T) {
	s := NewSampler(5)
	p := Defaults()
	p.Temp, p.TypicalP, p.XTCProbability, p.XTCThreshold = 0, 0.1, 1, 0 // these would remove the likeliest
	for seed := range uint64(20) {
		p.Seed = seed
		r, err := s.Sample([]float32{1, 3, 2, 3, 0}, &p, nil, State{})
		require.NoError(t, err)
		require.EqualValues(t, 1, r.ID, "the lower of equal ones")
	}
	p.Bias = []Bias{{ID: 3, Add: 0.5}}
	r, err := s.Sample([]float32{1, 3, 2, 3, 0}, &p, nil, State{})
	require.NoError(t, err)
	require.EqualValues(t, 3, r.ID)
	p.IgnoreEOG = []int32{3, 1}
	r, err = s.Sample([]float32{1, 3, 2, 3, 0}, &p, nil, State{})
	require.NoError(t, err)
	require.EqualValues(t, 2, r.ID)
}

func TestBadLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, temp := range []float32{0, 0.8} {
		p := Defaults()
		p.Temp = temp
		for _, c := range []struct {
			logits []float32
			want   string
		}{
			{[]float32{1, 2, nan}, "logits hold NaN at id 2: the weights or the computation are broken"},
			{[]float32{nan, 2, 3}, "logits hold NaN at id 0: the weights or the computation are broken"},
			{[]float32{1, inf, nan}, "logits hold NaN at id 2: the weights or the computation are broken"},
			{[]float32{1, inf, 0}, "logits hold +Inf at id 1: the weights or the computation are broken"},
			{[]float32{-inf, -inf, -inf}, noneAllowed(3)},
			{[]float32{1, 2}, "2 logits: want 3, one for each token of the vocabulary"},
		} {
			_, err := NewSampler(3).Sample(c.logits, &p, nil, State{})
			require.EqualError(t, err, c.want)
		}
		r, err := NewSampler(3).Sample([]float32{-inf, -1000, -inf}, &p, nil, State{})
		require.NoError(t, err)
		require.EqualValues(t, 1, r.ID)
	}
}

func TestCheckNamesEveryFault(t *testing.T) {
	p := Defaults()
	p.Temp, p.TopP, p.TopK, p.Mirostat = float32(math.NaN()), 1.5, -2, 1
	p.Bias = []Bias{{ID: 100, Add: 1}, {ID: 1, Add: float32(math.Inf(1))}, {ID: 2, Add: float32(math.Inf(-1))}}
	p.IgnoreEOG = []int32{-1}
	require.EqualError(t, p.Check(100), `temperature is NaN: want 0 to 100
top_k is -2: want -1 to 2147483647
top_p is 1.5: want 0 to 1
mirostat is 1: want 0 (off) or 2
logit_bias names token 100: the model has 0 to 99
logit_bias of token 1 is +Inf: want at most 1e+06
ignored end token -1: the model has 0 to 99`)
}

// The largest logits and penalties that Check lets through stay finite.
func TestExtremes(t *testing.T) {
	p := Defaults()
	p.RepeatPenalty, p.FrequencyPenalty, p.DRY.Multiplier, p.DRY.Base = 0.01, -100, 1000, 1000
	p.Bias = []Bias{{ID: 0, Add: 1e6}}
	p.Temp = math.SmallestNonzeroFloat32
	require.NoError(t, p.Check(3))
	history := make([]int32, 500)
	for _, row := range [][]float32{
		{math.MaxFloat32, math.MaxFloat32, -math.MaxFloat32},
		{-math.MaxFloat32, -math.MaxFloat32, -math.MaxFloat32},
		{math.SmallestNonzeroFloat32, 0, float32(math.Copysign(0, -1))},
	} {
		for _, mirostat := range []int{0, 2} {
			p.Mirostat = mirostat
			r, err := NewSampler(3).Sample(row, &p, history, State{})
			require.NoError(t, err)
			require.False(t, math.IsNaN(r.State.Drift) || math.IsInf(r.State.Drift, 0))
		}
	}
}

// XTC on 0.4, 0.3, 0.2, 0.1: all that reach the threshold go, but for the last of them.
func TestXTC(t *testing.T) {
	for _, c := range []struct {
		threshold float32
		keep      int
		want      []int32
	}{
		{0.0999, 0, []int32{3}},
		{0.1999, 0, []int32{2, 3}},
		{0.2999, 0, []int32{1, 2, 3}},
		{0.3999, 0, []int32{0, 1, 2, 3}},
		{0.45, 0, []int32{0, 1, 2, 3}},
		{0.0999, 2, []int32{0, 1, 2, 3}}, // one would be left, two must be
		{0.1999, 2, []int32{2, 3}},
		{0.51, 0, []int32{0, 1, 2, 3}}, // off
	} {
		p := plain()
		p.XTCProbability, p.XTCThreshold, p.MinKeep = 1, c.threshold, c.keep
		seen := map[int32]bool{}
		for seed := range uint64(200) {
			p.Seed = seed
			r, err := NewSampler(4).Sample(logsOf(0.4, 0.3, 0.2, 0.1), &p, nil, State{})
			require.NoError(t, err)
			seen[r.ID] = true
		}
		var got []int32
		for id := range int32(4) {
			if seen[id] {
				got = append(got, id)
			}
		}
		require.Equal(t, c.want, got, "threshold %v, keep %d", c.threshold, c.keep)
	}
}

func TestXTCProbability(t *testing.T) {
	p, removed := plain(), 0
	p.XTCProbability, p.XTCThreshold = 0.25, 0.1
	s := NewSampler(2)
	for seed := range uint64(10000) {
		p.Seed = seed
		_, err := s.Sample(logsOf(0.5, 0.5), &p, nil, State{})
		require.NoError(t, err)
		removed += 2 - len(s.candidates.list)
	}
	require.InDelta(t, 2500, removed, 200)
}

// The example of DRY's authors: "a b c c b c y a b c" with a=0, b=1, c=2, y=3. "a b c" was followed by c, "b c"
// by y and "c" by b: lengths 3, 2 and 1.
func TestDRY(t *testing.T) {
	history := []int32{0, 1, 2, 2, 1, 2, 3, 0, 1, 2}
	for _, c := range []struct {
		name     string
		allowed  int
		window   int
		breakers [][]int32
		want     []float32 // penalties of a, b, c, y
	}{
		{"allowed 2", 2, -1, nil, []float32{0, 0, 2, 1}},
		{"allowed 1", 1, -1, nil, []float32{0, 1, 4, 2}},
		{"allowed 0", 0, -1, nil, []float32{1, 2, 8, 4}},
		{"allowed 3", 3, -1, nil, []float32{0, 0, 1, 0}},
		{"allowed 4", 4, -1, nil, []float32{0, 0, 0, 0}},
		{"window without the first a b c", 1, 7, nil, []float32{0, 1, 0, 2}},
		{"broken at a", 1, -1, [][]int32{{0}}, []float32{0, 1, 2, 2}},
		{"broken at b", 1, -1, [][]int32{{1}}, []float32{0, 0, 1, 1}}, // and b itself is free
		{"broken at a b", 1, -1, [][]int32{{0, 1}}, []float32{0, 1, 1, 1}},
		{"broken at the end", 1, -1, [][]int32{{2}}, []float32{0, 0, 0, 0}},
		{"broken by a sequence that is not there", 1, -1, [][]int32{{1, 3}}, []float32{0, 1, 4, 2}},
	} {
		p := plain()
		p.DRY = DRY{Multiplier: 1, Base: 2, AllowedLength: c.allowed, PenaltyLastN: c.window}
		p.DRY.Breakers = NewBreakers(c.breakers)
		row := NewSampler(4).adjust(make([]float32, 4), &p, history)
		for id, want := range c.want {
			require.InDelta(t, -want, row[id], 1e-6, "%s: token %d", c.name, id)
		}
	}
}

func TestDRYOverlapsLikeNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SliceOfN(rapid.Int32Range(0, 2), 0, 60).Draw(t, "window")
		s := NewSampler(3)
		s.overlaps(window)
		n := len(window)
		for k := 1; k < n; k++ {
			z := 0
			for k+z < n && window[n-1-z] == window[n-1-k-z] {
				z++
			}
			require.EqualValues(t, z, s.overlap[k])
		}
	})
}

func TestBreakers(t *testing.T) {
	b := NewBreakers([][]int32{{1, 2, 3}, {}, {1}, {1, 2}, {4, 5}, {1}})
	require.Equal(t, 3, b.at([]int32{1, 2, 3, 4}), "the longest")
	require.Equal(t, 2, b.at([]int32{1, 2}))
	require.Equal(t, 1, b.at([]int32{1, 4, 5}))
	require.Equal(t, 0, b.at([]int32{4}))
	require.Equal(t, 0, b.at([]int32{2, 1}))
	require.True(t, b.alone(1))
	require.False(t, b.alone(4))
	b = nil
	require.Equal(t, 0, b.at([]int32{1}))
	require.False(t, b.alone(1))
}

func TestTextBreakers(t *testing.T) {
	vocab := []string{"a", "\n", "b\n", "sto", "xst", "p", "top", "op", "stop!", "s", "t", "o"}
	encode := func(text string) (ids []int32) {
		for len(text) > 0 {
			for id := len(vocab) - 1; id >= 0; id-- { // the single letters first
				if w := vocab[id]; len(w) == 1 && text[:1] == w {
					ids = append(ids, int32(id))
				}
			}
			text = text[1:]
		}
		return ids
	}
	piece := func(id int32) []byte { return []byte(vocab[id]) }
	b := TextBreakers([]string{"\n", "", "stop"}, len(vocab), piece, encode)
	require.Equal(t, map[int32][][]int32{
		1: {{}}, 2: {{}}, 8: {{}}, // contain one
		3: {{5}},         // sto, p
		4: {{11, 5}},     // xst, o, p
		9: {{10, 11, 5}}, // s, t, o, p
	}, normal(b.tails))
}

// normal makes nil tails empty ones.
func normal(tails map[int32][][]int32) map[int32][][]int32 {
	for _, list := range tails {
		for i := range list {
			list[i] = append([]int32{}, list[i]...)
		}
	}
	return tails
}

// Probabilities 1/2, 1/4, 1/8, 1/8 have surprises of 1, 2, 3 and 3 bits.
func TestMirostat(t *testing.T) {
	row := logsOf(0.5, 0.25, 0.125, 0.125)
	for _, c := range []struct {
		tau, drift float64
		left       int
		surprise   []float64 // after truncation, by token
	}{
		{0.2, 0, 1, []float64{0}}, // µ = 0.4 would leave none
		{0.75, 0, 1, []float64{0}},
		{1.01, 0, 2, []float64{math.Log2(1.5), math.Log2(3)}},
		{1.51, 0, 4, []float64{1, 2, 3, 3}},
		{1.51, -1.5, 1, []float64{0}},
		{0.75, 1.6, 4, []float64{1, 2, 3, 3}},
	} {
		p := plain()
		p.Mirostat, p.Tau, p.Eta = 2, float32(c.tau), 0.5
		s := NewSampler(4)
		for seed := range uint64(50) {
			p.Seed = seed
			r, err := s.Sample(row, &p, nil, State{Drift: c.drift})
			require.NoError(t, err)
			require.Len(t, s.candidates.list, c.left)
			require.InDelta(t, c.drift-0.5*(c.surprise[r.ID]-c.tau), r.State.Drift, 1e-6)
		}
	}
}

// Over a long text mirostat holds the mean surprise.
func TestMirostatHoldsSurprise(t *testing.T) {
	p := plain()
	p.Mirostat, p.Tau, p.Eta = 2, 3, 0.1
	s, st, history, sum := NewSampler(2000), State{}, []int32(nil), 0.0
	for i := range 600 {
		r, err := s.Sample(noise(2000, uint64(i%7)), &p, history, st)
		require.NoError(t, err)
		history, st, sum = append(history, r.ID), r.State, sum+(st.Drift-r.State.Drift)/0.1+3
	}
	require.InDelta(t, 3, sum/600, 0.15)
}

func TestLogProbs(t *testing.T) {
	p := Defaults()
	p.Temp, p.LogProbs = 0, 2
	p.Bias = []Bias{{ID: 3, Add: 100}}
	s := NewSampler(5)
	r, err := s.Sample(append(logsOf(0.2, 0.4, 0.3, 0.1), float32(math.Inf(-1))), &p, nil, State{})
	require.NoError(t, err)
	require.EqualValues(t, 3, r.ID, "by its bias")
	require.InDelta(t, math.Log(0.1), r.LogProb, 1e-6, "but by the model's distribution")
	require.Len(t, r.Top, 2)
	require.EqualValues(t, 1, r.Top[0].ID)
	require.EqualValues(t, 2, r.Top[1].ID)
	require.InDelta(t, math.Log(0.4), r.Top[0].LogProb, 1e-6)

	p.LogProbs = 10
	r, err = s.Sample(append(logsOf(0.2, 0.4, 0.3, 0.1), float32(math.Inf(-1))), &p, nil, State{})
	require.NoError(t, err)
	require.Len(t, r.Top, 4, "none of probability 0")

	p.LogProbs = 0
	r, err = s.Sample(make([]float32, 5), &p, nil, State{})
	require.NoError(t, err)
	require.Nil(t, r.Top)
	require.InDelta(t, math.Log(0.2), r.LogProb, 1e-6)
}
