package convert

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// projector is how one class of models that see is written: as llama.cpp's clip files name it.
type projector struct {
	kind    string // clip.projector_type
	classes []string
	names   map[string]rule
	keys    func(c *converter, all object)
}

// projectors lists the classes whose towers become files of their own.
func projectors() []projector {
	return []projector{
		{"mlp", []string{"LlavaForConditionalGeneration"}, clipNames(map[string]rule{
			"linear_1": as("mm.0"), "linear_2": as("mm.2"),
		}), llavaKeys},
		{"gemma3", []string{"Gemma3ForConditionalGeneration"}, clipNames(map[string]rule{
			"mm_soft_emb_norm": by("mm.soft_emb_norm", plus1), "mm_input_projection_weight": as("mm.input_projection.weight"),
			"post_layernorm": as("v.post_ln"),
		}), gemma3VisionKeys},
		{"qwen2.5vl_merger", []string{"Qwen2_5_VLForConditionalGeneration"}, qwenVisionNames(map[string]rule{
			"merger.ln_q": as("v.post_ln"), "merger.mlp.*": as("mm.*"), "blocks.*.attn.qkv": by("v.blk.*.attn_", splitQKV),
			"blocks.*.mlp.gate_proj": as("v.blk.*.ffn_gate"), "blocks.*.mlp.up_proj": as("v.blk.*.ffn_up"),
			"blocks.*.mlp.down_proj": as("v.blk.*.ffn_down"),
		}), qwen25VisionKeys},
		{"qwen3vl_merger", []string{"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"},
			qwenVisionNames(map[string]rule{
				"merger.norm": as("v.post_ln"), "merger.linear_fc1": as("mm.0"), "merger.linear_fc2": as("mm.2"),
				"blocks.*.attn.qkv": as("v.blk.*.attn_qkv"), "blocks.*.mlp.linear_fc1": as("v.blk.*.ffn_up"),
				"blocks.*.mlp.linear_fc2": as("v.blk.*.ffn_down"), "pos_embed": as("v.position_embd"),
				"deepstack_merger_list.*.norm":       by("norm", deepstack),
				"deepstack_merger_list.*.linear_fc1": by("fc1", deepstack),
				"deepstack_merger_list.*.linear_fc2": by("fc2", deepstack),
			}), qwen3VisionKeys},
	}
}

// clipNames are the names of towers of CLIP's and SigLIP's kind, and others beside and over them.
func clipNames(others map[string]rule) map[string]rule {
	names := map[string]rule{
		"embeddings.class_embedding": as("v.class_embd"), "embeddings.patch_embedding": as("v.patch_embd"),
		"embeddings.position_embedding": as("v.position_embd"), "pre_layrnorm": as("v.pre_ln"), "post_layernorm": {},
		"encoder.layers.*.layer_norm1": as("v.blk.*.ln1"), "encoder.layers.*.layer_norm2": as("v.blk.*.ln2"),
		"encoder.layers.*.self_attn.q_proj": as("v.blk.*.attn_q"), "encoder.layers.*.self_attn.k_proj": as("v.blk.*.attn_k"),
		"encoder.layers.*.self_attn.v_proj":   as("v.blk.*.attn_v"),
		"encoder.layers.*.self_attn.out_proj": as("v.blk.*.attn_out"),
		"encoder.layers.*.mlp.fc1":            as("v.blk.*.ffn_up"), "encoder.layers.*.mlp.fc2": as("v.blk.*.ffn_down"),
	}
	for name, r := range others {
		names[name] = r
	}
	return names
}

// qwenVisionNames are the names that the towers of Qwen 2.5 VL and Qwen 3 VL have in common, and others.
func qwenVisionNames(others map[string]rule) map[string]rule {
	names := map[string]rule{
		"patch_embed.proj.weight": by("v.patch_embd.weight", eachFrame), "patch_embed.proj.bias": as("v.patch_embd.bias"),
		"blocks.*.norm1": as("v.blk.*.ln1"), "blocks.*.norm2": as("v.blk.*.ln2"), "blocks.*.attn.proj": as("v.blk.*.attn_out"),
	}
	for name, r := range others {
		names[name] = r
	}
	return names
}

// eachFrame takes the two frames apart that a patch's matrix has: [rows][channels][frames][lines][columns].
func eachFrame(c *converter, s *source) {
	v := whole(s.Tensor)
	if len(v.Dims) != 5 || v.Dims[2].N != 2 {
		failf("has the shape %v, want five dimensions with two frames", s.Shape)
	}
	for i, end := range []string{"", ".1"} {
		frame := v.pick(2, i)
		c.emit(s.to+end, []View{frame}, Same, s.Shape[0], s.Shape[1], s.Shape[3], s.Shape[4])
	}
}

