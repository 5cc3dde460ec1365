package openai

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/sample"
)

// Limits of a request beside those of every dialect.
const (
	maxBiases     = 4096
	maxBreakers   = 16
	maxPrompts    = answer.MaxChoices
	anyLength     = math.MaxInt32
	breakersBytes = 40
)

// sampling reads everything that says how tokens are chosen. The bounds are those of sample.Params.Check.
func (f fields) sampling(m *answer.Model) sample.Params {
	p := m.Sampling
	f.Number("temperature", 0, 100, &p.Temp)
	f.Number("dynatemp_range", 0, 100, &p.DynTempRange)
	f.Number("dynatemp_exponent", 0, 100, &p.DynTempExponent)
	f.Number("top_n_sigma", -1, 1000, &p.TopNSigma)
	f.Count("top_k", -1, anyLength, &p.TopK)
	f.Number("top_p", 0, 1, &p.TopP)
	f.Number("min_p", 0, 1, &p.MinP)
	f.Number("typical_p", 0, 1, &p.TypicalP)
	f.Count("min_keep", 0, anyLength, &p.MinKeep)
	f.Number("xtc_probability", 0, 1, &p.XTCProbability)
	f.Number("xtc_threshold", 0, 1, &p.XTCThreshold)
	f.Number("repeat_penalty", 0.01, 100, &p.RepeatPenalty)
	f.Number("frequency_penalty", -100, 100, &p.FrequencyPenalty)
	f.Number("presence_penalty", -100, 100, &p.PresencePenalty)
	f.Count("repeat_last_n", -1, anyLength, &p.PenaltyLastN)
	f.Count("mirostat", 0, 2, &p.Mirostat)
	if p.Mirostat == 1 {
		f.Wrong("mirostat", []byte("1"), "0 (off) or 2")
	}
	f.Number("mirostat_tau", 0, 100, &p.Tau)
	f.Number("mirostat_eta", 0, 1, &p.Eta)
	f.dry(m, &p.DRY)
	f.seed(&p)
	f.bias(m, &p)
	return p
}

func (f fields) dry(m *answer.Model, d *sample.DRY) {
	f.Number("dry_multiplier", 0, 1000, &d.Multiplier)
	f.Number("dry_base", 0, 1000, &d.Base)
	f.Count("dry_allowed_length", 0, anyLength, &d.AllowedLength)
	f.Count("dry_penalty_last_n", -1, anyLength, &d.PenaltyLastN)
	var texts []string
	f.Texts("dry_sequence_breakers", maxBreakers, breakersBytes, &texts)
	if d.Multiplier > 0 && f.Fault == nil {
		d.Breakers = m.Breakers(texts)
	}
}

// seed takes any integer; without one, and for negative ones, the answer is different each time.
func (f fields) seed(p *sample.Params) {
	seed := int64(-1)
	f.Integer("seed", math.MinInt64, math.MaxInt64, &seed)
	p.Seed = uint64(seed)
	if seed < 0 {
		p.Seed = rand.Uint64()
	}
}

// bias reads logit_bias: OpenAI's {"id": bias}, or llama.cpp's [[id, bias]], where false bans the token.
func (f fields) bias(m *answer.Model, p *sample.Params) {
	const want = `an object {"token id": bias} or a list [[token id, bias]] with ids of the model, and numbers or false`
	raw, ok := f.Get("logit_bias")
	if !ok {
		return
	}
	var byID map[string]json.RawMessage
	var pairs [][2]json.RawMessage
	if json.Unmarshal(raw, &byID) == nil {
		for id, add := range byID {
			pairs = append(pairs, [2]json.RawMessage{json.RawMessage(id), add})
		}
	} else if json.Unmarshal(raw, &pairs) != nil {
		f.Wrong("logit_bias", raw, want)
		return
	}
	if len(pairs) > maxBiases {
		f.Fault = wire.Invalid("logit_bias", "invalid_value", "logit_bias has %d entries: want at most %d", len(pairs), maxBiases)
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
	slices.SortFunc(p.Bias, func(a, b sample.Bias) int { // sums of floats depend on the order, which maps have none of
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Add, b.Add))
	})
}

// maxBias bounds what is added to a logit; far more than any logit, it decides.
const maxBias = 1e6

func parseBias(pair [2]json.RawMessage, vocab int) (sample.Bias, bool) {
	id, err := strconv.ParseInt(string(pair[0]), 10, 32)
	if err != nil || id < 0 || int(id) >= vocab {
		return sample.Bias{}, false
	}
	if string(pair[1]) == "false" {
		return sample.Bias{ID: int32(id), Add: float32(math.Inf(-1))}, true
	}
	var add float64
	if string(pair[1]) == "null" || json.Unmarshal(pair[1], &add) != nil || math.Abs(add) > maxBias {
		return sample.Bias{}, false
	}
	return sample.Bias{ID: int32(id), Add: float32(add)}, true
}
