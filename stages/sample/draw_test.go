package sample

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
)

// chiSquare compares counts with what the probabilities promise.
func chiSquare(counts []int, probs []float64) (x float64) {
	n := 0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		want := float64(n) * probs[i]
		x += (float64(c) - want) * (float64(c) - want) / want
	}
	return x
}

// Tokens come as often as the distribution says: over positions of one seed, and over seeds at one position.
// With 9 degrees of freedom, 40 is passed by chance once in 100,000.
func TestDistribution(t *testing.T) {
	probs := []float64{0.3, 0.2, 0.15, 0.1, 0.08, 0.07, 0.05, 0.03, 0.015, 0.005}
	row, s := logsOf(probs...), NewSampler(len(probs))
	for _, temp := range []float64{1, 0.5} {
		want, sum := make([]float64, len(probs)), 0.0
		for i, p := range probs {
			want[i] = math.Pow(p, 1/temp)
			sum += want[i]
		}
		for i := range want {
			want[i] /= sum
		}
		positions, seeds := make([]int, len(probs)), make([]int, len(probs))
		history := make([]int32, 0, 20000)
		for i := range 20000 {
			p := plain()
			p.Temp, p.Seed = float32(temp), 42
			r, err := s.Sample(row, &p, history, State{})
			require.NoError(t, err)
			history = append(history, r.ID)
			positions[r.ID]++
			p.Seed = uint64(i)
			r, err = s.Sample(row, &p, history[:1], State{})
			require.NoError(t, err)
			seeds[r.ID]++
		}
		require.Less(t, chiSquare(positions, want), 40.0)
		require.Less(t, chiSquare(seeds, want), 40.0)
	}
}

// Neighbours in position, seed and index are independent: pairs of draws fill a 10×10 grid evenly. With 99
// degrees of freedom, 170 is passed by chance once in 100,000.
func TestDrawsAreIndependent(t *testing.T) {
	even := make([]float64, 100)
	for i := range even {
		even[i] = 0.01
	}
	for name, next := range map[string]func(draws) (draws, uint64){
		"position": func(d draws) (draws, uint64) { return draws{d.seed, d.position + 1}, drawToken },
		"seed":     func(d draws) (draws, uint64) { return draws{d.seed + 1, d.position}, drawToken },
		"index":    func(d draws) (draws, uint64) { return d, drawXTC },
		"swapped":  func(d draws) (draws, uint64) { return draws{d.position, d.seed}, drawToken },
	} {
		grid := make([]int, 100)
		for i := range uint64(50000) {
			a := draws{seed: i % 50, position: 1000 + i/50}
			b, index := next(a)
			grid[int(a.uniform(drawToken)*10)*10+int(b.uniform(index)*10)]++
		}
		require.Less(t, chiSquare(grid, even), 170.0, name)
	}
}

// A token depends on its own sequence only: a sampler shared among sequences in any order gives each the tokens
// that it gets alone.
func TestIndependentOfOthers(t *testing.T) {
	const sequences, length, vocab = 6, 25, 300
	params := func(seq int) Params {
		p := Defaults()
		p.Seed, p.Temp = uint64(seq), 1.5
		p.RepeatPenalty, p.DRY.Multiplier = 1+float32(seq%3)/10, float32(seq%2)
		p.Mirostat, p.XTCProbability = seq%4/3*2, 0.5
		p.TopK = []int{0, 40, 5}[seq%3]
		p.LogProbs = seq%3 - 1
		return p
	}
	row := func(seq, pos int) []float32 { return noise(vocab, uint64(seq*1000+pos)) }
	step := func(s *Sampler, seq int, history []int32, st State) Result {
		p := params(seq)
		r, err := s.Sample(row(seq, len(history)), &p, history, st)
		require.NoError(t, err)
		return r
	}
	var alone [sequences][]int32
	for seq := range alone {
		for st := (State{}); len(alone[seq]) < length; {
			r := step(NewSampler(vocab), seq, alone[seq], st)
			alone[seq], st = append(alone[seq], r.ID), r.State
		}
	}
	shared, random := NewSampler(vocab), rand.New(rand.NewPCG(3, 4))
	var together [sequences][]int32
	var states [sequences]State
	for range sequences * length {
		seq := random.IntN(sequences)
		for len(together[seq]) == length {
			seq = (seq + 1) % sequences
		}
		r := step(shared, seq, together[seq], states[seq])
		together[seq], states[seq] = append(together[seq], r.ID), r.State
	}
	require.Equal(t, alone, together)
}

