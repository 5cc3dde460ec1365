package llamacpp

import "github.com/sluice-ai/sluice/stages/sample"

// settings are the sampling parameters in llama.cpp's names, as answers repeat them.
// Wide: it is an object of llama.cpp, field by field.
type settings struct {
	MaxTokens        int     `json:"n_predict"` // -1: as many as the context holds
	Seed             uint64  `json:"seed"`
	Temp             float32 `json:"temperature"`
	DynTempRange     float32 `json:"dynatemp_range"`
	DynTempExponent  float32 `json:"dynatemp_exponent"`
	TopK             int     `json:"top_k"`
	TopP             float32 `json:"top_p"`
	MinP             float32 `json:"min_p"`
	TopNSigma        float32 `json:"top_n_sigma"`
	XTCProbability   float32 `json:"xtc_probability"`
	XTCThreshold     float32 `json:"xtc_threshold"`
	TypicalP         float32 `json:"typical_p"`
	PenaltyLastN     int     `json:"repeat_last_n"`
	RepeatPenalty    float32 `json:"repeat_penalty"`
	PresencePenalty  float32 `json:"presence_penalty"`
	FrequencyPenalty float32 `json:"frequency_penalty"`
	DRYMultiplier    float32 `json:"dry_multiplier"`
	DRYBase          float32 `json:"dry_base"`
	DRYAllowedLength int     `json:"dry_allowed_length"`
	DRYPenaltyLastN  int     `json:"dry_penalty_last_n"`
	Mirostat         int     `json:"mirostat"`
	Tau              float32 `json:"mirostat_tau"`
	Eta              float32 `json:"mirostat_eta"`
	MinKeep          int     `json:"min_keep"`
}

func settingsOf(p *sample.Params, most int) settings {
	if most == 0 {
		most = -1
	}
	d := &p.DRY
	return settings{
		most, p.Seed, p.Temp, p.DynTempRange, p.DynTempExponent, p.TopK, p.TopP, p.MinP, p.TopNSigma, p.XTCProbability,
		p.XTCThreshold, p.TypicalP, p.PenaltyLastN, p.RepeatPenalty, p.PresencePenalty, p.FrequencyPenalty, d.Multiplier,
		d.Base, d.AllowedLength, d.PenaltyLastN, p.Mirostat, p.Tau, p.Eta, p.MinKeep,
	}
}
