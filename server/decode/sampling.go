package decode

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/sample"
)

// Limits of a request beside those that every dialect has.
const (
	maxBiases     = 4096
	maxBreakers   = 16
	AnyLength     = math.MaxInt32
	breakersBytes = 40
)

// Sampling decodes all fields that control sampling. sample.Params.Check states their bounds.
func (f Fields) Sampling(m *answer.Model) sample.Params {
	p := m.Sampling
	f.Number("temperature", 0, 100, &p.Temp)
	f.Number("dynatemp_range", 0, 100, &p.DynTempRange)
	f.Number("dynatemp_exponent", 0, 100, &p.DynTempExponent)
	f.Number("top_n_sigma", -1, 1000, &p.TopNSigma)
	f.Count("top_k", -1, AnyLength, &p.TopK)
	f.Number("top_p", 0, 1, &p.TopP)
	f.Number("min_p", 0, 1, &p.MinP)
	f.Number("typical_p", 0, 1, &p.TypicalP)
	f.Count("min_keep", 0, AnyLength, &p.MinKeep)
	f.Number("xtc_probability", 0, 1, &p.XTCProbability)
	f.Number("xtc_threshold", 0, 1, &p.XTCThreshold)
	f.Number("repeat_penalty", 0.01, 100, &p.RepeatPenalty)
	f.Number("frequency_penalty", -100, 100, &p.FrequencyPenalty)
	f.Number("presence_penalty", -100, 100, &p.PresencePenalty)
	f.Count("repeat_last_n", -1, AnyLength, &p.PenaltyLastN)
	f.Count("mirostat", 0, 2, &p.Mirostat)
	if p.Mirostat == 1 {
		f.Wrong("mirostat", "1", "0 (off) or 2")
	}
	f.Number("mirostat_tau", 0, 100, &p.Tau)
	f.Number("mirostat_eta", 0, 1, &p.Eta)
	f.dry(m, &p.DRY)
	f.seed(&p)
	f.bias(m, &p)
	return p
}

func (f Fields) dry(m *answer.Model, d *sample.DRY) {
	f.Number("dry_multiplier", 0, 1000, &d.Multiplier)
	f.Number("dry_base", 0, 1000, &d.Base)
	f.Count("dry_allowed_length", 0, AnyLength, &d.AllowedLength)
	f.Count("dry_penalty_last_n", -1, AnyLength, &d.PenaltyLastN)
	var texts []string
	f.Texts("dry_sequence_breakers", maxBreakers, breakersBytes, &texts)
	if d.Multiplier > 0 && f.Fault == nil {
		d.Breakers = m.Breakers(texts)
	}
}

// seed decodes seed, which may be any integer. Without a seed the model's own is used; without either, or if it is
// negative, a random one is drawn.
func (f Fields) seed(p *sample.Params) {
	seed := int64(-1)
	if p.Seed != 0 {
		seed = int64(p.Seed)
	}
	f.Integer("seed", math.MinInt64, math.MaxInt64, &seed)
	p.Seed = uint64(seed)
	if seed < 0 {
		p.Seed = AnySeed()
	}
}

// AnySeed draws a random seed of 32 bits: answers contain it, and clients in JavaScript return numbers of at most 53
// bits.
func AnySeed() uint64 { return uint64(rand.Uint32()) }

// bias decodes logit_bias: OpenAI's {"id": bias}, or llama.cpp's [[id, bias]], in which false bans the token.
func (f Fields) bias(m *answer.Model, p *sample.Params) {
	const want = `an object {"token id": bias} or a list [[token id, bias]] with ids of the model, and numbers or false`
	raw, ok := f.Get("logit_bias")
	if !ok {
		return
	}
	pairs, err := f.pairs(raw)
	if err != nil {
		f.Broken("logit_bias", raw, err, want)
		return
	}
	p.Bias = append([]sample.Bias(nil), p.Bias...)
	for _, pair := range pairs {
		b, ok := parseBias(pair, m.Vocab)
		if !ok {
			f.Wrong("logit_bias", raw, want)
			return
		}
		p.Bias = append(p.Bias, b)
	}
	slices.SortFunc(p.Bias, func(a, b sample.Bias) int { // float sums of one token's biases depend on it
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Add, b.Add))
	})
}

// pairs returns the ids and biases of either form as text. If an object has a key twice, its last value counts.
func (f Fields) pairs(raw string) (all [][2]string, err error) {
	r := f.Reader(raw)
	add := func(pair ...string) error {
		if len(all) == maxBiases {
			f.Fault = wire.Invalid("logit_bias", "invalid_value", "logit_bias has more than %d entries: want fewer", maxBiases)
		}
		if f.Fault != nil || len(pair) != 2 {
			return errPair
		}
		all = append(all, [2]string(pair))
		return nil
	}
	if r.Next() == '{' {
		at := map[string]int{}
		return all, r.Object(func(id string) error {
			bias, err := r.Scalar()
			if i, again := at[id]; again && err == nil {
				all[i][1] = bias
				return nil
			}
			at[id] = len(all)
			return cmp.Or(err, add(id, bias))
		})
	}
	return all, r.Array(func() error {
		var pair []string
		err := r.Array(func() error {
			s, err := r.Scalar()
			pair = append(pair, s)
			return err
		})
		return cmp.Or(err, add(pair...))
	})
}

var errPair = errors.New("no pair of an id and a bias")

// maxBias bounds a logit's bias, in either direction; it is far larger than any logit.
const maxBias = 1e6

func parseBias(pair [2]string, vocab int) (sample.Bias, bool) {
	id, err := strconv.ParseInt(pair[0], 10, 32)
	if err != nil || id < 0 || int(id) >= vocab {
		return sample.Bias{}, false
	}
	if pair[1] == "false" {
		return sample.Bias{ID: int32(id), Add: float32(math.Inf(-1))}, true
	}
	add, ok := wire.Float(pair[1])
	if !ok || math.Abs(add) > maxBias {
		return sample.Bias{}, false
	}
	return sample.Bias{ID: int32(id), Add: float32(add)}, true
}
