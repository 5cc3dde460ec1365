package convert

import (
	"maps"
	"slices"
)

// family is what models of one architecture have in common.
type family struct {
	arch     string           // general.architecture
	classes  []string         // in config.json's architectures
	prefixes []string         // that names of tensors may begin with
	names    map[string]rule  // beside and over the usual ones
	keys     func(*converter) // beside the usual ones
	usual    func(*converter) // instead of the usual ones
	extra    func(*converter) // tensors that are computed
	vocab    func(*converter) error

	noUsualNames bool // the usual names mean nothing here
	ahead        bool // folders may have heads that predict tokens further on, and the architecture has a use for them
	pre          string
}

// families lists all families.
func families() []family {
	return slices.Concat(llamas(), qwens(), llamalikes(), granites(), gemmas(), coheres(), deepseeks(), glms(), ernies(),
		qwenNexts(), recurrents(), berts(), gpts(), plains(), newer(), []family{gptOSS(), llama4(), gemma4(), eagle3(),
			t5()})
}

// Architectures lists the values of general.architecture of the files that folders can become.
func Architectures() []string {
	var names []string
	for _, f := range families() {
		names = append(names, f.arch)
	}
	return names
}

// rule is what becomes of a tensor: a name with * for the layer, and how its values are arranged. The zero rule
// leaves it out.
type rule struct {
	to  string
	how func(*converter, *source) // nil: as they are
}

func as(to string) rule { return rule{to: to} }

func by(to string, how func(*converter, *source)) rule { return rule{to, how} }

// keep copies a tensor.
func keep(c *converter, s *source) { c.emit(s.to, []View{whole(s.Tensor)}, Same) }

// plus1 is for norms that multiply by 1 + w.
func plus1(c *converter, s *source) { c.emit(s.to, []View{whole(s.Tensor)}, Plus1) }

// table is the family's rules.
func (f *family) table() map[string]rule {
	table := map[string]rule{}
	if !f.noUsualNames {
		maps.Copy(table, usualNames())
	}
	maps.Copy(table, f.names)
	return table
}

// joined is several tables in one. A later one's rules come before those of an earlier one.
func joined(tables ...map[string]rule) map[string]rule {
	all := map[string]rule{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// usualNames are the rules for the names of tensors that most models of transformers have.
func usualNames() map[string]rule {
	return map[string]rule{
		"embed_tokens": as("token_embd"),
		"norm":         as("output_norm"),
		"lm_head":      by("output", head),

		"layers.*.input_layernorm":          as("blk.*.attn_norm"),
		"layers.*.self_attn.q_proj":         as("blk.*.attn_q"),
		"layers.*.self_attn.k_proj":         as("blk.*.attn_k"),
		"layers.*.self_attn.v_proj":         as("blk.*.attn_v"),
		"layers.*.self_attn.o_proj":         as("blk.*.attn_output"),
		"layers.*.self_attn.q_norm":         as("blk.*.attn_q_norm"),
		"layers.*.self_attn.k_norm":         as("blk.*.attn_k_norm"),
		"layers.*.post_attention_layernorm": as("blk.*.ffn_norm"),
		"layers.*.mlp.gate_proj":            as("blk.*.ffn_gate"),
		"layers.*.mlp.up_proj":              as("blk.*.ffn_up"),
		"layers.*.mlp.down_proj":            as("blk.*.ffn_down"),

		"layers.*.mlp.gate":                    as("blk.*.ffn_gate_inp"),
		"layers.*.mlp.experts.*.gate_proj":     as("blk.*.ffn_gate_exps"),
		"layers.*.mlp.experts.*.up_proj":       as("blk.*.ffn_up_exps"),
		"layers.*.mlp.experts.*.down_proj":     as("blk.*.ffn_down_exps"),
		"layers.*.mlp.experts.gate_up_proj":    by("blk.*.", gateUpHalves),
		"layers.*.mlp.experts.down_proj":       as("blk.*.ffn_down_exps.weight"),
		"layers.*.mlp.switch_mlp.gate_proj":    as("blk.*.ffn_gate_exps"), // MLX has experts in one piece
		"layers.*.mlp.switch_mlp.up_proj":      as("blk.*.ffn_up_exps"),
		"layers.*.mlp.switch_mlp.down_proj":    as("blk.*.ffn_down_exps"),
		"layers.*.mlp.shared_expert.gate_proj": as("blk.*.ffn_gate_shexp"),
		"layers.*.mlp.shared_expert.up_proj":   as("blk.*.ffn_up_shexp"),
		"layers.*.mlp.shared_expert.down_proj": as("blk.*.ffn_down_shexp"),
		"layers.*.mlp.shared_expert_gate":      as("blk.*.ffn_gate_inp_shexp"),
	}
}

// head leaves out an output matrix that is the embeddings again.
func head(c *converter, s *source) {
	if tied, _ := c.config.truth("tie_word_embeddings"); !tied {
		keep(c, s)
	}
}

// gateUpHalves takes the experts' gate and up apart, which lie one behind the other: [experts][gate, up][width].
func gateUpHalves(c *converter, s *source) {
	v := whole(s.Tensor).split(1, 2, 0)
	c.emit(s.to+"ffn_gate_exps.weight", []View{v.pick(1, 0)}, Same)
	c.emit(s.to+"ffn_up_exps.weight", []View{v.pick(1, 1)}, Same)
}

// gateUpRows takes apart a matrix that holds a gate and what it multiplies: [gate, up][width].
func gateUpRows(gate, up string) func(*converter, *source) {
	return func(c *converter, s *source) {
		v := whole(s.Tensor).split(0, 2, 0)
		c.emit(s.to+gate, []View{v.pick(0, 0)}, Same)
		c.emit(s.to+up, []View{v.pick(0, 1)}, Same)
	}
}

// rotated orders the rows of each head as ggml rotates them: pairs side by side, where transformers has the first
// halves of all pairs and then the second.
func rotated(heads func(*converter) int) func(*converter, *source) {
	return func(c *converter, s *source) {
		v := whole(s.Tensor).split(0, heads(c), 2, 0).swap(1, 2)
		c.emit(s.to, []View{v}, Same, s.Shape...)
	}
}

func (c *converter) heads() int { return c.config.need("num_attention_heads", "n_head", "n_heads") }

func (c *converter) kvHeads() int {
	return c.config.intOr(c.heads(), "num_key_value_heads", "n_kv_heads")
}

// headDim is the length of a head.
func (c *converter) headDim() int {
	n := c.config.intOr(c.width()/c.heads(), "head_dim")
	if n > mostDim {
		c.config.faultf("heads have %d values, want at most %d", n, mostDim)
		return 1
	}
	return n
}

func (c *converter) width() int { return c.config.need("hidden_size", "n_embd", "dim", "d_model") }

// usualPrefixes are in front of names in most models, and in models that also see.
func usualPrefixes() []string { return []string{"language_model.", "model."} }
