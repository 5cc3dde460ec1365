package sample

import "github.com/sluice-ai/sluice/internal/meta"

// Recommended returns the defaults with the sampling parameters that a model's metadata recommends
// (general.sampling.*). The seed is 0 if it recommends none.
func Recommended(m *meta.Map) Params {
	p := Defaults()
	float := func(key string, to *float32) {
		if x, err := m.Float("general.sampling." + key); err == nil {
			*to = float32(x)
		}
	}
	count := func(key string, to *int) {
		if n, err := m.Int("general.sampling." + key); err == nil {
			*to = int(n)
		}
	}
	float("temp", &p.Temp)
	float("top_p", &p.TopP)
	float("typical_p", &p.TypicalP)
	float("penalty_frequency", &p.FrequencyPenalty)
	float("penalty_presence", &p.PresencePenalty)
	float("min_p", &p.MinP)
	float("xtc_probability", &p.XTCProbability)
	float("xtc_threshold", &p.XTCThreshold)
	float("penalty_repeat", &p.RepeatPenalty)
	float("mirostat_tau", &p.Tau)
	float("mirostat_eta", &p.Eta)
	count("top_k", &p.TopK)
	count("penalty_last_n", &p.PenaltyLastN)
	count("mirostat", &p.Mirostat)
	if seed, err := m.Int("general.sampling.seed"); err == nil && seed > 0 {
		p.Seed = uint64(seed)
	}
	return p
}
