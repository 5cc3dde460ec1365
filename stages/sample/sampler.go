package sample

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// State is the state that a sequence carries from token to token besides its tokens. The zero value starts a
// sequence.
type State struct {
	Drift float64 // mirostat's bound on surprise, less its start of 2·Tau, in bits
}

// Result is a chosen token with its log-probability.
type Result struct {
	ID    int32
	State State // for the next token

	// LogProb is a log-probability of the model's own distribution: the softmax of the logits before bias, penalties
	// and temperature, as llama.cpp's server reports it. It is set if Params.LogProbs asks for it.
	LogProb float32
	Top     []TokenProb // likeliest first, without those of probability 0; the receiver's to keep
}

// TokenProb is a token with its log-probability.
type TokenProb struct {
	ID      int32
	LogProb float32
}

// Sampler holds scratch memory for one vocabulary; all other state is in arguments and results. It is for one
// goroutine at a time. After its first call with a size of history it allocates nothing, except for
// log-probabilities.
type Sampler struct {
	vocab      int
	logits     []float32 // the row after bias and penalties; only if there are any
	tally      []int32   // by token; zero between uses
	tallied    []int32   // tokens with a tally
	overlap    []int32   // by position in DRY's window
	candidates candidates
	told       *Choice // what is told of the stages; nil: nobody wants to know
}

// NewSampler makes a sampler for rows of vocab logits. Memory is taken when it is first needed.
func NewSampler(vocab int) *Sampler { return &Sampler{vocab: vocab} }

// Sample chooses the token that follows history, which is the whole sequence: prompt and generated tokens. logits has
// one entry for each token of the vocabulary and is not modified. p must have passed Check. A row with NaN, +Inf or
// only −Inf is an error.
func (s *Sampler) Sample(logits []float32, p *Params, history []int32, st State) (Result, error) {
	return s.SampleAmong(nil, logits, p, history, st)
}

// SampleAmong is Sample among allowed tokens: a bit for each, 0 for tokens beyond the end. nil allows all.
func (s *Sampler) SampleAmong(
	allowed []uint64, logits []float32, p *Params, history []int32, st State,
) (Result, error) {
	if len(logits) != s.vocab {
		return Result{}, fmt.Errorf("%d logits: want %d, one for each token of the vocabulary", len(logits), s.vocab)
	}
	if s.vocab > backend.MaxDrawn {
		return Result{}, fmt.Errorf("%d tokens: a draw is among at most %d", s.vocab, backend.MaxDrawn)
	}
	best, err := likeliest(logits)
	if err != nil {
		return Result{}, err
	}
	row := logits
	if adjusts := p.adjusts(); adjusts || allowed != nil {
		row = s.adjust(logits, p, history)
		if adjusts {
			s.tellRow(Penalties, 0, row)
		}
		if allowed != nil {
			mask(row, allowed)
			s.tellRow(Form, float64(count(allowed)), row)
		}
		if adjusts || !allows(allowed, best) { // else the likeliest of all is that of those allowed
			if best, err = likeliest(row); err != nil {
				return Result{}, fmt.Errorf("after logit bias and penalties: %w", err)
			}
		}
	}
	r := Result{ID: best, State: st}
	d := draws{seed: p.Seed, position: uint64(len(history))}
	switch {
	case p.Temp <= 0:
	case p.Mirostat == 2:
		r.ID, r.State.Drift = s.mirostat(row, p, st.Drift, d)
	default:
		r.ID = s.chain(row, p, d)
	}
	if p.LogProbs >= 0 {
		s.logProbs(logits, p.LogProbs, &r)
	}
	return r, nil
}

// chain runs the truncating samplers, temperature and the draw.
func (s *Sampler) chain(row []float32, p *Params, d draws) int32 {
	c := &s.candidates
	floor := sigmaFloor(row, float64(p.TopNSigma))
	if s.told != nil && p.TopNSigma > 0 {
		c.fill(row, floor, 0)
		s.tell(TopNSigma, true, float64(p.TopNSigma), 1)
	}
	c.fill(row, floor, p.TopK)
	s.tell(TopK, p.TopK > 0, float64(p.TopK), 1)
	c.typical(p.TypicalP, p.MinKeep)
	s.tell(TypicalP, p.TypicalP < 1, float64(p.TypicalP), 1)
	c.topP(p.TopP, p.MinKeep)
	s.tell(TopP, p.TopP < 1, float64(p.TopP), 1)
	c.minP(p.MinP, p.MinKeep)
	s.tell(MinP, p.MinP > 0, float64(p.MinP), 1)
	if d.uniform(drawXTC) < float64(p.XTCProbability) {
		c.xtc(p.XTCThreshold, p.MinKeep)
		s.tell(XTC, p.XTCThreshold <= 0.5, float64(p.XTCThreshold), 1)
	}
	temp := c.temperature(p)
	s.tell(Temperature, true, temp, temp)
	return c.draw(temp, d).id
}

// mirostat chooses among the tokens whose surprise, −log₂ p, is at most µ = 2·Tau + drift, and moves µ towards the
// target surprise. Source: Basu et al., arXiv:2007.14966, algorithm 2; as in llama.cpp, temperature comes first and
// the surprise is taken after truncation.
func (s *Sampler) mirostat(row []float32, p *Params, drift float64, d draws) (int32, float64) {
	c := &s.candidates
	c.fill(row, math.Inf(-1), 0)
	c.weigh(float64(p.Temp))
	tau := float64(p.Tau)
	c.surprising(2*tau + drift)
	s.tell(Mirostat, true, 2*tau+drift, float64(p.Temp))
	total := c.total()
	x := c.pick(d.below(total))
	surprise := -log(float64(x.weight)/float64(total)) / math.Ln2
	return x.id, drift - float64(float64(p.Eta)*(surprise-tau))
}

// likeliest returns the token with the largest logit, the lower id of equal ones. NaN, +Inf and a row of only −Inf
// are errors.
func likeliest(logits []float32) (int32, error) {
	best, top := -1, float32(math.Inf(-1))
	for i, x := range logits {
		if x > top {
			best, top = i, x
		} else if x != x {
			return 0, fmt.Errorf("logits hold NaN at id %d: the weights or the computation are broken", i)
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("no logit of %d is above -Inf: no token is allowed", len(logits))
	}
	if top > math.MaxFloat32 {
		return 0, fmt.Errorf("logits hold +Inf at id %d: the weights or the computation are broken", best)
	}
	return int32(best), nil
}

// logProbs sets the log-probability of the chosen token and the n likeliest ones.
func (s *Sampler) logProbs(logits []float32, n int, r *Result) {
	norm := normOf(logits)
	r.LogProb = float32(float64(logits[r.ID]) - norm)
	if n == 0 {
		return
	}
	c := &s.candidates
	c.fill(logits, math.Inf(-1), n)
	r.Top = make([]TokenProb, len(c.list))
	for i, x := range c.list {
		r.Top[i] = TokenProb{ID: x.id, LogProb: float32(float64(x.logit) - norm)}
	}
}

// normOf returns the norm of a row's probabilities: log p = logit − norm.
func normOf(row []float32) float64 {
	best, sum := float64(slices.Max(row)), 0.0
	for _, x := range row {
		sum += exp(float64(x) - best)
	}
	return best + log(sum)
}
