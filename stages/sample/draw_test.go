package sample

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
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

// The bits that a seed stands for are part of the product: recorded tokens must come again on any machine, after
// any change.
func TestBitsNeverChange(t *testing.T) {
	require.Equal(t, 0.7978145444684147, draws{7, 9}.uniform(drawToken))
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
