package convert

// eagleClass is what most folders of EAGLE-3 call themselves; others name the class of their layer.
const eagleClass = "LlamaForCausalLMEagle3"

// eagle3 is EAGLE-3: a layer of Llama's that guesses tokens for another model, whose tokenizer it has, and whose
// matrices for tokens it may use.
func eagle3() family {
	return family{
		arch: "eagle3", classes: []string{eagleClass, "Eagle3Speculator", "Eagle3DraftModel"},
		prefixes: append(usualPrefixes(), "midlayer.", "layers.0."),
		names: map[string]rule{
			"fc": as("fc"), "d2t": by("d2t", placed), "t2d": {}, // the same the other way round
			"hidden_norm": as("blk.0.attn_norm_2"), "input_layernorm": as("blk.0.attn_norm"),
			"self_attn.q_proj":         by("blk.0.attn_q", rotated((*converter).heads)),
			"self_attn.k_proj":         by("blk.0.attn_k", rotated((*converter).kvHeads)),
			"self_attn.v_proj":         as("blk.0.attn_v"),
			"self_attn.o_proj":         as("blk.0.attn_output"),
			"post_attention_layernorm": as("blk.0.ffn_norm"),
			"mlp.gate_proj":            as("blk.0.ffn_gate"),
			"mlp.up_proj":              as("blk.0.ffn_up"),
			"mlp.down_proj":            as("blk.0.ffn_down"),
		},
		keys: eagleKeys, extra: llama3Factors, vocab: func(*converter) error { return nil }, // it has its target's
	}
}

// placed has each token where it stands, instead of how far that is from its number.
func placed(c *converter, s *source) {
	if len(s.Shape) != 1 {
		failf("shape is %v, want one dimension", s.Shape)
	}
	c.emit(s.to, []View{whole(s.Tensor)}, PlusIndex)
}

// eagleKeys writes after which of its target's layers it takes hidden states: folders number the layers that leave
// them, files the layers that read them.
func eagleKeys(c *converter) {
	llamaKeys(c)
	c.count("target_hidden_size", c.config.intOr(c.width(), "target_hidden_size"))
	normed, _ := c.config.truth("norm_before_residual")
	c.set("norm_before_residual", normed)
	ids := c.config.object("eagle_config").numbers("eagle_aux_hidden_state_layer_ids")
	if ids == nil {
		ids = c.config.numbers("eagle_aux_hidden_state_layer_ids")
	}
	if ids == nil {
		return // the usual ones, which follow from the number of its target's layers
	}
	layers := make([]int32, len(ids))
	for i, x := range ids {
		if !(x >= 0 && x < mostLayers) {
			c.config.faultf("eagle_aux_hidden_state_layer_ids has %v, want numbers of layers", x)
			return
		}
		layers[i] = int32(x) + 1
	}
	c.set("extract_layers", layers)
}