// Log-probabilities and mirostat's drift have the same bits on any machine, after any change. Weights are pinned by
// TestDrawsNeverChange of internal/backend.
func TestBitsNeverChange(t *testing.T) {
	require.Equal(t, 0.7978145444684147, draws{7, 9}.uniform(drawToken))
	var tokens []int32
	for seed := range uint64(12) {
		p := Defaults()
		p.Seed, p.Temp = seed, 1.5
		r, err := NewSampler(300).Sample(noise(300, 1), &p, nil, State{})
		require.NoError(t, err)
		tokens = append(tokens, r.ID)
	}
	require.Equal(t, []int32{91, 113, 55, 113, 113, 113, 207, 113, 172, 113, 113, 97}, tokens)
	h := fnv.New64a()
	put := func(x float64) {
		bits := math.Float64bits(x)
		for i := range 8 {
			_, _ = h.Write([]byte{byte(bits >> (8 * i))})
		}
	}
	for i := range 20000 {
		put(exp(-float64(i) / 28.3))
		put(log(float64(i) / 977.1))
		put(pow(float64(i)/20000, 1.7))
	}
	require.Equal(t, uint64(0x383bbb781d13e9f9), h.Sum64())
}

func TestFunctions(t *testing.T) {
	for i := range 100000 {
		x := float64(i) / 141.3
		require.InEpsilon(t, math.Exp(-x), exp(-x), 0x1p-45)
		require.InDelta(t, math.Log(x+1e-9), log(x+1e-9), 1e-14)
	}
	require.Equal(t, 1.0, exp(0))
	require.Zero(t, exp(math.Inf(-1)))
	require.Zero(t, exp(-1e300))
	require.Zero(t, log(1))
	require.True(t, math.IsInf(log(0), -1))
	require.InDelta(t, -1074*math.Ln2, log(5e-324), 1e-12)
	require.Equal(t, 1.0, pow(0, 0))
	require.Zero(t, pow(0, 2))
	require.InDelta(t, math.Pow(0.3, 1.7), pow(0.3, 1.7), 1e-14)
}

// The whole chain draws as often as the softmax of float64 says, over what its definition leaves. With fewer than 40
// degrees of freedom, 90 is passed by chance once in 100,000.
func TestChainDistribution(t *testing.T) {
	row := noise(60, 5)
	for name, edit := range map[string]func(*Params){
		"top-k":       func(p *Params) { p.TopK, p.Temp = 30, 1.3 },
		"top-p":       func(p *Params) { p.TopP = 0.6 },
		"min-p":       func(p *Params) { p.MinP = 0.1 },
		"typical":     func(p *Params) { p.TypicalP = 0.5 },
		"XTC":         func(p *Params) { p.TopK, p.XTCProbability, p.XTCThreshold = 30, 1, 0.05 },
		"temperature": func(p *Params) { p.TopK, p.Temp, p.DynTempRange = 20, 1, 0.5 },
		"the default": func(p *Params) { p.TopK, p.TopP, p.MinP, p.Temp = 40, 0.95, 0.05, 0.8 },
	} {
		p := plain()
		edit(&p)
		want, sure := naiveChain(row, &p, nil, p.XTCProbability > 0)
		require.True(t, sure, name)
		require.Less(t, len(want), 41, name)
		s, seen := NewSampler(len(row)), map[int32]int{}
		const n = 20000
		for seed := range uint64(n) {
			p.Seed = seed
			r, err := s.Sample(row, &p, nil, State{})
			require.NoError(t, err)
			require.Contains(t, want, r.ID, name)
			seen[r.ID]++
		}
		x := 0.0
		for id, share := range want {
			x += (float64(seen[id]) - n*share) * (float64(seen[id]) - n*share) / (n * share)
		}
		require.Less(t, x, 90.0, name)
	}
}

