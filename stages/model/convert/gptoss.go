package convert

import "github.com/sluice-ai/sluice/internal/element"

// gptOSS is OpenAI's gpt-oss: experts in MXFP4, gates and what they multiply in turns, row by row.
func gptOSS() family {
	return family{
		arch: "gpt-oss", classes: []string{"GptOssForCausalLM"}, prefixes: usualPrefixes(), pre: "gpt-4o",
		names: map[string]rule{
			"layers.*.post_attention_layernorm":        as("blk.*.post_attention_norm"),
			"layers.*.self_attn.sinks":                 as("blk.*.attn_sinks.weight"),
			"layers.*.mlp.router":                      as("blk.*.ffn_gate_inp"),
			"layers.*.mlp.experts.gate_up_proj_bias":   by("blk.*.", inTurns(biases)),
			"layers.*.mlp.experts.gate_up_proj_blocks": by("blk.*.", inTurns(blocks)),
			"layers.*.mlp.experts.gate_up_proj_scales": by("blk.*.", inTurns(scales)),
			"layers.*.mlp.experts.down_proj_bias":      as("blk.*.ffn_down_exps.bias"),
			"layers.*.mlp.experts.down_proj_blocks":    by("blk.*.ffn_down_exps", down(blocks)),
			"layers.*.mlp.experts.down_proj_scales":    by("blk.*.ffn_down_exps", down(scales)),
			"layers.*.mlp.experts.gate_up_proj":        by("blk.*.", transposedInTurns),
			"layers.*.mlp.experts.down_proj":           by("blk.*.ffn_down_exps.weight", transposedExperts),
		},
		keys: func(c *converter) {
			c.count("attention.sliding_window", c.config.need("sliding_window"))
			c.count("expert_feed_forward_length", c.config.need("intermediate_size"))
		},
	}
}

// inTurns takes apart rows of which every other is the gate's.
func inTurns(emit func(c *converter, name string, v View)) func(*converter, *source) {
	return func(c *converter, s *source) {
		v := whole(s.Tensor).split(1, 0, 2)
		emit(c, s.to+"ffn_gate_exps", v.pick(2, 0))
		emit(c, s.to+"ffn_up_exps", v.pick(2, 1))
	}
}

func biases(c *converter, name string, v View) { c.emit(name+".bias", []View{v}, Same) }

// blocks are codes of MXFP4: [experts][rows][blocks][16 bytes].
func blocks(c *converter, name string, v View) {
	v.dims(4)
	shape := v.shape()
	o := c.packed(name + ".weight")
	o.shape = []int{shape[0], shape[1], shape[2] * 32}
	o.parts = []part{{-1, []View{v}}}
}

// scales are the scales of these blocks: [experts][rows][blocks].
func scales(c *converter, name string, v View) { c.packed(name + ".weight").scales = []View{v} }

// packed is a tensor of blocks, which two tensors of the folder make.
func (c *converter) packed(name string) *output {
	if c.now.Type != element.U8 {
		failf("is of type %s, want U8", c.now.Type)
	}
	o := c.byName[name]
	if o == nil {
		o = &output{name: name}
		c.byName[name] = o
		c.out = append(c.out, o)
	}
	return o
}

// down is a rule for the matrices behind the gates.
func down(emit func(c *converter, name string, v View)) func(*converter, *source) {
	return func(c *converter, s *source) { emit(c, s.to, whole(s.Tensor)) }
}

// transposedExperts is for the experts of unpacked models, whose matrices lie the other way round:
// [experts][in][out].
func transposedExperts(c *converter, s *source) {
	c.emit(s.to, []View{whole(s.Tensor).swap(1, 2)}, Same)
}

func transposedInTurns(c *converter, s *source) {
	v := whole(s.Tensor).split(2, 0, 2).swap(1, 2)
	c.emit(s.to+"ffn_gate_exps.weight", []View{v.pick(3, 0)}, Same)
	c.emit(s.to+"ffn_up_exps.weight", []View{v.pick(3, 1)}, Same)
}
