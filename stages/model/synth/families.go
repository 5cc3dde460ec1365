package synth

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// family says what a model_type means in a file beyond what all of them share.
type family struct {
	arch      string // general.architecture
	tied      bool   // unless the configuration says so
	biases    bool   // all matrices of layers have a bias
	layerNorm bool   // instead of RMS norm
	window    bool   // files carry the sliding window
	mixer     mixer
}

func families() map[string]family {
	return map[string]family{
		"bert":             {arch: "bert", tied: true, biases: true, layerNorm: true, mixer: encoder},
		"deepseek_v2":      {arch: "deepseek2", mixer: latentAttention},
		"deepseek_v3":      {arch: "deepseek2", mixer: latentAttention},
		eagle:              {arch: "eagle3"},
		"gemma2":           {arch: "gemma2", tied: true, window: true},
		"gemma3":           {arch: "gemma3", tied: true, window: true},
		"gemma3_text":      {arch: "gemma3", tied: true, window: true},
		"gpt_oss":          {arch: "gpt-oss", biases: true, window: true},
		"granite":          {arch: "granite"},
		"granitemoe":       {arch: "granitemoe"},
		"lfm2":             {arch: "lfm2", tied: true, mixer: shortConv},
		"llama":            {arch: "llama"},
		"llama4_text":      {arch: "llama4"},
		"mamba2":           {arch: "mamba2", tied: true, mixer: stateSpace},
		"mistral":          {arch: "llama"},
		"mixtral":          {arch: "llama"},
		"olmo2":            {arch: "olmo2"},
		"olmoe":            {arch: "olmoe"},
		"nomic_bert":       {arch: "nomic-bert", tied: true, layerNorm: true, mixer: encoder},
		"phi3":             {arch: "phi3", window: true},
		"phimoe":           {arch: "phimoe", window: true},
		"qwen2":            {arch: "qwen2"},
		"qwen2_moe":        {arch: "qwen2moe"},
		"qwen3":            {arch: "qwen3"},
		"qwen3_5_moe_text": {arch: "qwen35moe", mixer: deltaNet},
		"qwen3_5_text":     {arch: "qwen35", mixer: deltaNet},
		"qwen3_moe":        {arch: "qwen3moe"},
		"qwen3_next":       {arch: "qwen3next", mixer: deltaNet},
		"smollm3":          {arch: "smollm3", tied: true},
		"starcoder2":       {arch: "starcoder2", tied: true, biases: true, layerNorm: true},
		"t5":               {arch: "t5", mixer: answering},
	}
}

func familyNames() string { return strings.Join(slices.Sorted(maps.Keys(families())), ", ") }

// Meta is the hyper-parameters as a GGUF file names them, without a vocabulary. name is what the model calls itself.
func (c *Config) Meta(name string) *meta.Map {
	f := families()[c.ModelType]
	w := writer{new(meta.Map), f.arch + "."}
	if c.keyed != nil {
		w.prefix = c.arch + "."
	}
	w.m.Set("general.architecture", strings.TrimSuffix(w.prefix, "."))
	w.m.Set("general.type", "model")
	w.m.Set("general.name", name+" (random weights)")
	if c.keyed != nil {
		c.describe(w, c)
		return w.m
	}
	w.count("block_count", c.Layers+c.NextHeads())
	w.countIf("nextn_predict_layers", c.NextHeads())
	w.countIf("target_hidden_size", c.TargetWidth)
	w.count("context_length", c.Context)
	w.count("embedding_length", c.Width)
	w.count("feed_forward_length", c.FFN)
	w.count("attention.head_count", c.Heads)
	if f.mixer != stateSpace {
		w.count("attention.head_count_kv", c.KVHeads)
		w.count("attention.key_length", c.HeadDim)
		w.count("attention.value_length", c.HeadDim)
		w.count("rope.dimension_count", int(float64(c.HeadDim)*cmp.Or(c.Partial, 1)))
		w.number("rope.freq_base", c.RopeTheta)
	}
	switch f.mixer {
	case encoder:
		w.encoder(c)
	case answering:
		w.answering(c)
	case latentAttention:
		w.latent(c)
	default:
		w.recurrent(c, f.mixer)
	}
	w.count("vocab_size", c.Vocab)
	if f.layerNorm {
		w.number("attention.layer_norm_epsilon", cmp.Or(c.LayerEps, c.EncoderEps, 1e-5))
	} else {
		w.number("attention.layer_norm_rms_epsilon", cmp.Or(c.Eps, c.NormEps, c.EpsOfNorm, 1e-6))
	}
	if f.window {
		w.count("attention.sliding_window", c.Window)
	}
	if c.Experts > 0 {
		w.count("expert_count", c.Experts)
		w.count("expert_used_count", c.ExpertsUsed)
		w.count("expert_feed_forward_length", cmp.Or(c.ExpertFFN, c.FFN))
		w.countIf("expert_shared_feed_forward_length", c.SharedFFN)
	}
	w.countIf("interleave_moe_layer_step", c.ExpertStep)
	w.scaling(c.Scaling)
	w.numberIf("attn_logit_softcapping", c.ScoreCap)
	w.numberIf("final_logit_softcapping", c.LogitCap)
	w.numberIf("embedding_scale", c.EmbeddingScale)
	w.numberIf("attention.scale", c.AttentionScale)
	w.numberIf("residual_scale", c.ResidualScale)
	w.numberIf("logit_scale", c.LogitScale)
	return w.m
}