// A draw depends on which candidates there are and not on their order: pick finds in any order what a walk by ids does,
// and settings that remove none change nothing.
func TestOrderIndependence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := drawLogits(t)
		p := plain()
		p.Temp, p.Seed = rapid.Float32Range(0.05, 5).Draw(t, "temp"), rapid.Uint64().Draw(t, "seed")
		s := NewSampler(len(row))
		want, err := s.Sample(row, &p, nil, State{})
		require.NoError(t, err)
		for _, edit := range []func(*Params){
			func(p *Params) { p.TopK = len(row) }, func(p *Params) { p.TopK = math.MaxInt32 },
			func(p *Params) { p.TypicalP, p.MinKeep = 0.5, len(row) }, func(p *Params) { p.TopP, p.MinKeep = 0, len(row) },
			func(p *Params) { p.MinP = math.SmallestNonzeroFloat32 },
		} {
			q := p
			edit(&q)
			got, err := s.Sample(row, &q, nil, State{})
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		var c candidates
		for id, weight := range rapid.SliceOfN(rapid.Uint64Range(0, 9), 1, 40).Draw(t, "weights") {
			c.list = append(c.list, candidate{id: int32(id * id * 2621), weight: weight})
		}
		c.list[0].weight++
		point := rapid.Uint64Range(0, c.total()-1).Draw(t, "point")
		left, by := point, 0
		for left >= c.list[by].weight {
			left -= c.list[by].weight
			by++
		}
		id := c.list[by].id
		c.list = rapid.Permutation(c.list).Draw(t, "order")
		require.Equal(t, id, c.pick(point).id)
	})
}

// Of equal tokens exactly as many stay as a share asks for: sums are exact.
func TestSharesOfEqualTokens(t *testing.T) {
	for n := 1; n <= 64; n *= 2 {
		for kept := 1; kept <= n; kept++ {
			p := plain()
			p.TopP = float32(kept) / float32(n)
			s := NewSampler(n)
			_, err := s.Sample(make([]float32, n), &p, nil, State{})
			require.NoError(t, err)
			require.Len(t, s.candidates.list, kept)
			if p.TypicalP, p.TopP = p.TopP, 1; kept < n { // more than the share, as llama.cpp has it
				_, err = s.Sample(make([]float32, n), &p, nil, State{})
				require.NoError(t, err)
				require.Len(t, s.candidates.list, kept+1)
			}
			p.TypicalP, p.MinP = 1, 1
			_, err = s.Sample(make([]float32, n), &p, nil, State{})
			require.NoError(t, err)
			require.Len(t, s.candidates.list, n)
		}
	}
}

// Every mask over a few tokens: the token is one that is allowed, and that which the row without the others gives.
func TestAllMasks(t *testing.T) {
	row := logsOf(0.3, 0.05, 0.2, 0.1, 0.15, 0.08, 0.07, 0.05)
	s := NewSampler(len(row))
	for _, temp := range []float32{0, 0.2, 1, 3} {
		for mask := range uint64(1 << len(row)) {
			p := Defaults()
			p.Temp, p.Seed = temp, mask*31
			left := slices.Clone(row)
			for i := range left {
				if mask>>i&1 == 0 {
					left[i] = float32(math.Inf(-1))
				}
			}
			want, err := s.Sample(left, &p, nil, State{})
			got, among := s.SampleAmong([]uint64{mask}, row, &p, nil, State{})
			if mask == 0 {
				require.Error(t, err)
				require.Error(t, among)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, among)
			require.Equal(t, want, got)
			require.NotZero(t, mask>>got.ID&1)
		}
	}
}

