package synth

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// Config is a model's hyper-parameters, under the names of its config.json. What a family does not use stays zero.
// Wide: they are the keys of a file.
type Config struct {
	ModelType string `json:"model_type"`
	Layers    int    `json:"num_hidden_layers"`
	Width     int    `json:"hidden_size"`
	FFN       int    `json:"intermediate_size"`
	Heads     int    `json:"num_attention_heads"`
	KVHeads   int    `json:"num_key_value_heads"` // 0: as many as Heads
	HeadDim   int    `json:"head_dim"`            // 0: Width / Heads
	Vocab     int    `json:"vocab_size"`
	Context   int    `json:"max_position_embeddings"`

	Tied      *bool    `json:"tie_word_embeddings"` // nil: as the family has it
	Bias      bool     `json:"attention_bias"`
	HeadBias  bool     `json:"lm_head_bias"`
	Eps       float64  `json:"rms_norm_eps"`
	LayerEps  float64  `json:"norm_epsilon"`       // of families with LayerNorm
	NormEps   float64  `json:"norm_eps"`           // Eps, in other families
	EpsOfNorm float64  `json:"layer_norm_epsilon"` // likewise
	RopeTheta float64  `json:"rope_theta"`
	Scaling   *Scaling `json:"rope_scaling"`
	Rope      *Scaling `json:"rope_parameters"`       // RopeTheta and Scaling, in newer files
	Partial   float64  `json:"partial_rotary_factor"` // of a head's features; 0: all
	Window    int      `json:"sliding_window"`
	NoWindow  *bool    `json:"use_sliding_window"` // false: Window has no meaning

	Experts     int `json:"num_experts"`
	LocalExpert int `json:"num_local_experts"` // the same, in other families
	ExpertsUsed int `json:"num_experts_per_tok"`
	ExpertFFN   int `json:"moe_intermediate_size"`
	SharedFFN   int `json:"shared_expert_intermediate_size"`

	ScoreCap       float64 `json:"attn_logit_softcapping"`
	LogitCap       float64 `json:"final_logit_softcapping"`
	EmbeddingScale float64 `json:"embedding_multiplier"`
	AttentionScale float64 `json:"attention_multiplier"`
	ResidualScale  float64 `json:"residual_multiplier"`
	LogitScale     float64 `json:"logits_scaling"`

	Recurrent
	Latent
	Encoder
	Ahead
	Interleaved

	*keyed // of shapes by the keys of a file: above only sizes are set
}

// Scaling is how RoPE reaches beyond the context of its training.
type Scaling struct {
	Type     string  `json:"rope_type"`
	OldType  string  `json:"type"` // the same, in older files
	Factor   float64 `json:"factor"`
	Original int     `json:"original_max_position_embeddings"`
	LowFreq  float64 `json:"low_freq_factor"`  // llama3
	HighFreq float64 `json:"high_freq_factor"` // llama3
	BetaFast float64 `json:"beta_fast"`        // yarn
	BetaSlow float64 `json:"beta_slow"`        // yarn

	MscaleAll float64 `json:"mscale_all_dim"` // yarn: what scores are sharpened by

	Theta   float64  `json:"rope_theta"`            // in rope_parameters
	Partial float64  `json:"partial_rotary_factor"` // likewise
	Full    *Scaling `json:"full_attention"`        // in rope_parameters, where layers with a window have their own
}