// writer sets keys of one architecture.
type writer struct {
	m      *meta.Map
	prefix string
}

func (w writer) count(name string, n int)      { w.m.Set(w.prefix+name, uint32(n)) }
func (w writer) number(name string, x float64) { w.m.Set(w.prefix+name, float32(x)) }
func (w writer) text(name, text string)        { w.m.Set(w.prefix+name, text) }

func (w writer) countIf(name string, n int) {
	if n > 0 {
		w.count(name, n)
	}
}

func (w writer) numberIf(name string, x float64) {
	if x != 0 {
		w.number(name, x)
	}
}

// scaling writes the keys of RoPE's scaling; llama3's is a tensor instead: ropeDivisors.
func (w writer) scaling(s *Scaling) {
	switch s.kind() {
	case "linear", "yarn":
		w.text("rope.scaling.type", s.kind())
		w.number("rope.scaling.factor", s.Factor)
		w.countIf("rope.scaling.original_context_length", s.Original)
		w.numberIf("rope.scaling.yarn_beta_fast", s.BetaFast)
		w.numberIf("rope.scaling.yarn_beta_slow", s.BetaSlow)
		w.numberIf("rope.scaling.yarn_log_multiplier", 0.1*s.MscaleAll)
	}
}

func (s *Scaling) kind() string {
	if s == nil {
		return ""
	}
	return cmp.Or(s.Type, s.OldType)
}

const ropeFreqs = "rope_freqs.weight"

// Has says whether a file of this shape holds a tensor that is optional in its architecture.
func (c *Config) Has(name string) bool {
	if c.keyed != nil {
		return c.holds(name)
	}
	f := families()[c.ModelType]
	switch {
	case name == "output.weight":
		return c.Tied == nil && !f.tied || c.Tied != nil && !*c.Tied
	case name == ropeFreqs:
		return c.Scaling.kind() == "llama3"
	case c.hasRecurrent(name), c.hasLatent(name), c.hasEncoder(name), c.hasAnswering(name),
		c.hasAhead(name):
		return true
	case name == "output.bias":
		return c.HeadBias
	case strings.HasPrefix(name, "blk.") && strings.HasSuffix(name, ".bias"):
		return f.biases || c.Bias && strings.Contains(name, ".attn_")
	}
	return false
}

// ropeDivisors are Llama 3.1's: frequencies that turn less than LowFreq times in the original context are divided by
// Factor, those above HighFreq stay, and between the two, if they are two, it blends. Source: transformers,
// modeling_rope_utils.py.
func (c *Config) ropeDivisors(n int) []float32 {
	s, out := c.Scaling, make([]float32, n)
	for i := range out {
		turns := float64(s.Original) / (2 * math.Pi) * math.Pow(c.RopeTheta, -float64(i)/float64(n))
		keep := 1.0
		if turns < s.HighFreq {
			keep = max(turns-s.LowFreq, 0) / max(s.HighFreq-s.LowFreq, math.SmallestNonzeroFloat64)
		}
		out[i] = float32(1 / (keep + (1-keep)/s.Factor))
	}
	return out
}