// The most tokens there may be, all alike, and the vocabularies of today: sums do not run over, and every eighth of the
// vocabulary gets its share. One token more is refused.
func TestLargestVocabulary(t *testing.T) {
	for _, vocab := range []int{262144, backend.MaxDrawn} {
		if vocab == backend.MaxDrawn && testing.Short() {
			continue
		}
		row, s, p := make([]float32, vocab), NewSampler(vocab), plain()
		_, err := s.Sample(row, &p, nil, State{})
		require.NoError(t, err)
		total := s.candidates.total()
		require.Equal(t, uint64(vocab)<<42, total)
		require.EqualValues(t, 0, s.candidates.pick(0).id)
		require.EqualValues(t, vocab-1, s.candidates.pick(total-1).id)
		require.EqualValues(t, vocab/2, s.candidates.pick(uint64(vocab/2)<<42).id)
		counts, even := make([]int, 8), slices.Repeat([]float64{1. / 8}, 8)
		for seed := range uint64(4000) {
			counts[int(draws{seed, 3}.below(total)>>42)*8/vocab]++
		}
		require.Less(t, chiSquare(counts, even), 36.0)
	}
	p := plain()
	_, err := NewSampler(backend.MaxDrawn+1).Sample(make([]float32, backend.MaxDrawn+1), &p, nil, State{})
	require.EqualError(t, err, "4194304 tokens: a draw is among at most 4194303")
}

func TestNoAlloc(t *testing.T) {
	row, s := noise(5000, 1), NewSampler(5000)
	history := make([]int32, 3000)
	for i := range history {
		history[i] = int32(i * i % 97)
	}
	everything := Defaults()
	everything.TopK, everything.TypicalP, everything.TopNSigma, everything.XTCProbability = 0, 0.9, 2, 1
	everything.DynTempRange, everything.RepeatPenalty, everything.DRY.Multiplier = 0.2, 1.1, 1
	everything.DRY.Breakers = NewBreakers([][]int32{{4}, {9, 16}})
	everything.Bias, everything.IgnoreEOG = []Bias{{ID: 3, Add: 1}}, []int32{2}
	greedy, full, mirostat := Defaults(), Defaults(), Defaults()
	greedy.Temp, full.TopK, mirostat.Mirostat, mirostat.LogProbs = 0, 0, 2, 0
	for name, p := range map[string]Params{
		"greedy": greedy, "defaults": Defaults(), "no top-k": full, "mirostat": mirostat, "everything": everything,
	} {
		require.Zero(t, testing.AllocsPerRun(10, func() {
			if _, err := s.Sample(row, &p, history, State{}); err != nil {
				t.Fatal(err)
			}
		}), name)
	}
}

func BenchmarkSample(b *testing.B) {
	const vocab = 151936
	row, s := noise(vocab, 1), NewSampler(vocab)
	history := make([]int32, 4000)
	for i := range history {
		history[i] = int32(i*7919) % vocab
	}
	run := func(name string, edit func(*Params)) {
		p := Defaults()
		edit(&p)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Sample(row, &p, history, State{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("greedy", func(p *Params) { p.Temp = 0 })
	run("defaults", func(*Params) {})
	run("penalties", func(p *Params) { p.RepeatPenalty = 1.1 })
	run("dry", func(p *Params) { p.DRY.Multiplier = 1 })
	run("logprobs", func(p *Params) { p.LogProbs = 5 })
	run("top-p alone", func(p *Params) { p.TopK, p.MinP = 0, 0 })
	run("min-p alone", func(p *Params) { p.TopK, p.TopP = 0, 1 })
	run("temperature alone", func(p *Params) { p.TopK, p.TopP, p.MinP = 0, 1, 0 })
	run("mirostat", func(p *Params) { p.Mirostat = 2 })
	run("typical alone", func(p *Params) { p.TopK, p.TypicalP = 0, 0.9 })
}

// TestLeastLogit: comparing logits with it says what comparing surprises does, beside it and far away.
func TestLeastLogit(t *testing.T) {
	finite := rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32)
	rapid.Check(t, func(t *rapid.T) {
		best := rapid.OneOf(rapid.Float32Range(-30, 30), finite).Draw(t, "best")
		most := backend.SurpriseOf(rapid.Float32Range(0, 1).Draw(t, "p"))
		least, by := leastLogit(best, most), backend.NewWeigher(best, backend.ScaleOf(1))
		near := placed(uint32(int64(place(least)) + rapid.Int64Range(-3, 3).Draw(t, "near")))
		for _, x := range []float32{least, near, best, finite.Draw(t, "any")} {
			if x <= best && !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) {
				require.Equal(t, by.Surprise(x) > most, x < least, "%v of %v, least %v", x, best, least)
			}
		}
	})
}
