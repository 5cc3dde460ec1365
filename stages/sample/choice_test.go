package sample

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the parameters, who wants to know how a token was chosen gets the token that others get, and stages that
// follow from each other: each leaves no more tokens than the one before, shares sum to 1, and the token is there to
// the end.
func TestExplain(t *testing.T) {
	const vocab = 200
	all := []func(*Params){
		func(*Params) {},
		func(p *Params) { p.Temp = 0 },
		func(p *Params) { p.RepeatPenalty, p.TopNSigma, p.TypicalP = 1.5, 3, 0.8 },
		func(p *Params) { p.XTCProbability, p.XTCThreshold, p.DynTempRange = 1, 0.02, 0.5 },
		func(p *Params) { p.Mirostat = 2 },
		func(p *Params) { p.TopK, p.TopP, p.MinP = 0, 1, 0 },
	}
	s, plain := NewSampler(vocab), NewSampler(vocab)
	allowed := []uint64{0, 1<<63 - 1<<5, 1}
	for i, edit := range all {
		for seed := range uint64(20) {
			p := Defaults()
			p.Seed, p.Temp = seed, 1.5
			edit(&p)
			var mask []uint64
			if seed%2 == 1 {
				mask = allowed
			}
			row, history := noise(vocab, seed), []int32{3, 70, 3}
			want, err := plain.SampleAmong(mask, row, &p, history, State{Drift: 0.5})
			require.NoError(t, err)
			got, c, err := s.Explain(mask, row, &p, history, State{Drift: 0.5})
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, want.ID, c.ID)
			require.Equal(t, 3, c.Position)
			require.Equal(t, Logits, c.Stages[0].Of)
			for j, x := range c.Stages {
				require.NotNil(t, x.Chosen, "%d: %s has removed it", i, x.Of)
				require.InDelta(t, x.Top[0].Share, shareOf(t, x.Top[0], x.Top), 1e-9)
				if j > 0 {
					require.Greater(t, x.Of, c.Stages[j-1].Of)
					require.LessOrEqual(t, x.Left, c.Stages[j-1].Left)
				}
				if x.Of == Form {
					require.Equal(t, 59.0, x.Value)
					require.Equal(t, 59, x.Left)
				}
			}
		}
	}
	_, _, err := s.Explain(nil, make([]float32, 3), &Params{}, nil, State{})
	require.ErrorContains(t, err, "3 logits")
	require.Nil(t, s.told)
}

// shareOf checks that shares are what a list's order says, and returns that of one.
func shareOf(t *testing.T, of Candidate, top []Candidate) float64 {
	sum := 0.0
	for i, x := range top {
		sum += x.Share
		if i > 0 {
			require.LessOrEqual(t, x.Share, top[i-1].Share)
			require.LessOrEqual(t, x.Logit, top[i-1].Logit)
		}
	}
	require.LessOrEqual(t, sum, 1+1e-9)
	return of.Share
}

// Stages that are on are told in their order, with what they leave.
func TestStages(t *testing.T) {
	p := Defaults()
	p.TopK, p.TopP, p.MinP, p.TopNSigma, p.TypicalP = 4, 0.9, 0.01, 50, 0.999
	row := logsOf(0.5, 0.2, 0.1, 0.1, 0.06, 0.04)
	_, c, err := NewSampler(len(row)).Explain(nil, row, &p, nil, State{})
	require.NoError(t, err)
	var names []string
	var left []int
	for _, x := range c.Stages {
		names, left = append(names, x.Of.String()), append(left, x.Left)
	}
	require.Equal(t, []string{"logits", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "temperature"}, names)
	require.Equal(t, []int{6, 6, 4, 4, 4, 4, 4}, left)
	require.InDelta(t, 0.5, c.Stages[0].Top[0].Share, 1e-6)
	require.InDelta(t, 0.5/0.9, c.Stages[2].Top[0].Share, 1e-6)
	require.InDelta(t, 0.8, c.Stages[6].Value, 1e-6)
	require.Greater(t, c.Stages[6].Top[0].Share, 0.5/0.9, "a temperature below 1 favours the likeliest")
	require.Equal(t, "stage 99", StageKind(99).String())
}

// Parameters come back from JSON as they were, with what JSON has no words for.
func TestParamsInJSON(t *testing.T) {
	p := Defaults()
	p.Bias = []Bias{{ID: 3, Add: 1.5}, {ID: 4, Add: float32(math.Inf(-1))}, {ID: 5}}
	p.DRY.Breakers = NewBreakers([][]int32{{9}, {2, 5, 6}, {2, 5}})
	text, err := json.Marshal(&p)
	require.NoError(t, err)
	require.Contains(t, string(text), `[[2,5],[2,5,6],[9]]`)
	var again Params
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, p.Bias, again.Bias)
	for _, tail := range [][]int32{{2, 5, 6}, {2, 5}, {9, 1}, {2, 6}} {
		require.Equal(t, p.DRY.Breakers.at(tail), again.DRY.Breakers.at(tail))
	}
	require.Error(t, json.Unmarshal([]byte(`{"Bias":[{"ID":"x"}],"DRY":{"Breakers":[["y"]]}}`), &again))
}