// splitQKV takes apart the matrix, or the biases, of queries, keys and values.
func splitQKV(c *converter, s *source) {
	v := whole(s.Tensor).split(0, 3, 0)
	stem, suffix := s.to, ""
	for _, end := range []string{".weight", ".bias"} {
		if rest, ok := strings.CutSuffix(s.to, end); ok {
			stem, suffix = rest, end
		}
	}
	for i, part := range []string{"q", "k", "v"} {
		shape := slices.Clone(s.Shape)
		shape[0] /= 3
		c.emit(stem+part+suffix, []View{v.pick(0, i)}, Same, shape...)
	}
}

// deepstack names a tensor by the layer whose rows it merges.
func deepstack(c *converter, s *source) {
	at := c.config.numbers("deepstack_visual_indexes")
	if s.layer < 0 || s.layer >= len(at) {
		failf("is merger %d of %d", s.layer, len(at))
	}
	c.emit("v.deepstack."+strconv.Itoa(int(at[s.layer]))+"."+s.to, []View{whole(s.Tensor)}, Same)
}

// PlanVision makes the plan of the file that a folder's tower becomes, as llama.cpp's mmproj files are; nil: the folder
// has none that is known.
func PlanVision(f *Folder, o Options) (*Model, error) {
	all, err := parseObject("config.json", f.Texts["config.json"])
	if err != nil {
		return nil, err
	}
	classes := all.strings("architectures")
	known := projectors()
	i := slices.IndexFunc(known, func(p projector) bool {
		return slices.ContainsFunc(classes, func(c string) bool { return slices.Contains(p.classes, c) })
	})
	vision := all.object("vision_config")
	if i < 0 || len(vision.values) == 0 {
		return nil, nil //nolint:nilnil // a folder without a tower is no error
	}
	p := &known[i]
	c := &converter{folder: seeing(f), options: o, config: vision, meta: new(meta.Map), byName: map[string]*output{},
		family: &family{arch: "clip.vision", names: p.names, noUsualNames: true,
			prefixes: []string{"model.", "visual.", "vision_tower.", "vision_model.", "multi_modal_projector."}}}
	if err := c.unpack(all); err != nil {
		return nil, err
	}
	c.meta.Set("general.architecture", "clip")
	c.meta.Set("general.type", "mmproj")
	c.meta.Set("general.file_type", o.FileType)
	c.meta.Set("clip.has_vision_encoder", true)
	c.meta.Set("clip.projector_type", p.kind)
	if all.hasAny("image_token_id", "image_token_index") { // no key of llama.cpp's says it
		c.meta.Set("sluice.picture_token", uint32(all.int("image_token_id", "image_token_index")))
	}
	p.keys(c, all)
	if err := c.mapTensors(); err != nil {
		return nil, err
	}
	tensors, err := c.finish()
	if err == nil && len(tensors) == 0 {
		err = errors.New("it holds no tensors of a tower, though config.json describes one")
	}
	if err := errors.Join(err, all.err()); err != nil {
		return nil, err
	}
	return &Model{Meta: c.meta, Tensors: tensors}, nil
}

// seeing is a folder with the tensors that towers are made of.
func seeing(f *Folder) *Folder {
	only := *f
	only.Tensors = nil
	for _, t := range f.Tensors {
		for _, part := range []string{"visual.", "vision_tower.", "vision_model.", "multi_modal_projector."} {
			if strings.HasPrefix(t.Name, part) || strings.Contains(t.Name, "."+part) {
				only.Tensors = append(only.Tensors, t)
				break
			}
		}
	}
	return &only
}

// towerKeys writes the keys that all towers have. layers is how many of its blocks are used.
func (c *converter) towerKeys(layers, image int, eps float64) {
	c.count("image_size", image)
	c.count("patch_size", c.config.need("patch_size"))
	c.count("embedding_length", c.config.need("hidden_size"))
	c.count("feed_forward_length", c.config.need("intermediate_size"))
	c.count("block_count", layers)
	c.count("attention.head_count", c.config.need("num_attention_heads", "num_heads"))
	c.number("attention.layer_norm_epsilon", eps)
	mean, deviation := c.normalisation()
	c.set("image_mean", mean)
	c.set("image_std", deviation)
	c.leaveOut(layers)
}

// leaveOut has rules leave out tensors with numbers from a layer on.
func (c *converter) leaveOut(layers int) {
	c.config.values["num_hidden_layers"] = json.Number(strconv.Itoa(layers))
}

