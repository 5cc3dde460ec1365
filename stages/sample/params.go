package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Params are the parameters of sampling. Defaults returns llama.cpp's values; the comments of fields say which value
// turns a sampler off. Params and what it points to are only read, so that requests may share them.
// Wide: samplers have so many parameters, and a request may set each.
type Params struct {
	Seed uint64

	Temp            float32 // logits are divided by it; 0: always the likeliest token
	DynTempRange    float32 // with entropy from 0 to its maximum, Temp goes from Temp-range to Temp+range; 0: off
	DynTempExponent float32 // bends that way: (entropy/maximum)^exponent

	TopNSigma float32 // keeps logits within n standard deviations of the largest; 0 or less: off
	TopK      int     // keeps the k likeliest; 0 or less: off
	TypicalP  float32 // keeps those closest to the expected information, up to p in sum; 1: off
	TopP      float32 // keeps the likeliest up to p in sum; 1: off
	MinP      float32 // keeps those with at least p times the probability of the likeliest; 0: off
	MinKeep   int     // typical, top-p, min-p and XTC leave at least so many

	XTCProbability float32 // chance that, of the tokens above the threshold, all but the least likely go; 0: off
	XTCThreshold   float32 // above 0.5: off

	RepeatPenalty    float32 // divides the logits above 0, multiplies the others, of tokens in the window; 1: off
	FrequencyPenalty float32 // subtracted for each time the token occurs in the window; 0: off
	PresencePenalty  float32 // subtracted once if it occurs; 0: off
	PenaltyLastN     int     // window of the three above, in tokens; -1: the whole sequence, 0: off

	DRY DRY

	Mirostat int     // 0: off, 2: version 2
	Tau      float32 // the surprise to hold, in bits
	Eta      float32 // how fast mirostat corrects

	Bias      []Bias
	IgnoreEOG []int32 // ids that end a generation, when it must go on: never chosen
	Masked    bool    // not every token is allowed at every place: whoever samples is told which
	LogProbs  int     // -1: none, 0: of the chosen token, n: of the n likeliest tokens as well
}

// Bias is added to the logit of a token before anything else; −Inf bans it.
type Bias struct {
	ID  int32
	Add float32
}

// biasJSON is a Bias in JSON, which has no word for −Inf.
type biasJSON struct {
	ID     int32
	Add    float32 `json:",omitempty"`
	Banned bool    `json:",omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (b Bias) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(b.Add), -1) {
		return json.Marshal(biasJSON{ID: b.ID, Banned: true})
	}
	return json.Marshal(biasJSON{ID: b.ID, Add: b.Add})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bias) UnmarshalJSON(text []byte) error {
	var j biasJSON
	err := json.Unmarshal(text, &j)
	if *b = (Bias{j.ID, j.Add}); j.Banned {
		b.Add = float32(math.Inf(-1))
	}
	return err
}

// DRY ("don't repeat yourself") penalises the token that would continue a repetition: by
// Multiplier·Base^(length-AllowedLength) where the length, in tokens before it, is at least AllowedLength.
type DRY struct {
	Multiplier    float32 // 0: off
	Base          float32 // below 1: off
	AllowedLength int
	PenaltyLastN  int       // window in tokens; -1: the whole sequence, 0: off
	Breakers      *Breakers // repetitions are not followed across these; nil: none
}

// Defaults returns llama.cpp's defaults, in which DRY breaks at "\n", ":", "\"" and "*" (see TextBreakers).
func Defaults() Params {
	return Params{
		Temp: 0.8, DynTempExponent: 1,
		TopNSigma: -1, TopK: 40, TypicalP: 1, TopP: 0.95, MinP: 0.05,
		XTCThreshold: 0.1, RepeatPenalty: 1, PenaltyLastN: 64,
		DRY: DRY{Base: 1.75, AllowedLength: 2, PenaltyLastN: -1},
		Tau: 5, Eta: 0.1, LogProbs: -1,
	}
}

// Unnamed returns the parameters without all that names tokens, or counts those that are there already: for models
// whose logits are of some tokens only, in an order of their own.
func (p Params) Unnamed() Params {
	p.Bias, p.IgnoreEOG = nil, nil
	p.RepeatPenalty, p.FrequencyPenalty, p.PresencePenalty, p.DRY.Multiplier = 1, 0, 0, 0
	return p
}

// Check returns an error that lists every field out of its range. The bounds keep logits finite through the whole
// chain.
func (p *Params) Check(vocab int) error {
	var faults []error
	number := func(name string, x, lo, hi float32) {
		if !(x >= lo && x <= hi) {
			faults = append(faults, fmt.Errorf("%s is %v: want %v to %v", name, x, lo, hi))
		}
	}
	count := func(name string, n, lo, hi int) {
		if n < lo || n > hi {
			faults = append(faults, fmt.Errorf("%s is %d: want %d to %d", name, n, lo, hi))
		}
	}
	number("temperature", p.Temp, 0, 100)
	number("dynatemp_range", p.DynTempRange, 0, 100)
	number("dynatemp_exponent", p.DynTempExponent, 0, 100)
	number("top_n_sigma", p.TopNSigma, -1, 1000)
	count("top_k", p.TopK, -1, math.MaxInt32)
	number("typical_p", p.TypicalP, 0, 1)
	number("top_p", p.TopP, 0, 1)
	number("min_p", p.MinP, 0, 1)
	count("min_keep", p.MinKeep, 0, math.MaxInt32)
	number("xtc_probability", p.XTCProbability, 0, 1)
	number("xtc_threshold", p.XTCThreshold, 0, 1)
	number("repeat_penalty", p.RepeatPenalty, 0.01, 100)
	number("frequency_penalty", p.FrequencyPenalty, -100, 100)
	number("presence_penalty", p.PresencePenalty, -100, 100)
	count("repeat_last_n", p.PenaltyLastN, -1, math.MaxInt32)
	number("dry_multiplier", p.DRY.Multiplier, 0, 1000)
	number("dry_base", p.DRY.Base, 0, 1000)
	count("dry_allowed_length", p.DRY.AllowedLength, 0, math.MaxInt32)
	count("dry_penalty_last_n", p.DRY.PenaltyLastN, -1, math.MaxInt32)
	number("mirostat_tau", p.Tau, 0, 100)
	number("mirostat_eta", p.Eta, 0, 1)
	count("logprobs", p.LogProbs, -1, 100)
	if p.Mirostat != 0 && p.Mirostat != 2 {
		faults = append(faults, fmt.Errorf("mirostat is %d: want 0 (off) or 2", p.Mirostat))
	}
	return errors.Join(append(faults, p.checkIDs(vocab)...)...)
}

func (p *Params) checkIDs(vocab int) (faults []error) {
	const most = 1e6
	for _, b := range p.Bias {
		if b.ID < 0 || int(b.ID) >= vocab {
			faults = append(faults, fmt.Errorf("logit_bias names token %d: the model has 0 to %d", b.ID, vocab-1))
		}
		if !(b.Add <= most) {
			faults = append(faults, fmt.Errorf("logit_bias of token %d is %v: want at most %v", b.ID, b.Add, most))
		}
	}
	for _, id := range p.IgnoreEOG {
		if id < 0 || int(id) >= vocab {
			faults = append(faults, fmt.Errorf("ignored end token %d: the model has 0 to %d", id, vocab-1))
		}
	}
	return faults
}
