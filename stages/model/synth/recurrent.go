package synth

import (
	"cmp"
	"slices"
	"strings"
)

// Recurrent is the hyper-parameters of recurrent layers, and which layers these are.
// Wide: they are the keys of a file.
type Recurrent struct {
	LayerTypes []string `json:"layer_types"` // of lfm2; nil: as FullLayers has it
	FullLayers []int    `json:"full_attn_idxs"`

	ShortConv  int  `json:"conv_L_cache"`
	AdjustFFN  bool `json:"block_auto_adjust_ff_dim"` // two thirds of it, in whole multiples
	MultipleOf int  `json:"block_multiple_of"`

	ConvKernel int `json:"conv_kernel"`
	StateSize  int `json:"state_size"`
	StateHeads int `json:"num_heads"`
	Groups     int `json:"n_groups"`
	Expand     int `json:"expand"` // features of all heads, in widths

	LinearKernel   int `json:"linear_conv_kernel_dim"`
	LinearKeys     int `json:"linear_num_key_heads"`
	LinearValues   int `json:"linear_num_value_heads"`
	LinearKeyDim   int `json:"linear_key_head_dim"`
	LinearValueDim int `json:"linear_value_head_dim"`
	Interval       int `json:"full_attention_interval"`
}

// mixer is what a family's layers have beside attention, or instead of it.
type mixer uint8

const (
	attention mixer = iota
	shortConv       // beside attention
	deltaNet        // beside attention
	stateSpace
	latentAttention // instead of it
	encoder         // attention both ways
	answering       // and that to an encoder's rows
)

// completeRecurrent fills in what follows from other fields.
func (c *Config) completeRecurrent() {
	switch families()[c.ModelType].mixer {
	case shortConv:
		if c.AdjustFFN {
			each := max(c.MultipleOf, 1)
			c.FFN, c.AdjustFFN = (2*c.FFN/3+each-1)/each*each, false
		}
	case deltaNet:
		c.FFN = cmp.Or(c.FFN, c.ExpertFFN)
		if at := slices.Index(c.LayerTypes, "full_attention"); c.Interval == 0 && at >= 0 {
			c.Interval = at + 1
		}
		c.Interval = cmp.Or(c.Interval, 4)
	case stateSpace:
		const endless = 1 << 20 // what converters write
		c.Context = cmp.Or(c.Context, endless)
	}
}

// attends says whether a layer of lfm2 has attention.
func (c *Config) attends(layer int) bool {
	if layer < len(c.LayerTypes) {
		return c.LayerTypes[layer] == "full_attention"
	}
	return slices.Contains(c.FullLayers, layer)
}

// recurrent writes the keys of a mixer.
func (w writer) recurrent(c *Config, m mixer) {
	switch m {
	case shortConv:
		w.count("shortconv.l_cache", c.ShortConv)
		heads := make([]int32, c.Layers)
		for l := range heads {
			if c.attends(l) {
				heads[l] = int32(c.KVHeads)
			}
		}
		w.m.Set(w.prefix+"attention.head_count_kv", heads)
	case deltaNet:
		w.count("full_attention_interval", c.Interval)
		w.states(c.LinearKernel, c.LinearKeyDim, c.LinearKeys, c.LinearValues, c.LinearValues*c.LinearValueDim)
	case stateSpace:
		w.states(c.ConvKernel, c.StateSize, c.Groups, c.StateHeads, c.Expand*c.Width)
	}
}

func (w writer) states(kernel, size, groups, heads, inner int) {
	w.count("ssm.conv_kernel", kernel)
	w.count("ssm.state_size", size)
	w.count("ssm.group_count", groups)
	w.count("ssm.time_step_rank", heads)
	w.count("ssm.inner_size", inner)
}

// hasRecurrent says whether a file holds an optional tensor of such layers.
func (c *Config) hasRecurrent(name string) bool {
	return c.ModelType == "mamba2" && strings.HasSuffix(name, ".ssm_conv1d.bias") ||
		c.ModelType == "qwen3_next" && strings.HasSuffix(name, ".ssm_ba.weight")
}

// recurrentValues are the mean and deviation of weights that keep states from growing: decays that forget within
// some hundred positions.
func recurrentValues(name string, cols int) (mean, dev float64, ok bool) {
	switch {
	case strings.HasSuffix(name, ".ssm_a"):
		return -2, 0.3, true
	case strings.HasSuffix(name, ".ssm_dt.bias"):
		return -4, 0.5, true
	case strings.HasSuffix(name, ".ssm_d"):
		return 1, 0.1, true
	case strings.HasSuffix(name, "conv1d.weight"), strings.HasSuffix(name, "shortconv.conv.weight"):
		return 0.3, 1 / float64(cols), true
	}
	return 0, 0, false
}

func recurrents() []Shape {
	next := Config{ModelType: "qwen3_next", Layers: 48, Width: 2048, FFN: 5120, Heads: 16, KVHeads: 2, HeadDim: 256,
		Vocab: 151936, Context: 262144, RopeTheta: 1e7, Eps: 1e-6, Partial: 0.25, Experts: 512, ExpertsUsed: 10,
		ExpertFFN: 512, SharedFFN: 512, Recurrent: Recurrent{LinearKernel: 4, LinearKeys: 16, LinearValues: 32,
			LinearKeyDim: 128, LinearValueDim: 128, Interval: 4}}
	large := next
	large.ModelType, large.Layers, large.Width, large.FFN, large.Heads = "qwen3_5_moe_text", 60, 4096, 0, 32
	large.Vocab, large.ExpertFFN, large.SharedFFN, large.LinearValues = 248320, 1024, 1024, 64
	dense := next
	dense.ModelType, dense.Layers, dense.Width, dense.FFN = "qwen3_5_text", 64, 5120, 17408
	dense.Heads, dense.KVHeads = 24, 4
	dense.Vocab, dense.LinearValues = 248320, 48
	dense.Experts, dense.ExpertsUsed, dense.ExpertFFN, dense.SharedFFN = 0, 0, 0, 0
	return []Shape{
		{"qwen3.5-27b", dense},
		{"mamba2-2.7b", Config{ModelType: "mamba2", Layers: 64, Width: 2560, Vocab: 50288, Tied: yes(), Eps: 1e-5,
			Recurrent: Recurrent{ConvKernel: 4, StateSize: 128, StateHeads: 80, Groups: 1, Expand: 2}}},
		{"lfm2-1.2b", Config{ModelType: "lfm2", Layers: 16, Width: 2048, FFN: 12288, Heads: 32, KVHeads: 8, Vocab: 65536,
			Context: 128000, RopeTheta: 1e6, Eps: 1e-5, Recurrent: Recurrent{ShortConv: 3, AdjustFFN: true,
				MultipleOf: 256, FullLayers: []int{2, 5, 8, 10, 12, 14}}}},
		{"qwen3-next-80b-a3b", next},
		{"qwen3.5-397b-a17b", large},
	}
}