// pixelKeys writes how many pixels a picture has at least and at most.
func (c *converter) pixelKeys() {
	p, err := parseObject("preprocessor_config.json", c.folder.Texts["preprocessor_config.json"])
	if err != nil {
		return // normalisation says so
	}
	size := p.object("size")
	for _, names := range [][3]string{{"image_min_pixels", "min_pixels", "shortest_edge"},
		{"image_max_pixels", "max_pixels", "longest_edge"}} {
		if n := max(p.int(names[1]), size.int(names[2])); n > 0 {
			c.count(names[0], n)
		}
	}
}

// normalisation is what is subtracted from values of 0 to 1, and what they are divided by.
func (c *converter) normalisation() (mean, deviation []float32) {
	p, err := parseObject("preprocessor_config.json", c.folder.Texts["preprocessor_config.json"])
	if err != nil {
		c.config.faultf("%v", err)
	}
	three := func(key string, otherwise []float32) []float32 {
		x := p.numbers(key)
		if len(x) != 3 {
			return otherwise
		}
		return []float32{float32(x[0]), float32(x[1]), float32(x[2])}
	}
	return three("image_mean", []float32{0.48145466, 0.4578275, 0.40821073}),
		three("image_std", []float32{0.26862954, 0.26130258, 0.27577711})
}

func llavaKeys(c *converter, all object) {
	layers := c.config.need("num_hidden_layers")
	at, _ := all.float("vision_feature_layer")
	if at == 0 {
		at = -2
	}
	if at < 0 {
		at += float64(layers + 1)
	}
	if at != float64(int(at)) || at < 1 || int(at) > layers {
		all.faultf("vision_feature_layer is not among %d layers: want one, such as -2", layers)
		at = 1
	}
	if how := all.string("vision_feature_select_strategy"); how != "" && how != "default" {
		all.faultf("vision_feature_select_strategy is %.40q, want default", how)
	}
	c.towerKeys(int(at), c.config.need("image_size"), c.config.floatOr(1e-5, "layer_norm_eps"))
	c.count("projection_dim", all.object("text_config").intOr(1, "hidden_size"))
	c.meta.Set("clip.use_gelu", c.config.string("hidden_act") == "gelu")
}

func gemma3VisionKeys(c *converter, all object) {
	c.towerKeys(c.config.need("num_hidden_layers"), c.config.need("image_size"), c.config.floatOr(1e-6, "layer_norm_eps"))
	c.count("projection_dim", all.object("text_config").need("hidden_size"))
	side := c.config.need("image_size") / c.config.need("patch_size")
	tokens := all.intOr(256, "mm_tokens_per_image")
	factor := 1
	for (side/(factor+1))*(side/(factor+1)) >= tokens {
		factor++
	}
	if side%factor != 0 || side/factor*(side/factor) != tokens {
		all.faultf("mm_tokens_per_image is %d for %d × %d patches, want a square that divides them", tokens, side, side)
	}
	c.count("projector.scale_factor", factor)
	c.meta.Set("clip.use_gelu", true)
}

// qwenVisionKeys writes the keys that Qwen's towers have in common.
func qwenVisionKeys(c *converter) {
	layers := c.config.need("depth")
	c.towerKeys(layers, c.config.need("patch_size")*2*14, c.config.floatOr(1e-6, "rms_norm_eps", "layer_norm_eps"))
	c.leaveOut(max(layers, 3)) // parts of a merger have numbers, too: 0 and 2
	c.count("projection_dim", c.config.need("out_hidden_size"))
	c.count("spatial_merge_size", c.config.intOr(2, "spatial_merge_size"))
	c.pixelKeys()
}

func qwen25VisionKeys(c *converter, _ object) {
	qwenVisionKeys(c)
	c.meta.Set("clip.use_silu", true)
	c.countOf("window_size", "window_size")
	var full []int32
	for _, l := range c.config.numbers("fullatt_block_indexes") {
		full = append(full, int32(l))
	}
	c.set("wa_layer_indexes", full)
	if n := len(full); n > 0 && full[0] > 0 { // older readers know a pattern alone: each n-th block is whole
		c.count("n_wa_pattern", int(full[0])+1)
	}
}

func qwen3VisionKeys(c *converter, _ object) {
	qwenVisionKeys(c)
	c.meta.Set("clip.use_gelu", true)
	c.countOf("num_position_embeddings", "num_position_embeddings")
	merged := make([]bool, c.config.need("depth"))
	for _, l := range c.config.numbers("deepstack_visual_indexes") {
		if l != float64(int(l)) || int(l) < 0 || int(l) >= len(merged) {
			c.config.faultf("deepstack_visual_indexes has %v, want layers below %d", l, len(merged))
			continue
		}
		merged[int(l)] = true
	}
	c.set("is_deepstack_layers", merged)
}