// Parse reads a config.json. Of a model that sees and hears it takes the part that reads text.
func Parse(text []byte) (*Config, error) {
	var whole struct {
		Config
		Text *Config `json:"text_config"`
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("not a model's config.json: %w", err)
	}
	c := &whole.Config
	if whole.Text != nil {
		c = whole.Text
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	return c, nil
}

// The largest numbers of a model's layers and of the tokens of its vocabulary.
const (
	MostLayers = 1 << 10
	MostVocab  = 1 << 21
)

// complete fills in what follows from other fields, and refuses what no file can hold. The architecture checks the
// rest.
func (c *Config) complete() error {
	if _, ok := families()[c.ModelType]; !ok {
		return fmt.Errorf("model_type: %.40q is not known, want one of %s", c.ModelType, familyNames())
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Width / c.Heads
	}
	if r := c.Rope; r != nil {
		if r.Full != nil {
			r = r.Full
		}
		c.RopeTheta, c.Partial, c.Scaling = cmp.Or(r.Theta, c.RopeTheta), cmp.Or(r.Partial, c.Partial), r
	}
	if c.Experts == 0 {
		c.Experts = cmp.Or(c.LocalExpert, c.RoutedExperts)
	}
	if c.NoWindow != nil && !*c.NoWindow {
		c.Window = 0
	}
	c.RopeTheta = cmp.Or(c.RopeTheta, 10000)
	c.completeRecurrent()
	c.completeAhead()
	c.completeInterleaved()
	return errors.Join(c.checkCounts(), c.Scaling.check())
}

func (c *Config) checkCounts() error {
	var faults []error
	attention := 1 // models without it have none of its sizes
	if families()[c.ModelType].mixer == stateSpace {
		attention = 0
	}
	for _, f := range []struct {
		name           string
		n, least, most int
	}{
		{"num_hidden_layers", c.Layers, 1, MostLayers}, {"hidden_size", c.Width, 1, 1 << 17},
		{"intermediate_size", c.FFN, attention, 1 << 20}, {"num_attention_heads", c.Heads, attention, 1 << 10},
		{"num_key_value_heads", c.KVHeads, attention, 1 << 10}, {"head_dim", c.HeadDim, attention, 1 << 10},
		{"vocab_size", c.Vocab, 1, MostVocab}, {"max_position_embeddings", c.Context, 1, 1 << 30},
		{"sliding_window", c.Window, 0, 1 << 30}, {"num_experts", c.Experts, 0, 1 << 12},
		{"num_experts_per_tok", c.ExpertsUsed, 0, 1 << 12}, {"moe_intermediate_size", c.ExpertFFN, 0, 1 << 20},
		{"shared_expert_intermediate_size", c.SharedFFN, 0, 1 << 20}, {"state_size", c.StateSize, 0, 1 << 12},
		{"num_heads", c.StateHeads, 0, 1 << 12}, {"n_groups", c.Groups, 0, 1 << 12}, {"expand", c.Expand, 0, 64},
		{"linear_num_value_heads", c.LinearValues, 0, 1 << 12}, {"linear_value_head_dim", c.LinearValueDim, 0, 1 << 12},
		{"linear_num_key_heads", c.LinearKeys, 0, 1 << 12}, {"linear_key_head_dim", c.LinearKeyDim, 0, 1 << 12},
		{"linear_conv_kernel_dim", c.LinearKernel, 0, 64}, {"conv_kernel", c.ConvKernel, 0, 64},
		{"conv_L_cache", c.ShortConv, 0, 64}, {"full_attention_interval", c.Interval, 0, MostLayers},
		{"kv_lora_rank", c.KVRank, 0, 1 << 14}, {"q_lora_rank", c.QueryRank, 0, 1 << 14},
		{"qk_nope_head_dim", c.StillDim, 0, 1 << 10}, {"qk_rope_head_dim", c.RopeDim, 0, 1 << 10},
		{"v_head_dim", c.ValueDim, 0, 1 << 10}, {"n_shared_experts", c.SharedExperts, 0, 1 << 10},
		{"first_k_dense_replace", c.LeadingDense, 0, MostLayers}, {"n_group", c.RouteGroups, 0, 1 << 12},
		{"num_nextn_predict_layers", c.NextLayers, 0, MostLayers}, {"mtp_num_hidden_layers", c.MTPLayers, 0, MostLayers},
		{"draft_vocab_size", c.DraftVocab, 0, MostVocab}, {"target_hidden_size", c.TargetWidth, 0, 1 << 17},
		{"topk_group", c.RouteGroupsUsed, 0, 1 << 12}, {"interleave_moe_layer_step", c.ExpertStep, 0, MostLayers},
		{"intermediate_size_mlp", c.DenseFFN, 0, 1 << 20}, {"type_vocab_size", c.TokenTypes, 0, 1 << 10},
	} {
		if f.n < f.least || f.n > f.most {
			faults = append(faults, fmt.Errorf("%s: is %d, want %d to %d", f.name, f.n, f.least, f.most))
		}
	}
	return errors.Join(faults...)
}

// check refuses what would give divisors that are no numbers.
func (s *Scaling) check() error {
	if s.kind() == "llama3" && !(s.Factor > 0 && s.Original > 0 && s.LowFreq > 0 && s.HighFreq >= s.LowFreq) {
		return fmt.Errorf("rope_scaling: is llama3 with factor %v, original_max_position_embeddings %d, low_freq_factor %v "+
			"and high_freq_factor %v: want all above 0, and the last one not the smaller", s.Factor, s.Original, s.LowFreq, s.HighFreq)
	}
	return nil
}
