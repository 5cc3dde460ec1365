package compute

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// SamplingFlags say how tokens are chosen. A flag that is not given has the model's recommended value, or the usual
// default.
// Wide: they are flags, one for each parameter of samplers.
type SamplingFlags struct {
	Temp      *float32 `placeholder:"T" help:"Temperature: 0 always takes the likeliest token." group:"Sampling:"`
	Seed      *uint64  `placeholder:"S" help:"Seed: the same seed gives the same answer. Default: another one each time." group:"Sampling:"`
	TopK      *int     `placeholder:"K" help:"Keep the K likeliest tokens; 0: all." group:"Sampling:"`
	TopP      *float32 `placeholder:"P" help:"Keep the likeliest tokens up to P in sum; 1: all." group:"Sampling:"`
	MinP      *float32 `placeholder:"P" help:"Keep tokens with at least P times the best probability; 0: all." group:"Sampling:"`
	TypicalP  *float32 `placeholder:"P" help:"Keep the most typical tokens up to P in sum; 1: all." group:"Sampling:"`
	TopNSigma *float32 `placeholder:"N" help:"Keep logits within N standard deviations of the best; -1: all." group:"Sampling:"`

	XTCProbability *float32 `name:"xtc-probability" placeholder:"P" help:"Chance to exclude top choices (XTC); 0: off." group:"Sampling:"`
	XTCThreshold   *float32 `name:"xtc-threshold" placeholder:"P" help:"Probability from which a token is a top choice." group:"Sampling:"`

	RepeatPenalty    *float32 `placeholder:"X" help:"Penalise tokens of the last few; 1: off." group:"Sampling:"`
	FrequencyPenalty *float32 `placeholder:"X" help:"Penalise by how often a token occurs; 0: off." group:"Sampling:"`
	PresencePenalty  *float32 `placeholder:"X" help:"Penalise tokens that occur; 0: off." group:"Sampling:"`
	RepeatLastN      *int     `placeholder:"N" help:"Tokens that penalties look back at; -1: all." group:"Sampling:"`

	DRYMultiplier    *float32 `name:"dry-multiplier" placeholder:"X" help:"Strength of the DRY repetition penalty; 0: off." group:"Sampling:"`
	DRYBase          *float32 `name:"dry-base" placeholder:"X" help:"Growth of the DRY penalty with the length of the repetition." group:"Sampling:"`
	DRYAllowedLength *int     `name:"dry-allowed-length" placeholder:"N" help:"Length of repetition that DRY lets pass." group:"Sampling:"`
	DRYPenaltyLastN  *int     `name:"dry-penalty-last-n" placeholder:"N" help:"Tokens that DRY looks back at; -1: all." group:"Sampling:"`

	Mirostat    *int     `placeholder:"V" help:"Mirostat: 0 off, 2 version 2." group:"Sampling:"`
	MirostatTau *float32 `placeholder:"X" help:"Mirostat's target surprise, in bits." group:"Sampling:"`
	MirostatEta *float32 `placeholder:"X" help:"Mirostat's learning rate." group:"Sampling:"`

	LogitBias []string `placeholder:"ID+X" help:"Add X to a token's logit, as 15043+1.5 or 15043-1; ID-inf bans it." group:"Sampling:"`
}

// dryBreakers are the texts across which DRY finds no repetition, as in llama.cpp.
func dryBreakers() []string { return []string{"\n", ":", "\"", "*"} }

// Params applies the flags to the model's defaults. If neither has a seed it draws one below 2⁵³, which JSON readers
// represent exactly.
func (f *SamplingFlags) Params(e *actors.Engine) (sample.Params, error) {
	if f.Seed == nil {
		seed := cmp.Or(e.Info.Sampling.Seed, rand.Uint64N(1<<53))
		f.Seed = &seed
	}
	p, err := f.Over(e.Info.Sampling, e)
	if err != nil {
		return p, env.Usagef("%s", ofFlags(err.Error()))
	}
	return p, nil
}

// Over applies the flags to other parameters.
func (f *SamplingFlags) Over(p sample.Params, e *actors.Engine) (sample.Params, error) {
	set(&p.Temp, f.Temp)
	set(&p.Seed, f.Seed)
	set(&p.TopK, f.TopK)
	set(&p.TopP, f.TopP)
	set(&p.MinP, f.MinP)
	set(&p.TypicalP, f.TypicalP)
	set(&p.TopNSigma, f.TopNSigma)
	set(&p.XTCProbability, f.XTCProbability)
	set(&p.XTCThreshold, f.XTCThreshold)
	set(&p.RepeatPenalty, f.RepeatPenalty)
	set(&p.FrequencyPenalty, f.FrequencyPenalty)
	set(&p.PresencePenalty, f.PresencePenalty)
	set(&p.PenaltyLastN, f.RepeatLastN)
	set(&p.DRY.Multiplier, f.DRYMultiplier)
	set(&p.DRY.Base, f.DRYBase)
	set(&p.DRY.AllowedLength, f.DRYAllowedLength)
	set(&p.DRY.PenaltyLastN, f.DRYPenaltyLastN)
	set(&p.Mirostat, f.Mirostat)
	set(&p.Tau, f.MirostatTau)
	set(&p.Eta, f.MirostatEta)
	if p.DRY.Multiplier != 0 {
		p.DRY.Breakers = breakers(e.Vocab())
	}
	for _, text := range f.LogitBias {
		bias, err := parseBias(text)
		if err != nil {
			return p, err
		}
		p.Bias = append(p.Bias, bias)
	}
	if err := p.Check(e.Info.Vocab); err != nil {
		return p, env.Usagef("%v", err)
	}
	return p, nil
}

// ofFlags rewrites faults of request fields, one in a line, as faults of flags.
func ofFlags(faults string) string {
	lines := strings.Split(faults, "\n")
	for i, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(name, "--") {
			continue
		}
		if name == "temperature" {
			name = "temp"
		}
		lines[i] = "--" + strings.ReplaceAll(name, "_", "-") + " " + rest
	}
	return strings.Join(lines, "\n")
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func breakers(v *token.Vocab) *sample.Breakers {
	return sample.TextBreakers(dryBreakers(), v.Size(), v.Piece, func(text string) []int32 {
		ids, err := v.Encode(nil, text, token.Options{})
		if err != nil {
			return nil // a vocabulary that cannot spell a breaker never meets it
		}
		return ids
	})
}

// parseBias reads “ID+X” or “ID-X”.
func parseBias(text string) (sample.Bias, error) {
	at := strings.IndexAny(text, "+-")
	if at > 0 {
		id, err := strconv.ParseInt(text[:at], 10, 32)
		add, err2 := strconv.ParseFloat(text[at:], 32)
		if err == nil && err2 == nil {
			return sample.Bias{ID: int32(id), Add: float32(add)}, nil
		}
	}
	return sample.Bias{}, env.Usagef("--logit-bias is %q: want a token id and what to add, such as 15043+1.5", fmt.Sprint(text))
}
