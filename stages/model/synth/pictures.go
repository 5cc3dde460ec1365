package synth

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/meta"
)

// Picture is the shape of a network that pictures are made with, as a file of its own: with the names that its authors
// published it with, or, of T5, those of llama.cpp.
type Picture struct {
	Name string
	Arch string // general.architecture
	// make lists its tensors.
	make func(l *listed)
	// Vocabulary, if not nil, adds keys of a small vocabulary of as many tokens as the network has.
	Vocabulary func(m *meta.Map)
}

// FindPicture returns a shape by its name, as published or tiny: of the same names and heads, with few narrow layers,
// so that the parts of a tiny model fit each other. Z-Image's tiny transformer reads rows of 256 features.
func FindPicture(name string, tiny bool) (*Picture, bool) {
	all := Pictures(tiny)
	i := slices.IndexFunc(all, func(p Picture) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return &all[i], true
}

// Pictures lists the networks that pictures are made with.
func Pictures(tiny bool) []Picture {
	z, f := zimage{30, 2, 3840, 10240, 1024, 2560}, flux{19, 38, 3072, 4096, 768, false}
	a, up := autoencoder{[]int{128, 256, 512, 512}, 2}, rrdb{64, 32, 23}
	c, t := clip{12, 768, 3072, 49408}, t5{24, 4096, 10240, 64, 32128}
	if tiny {
		z, f = zimage{1, 1, 256, 512, 64, 256}, flux{1, 2, 256, 128, 64, false}
		a, up = autoencoder{[]int{32, 32, 64, 64}, 1}, rrdb{8, 4, 1}
		c, t = clip{2, 64, 128, clipSmall}, t5{2, 128, 256, 2, t5Small}
	}
	dev := f
	dev.guided = true
	return []Picture{
		{"z-image-turbo", "lumina2", z.list, nil}, {"flux-schnell", "flux", f.list, nil}, {"flux-dev", "flux", dev.list, nil},
		{"flux-ae", "vae", a.list, nil}, {"clip-l", "clip_l", c.list, c.vocabulary}, {"t5-xxl", "t5encoder", t.list, t.vocabulary},
		{"realesrgan-x4", "rrdb", up.list, nil},
	}
}

// Tensors lists a network's weights.
func (p *Picture) Tensors() []Tensor {
	var l listed
	p.make(&l)
	return l.all
}

// listed are tensors as they are listed.
type listed struct{ all []Tensor }

// vector is a bias or the weights of a norm.
func (l *listed) vector(name string, n int, mean float64) {
	l.all = append(l.all, Tensor{Name: name, Shape: []int{n}, Vector: true, Mean: mean, Dev: 0.02})
}

// matrix is a product without a bias; gain says how large its results are beside what it takes.
func (l *listed) matrix(name string, in, out int, gain float64) {
	l.all = append(l.all, Tensor{Name: name + ".weight", Shape: []int{in, out}, Dev: gain / math.Sqrt(float64(in))})
}

// linear is a product and a bias.
func (l *listed) linear(name string, in, out int, gain float64) {
	l.matrix(name, in, out, gain)
	l.vector(name+".bias", out, 0)
}

// norm is the weights of a norm, and biases if it has them.
func (l *listed) norm(name string, n int, bias bool) {
	if l.vector(name+".weight", n, 1); bias {
		l.vector(name+".bias", n, 0)
	}
}

// conv is a convolution with a bias.
func (l *listed) conv(name string, size, in, out int) {
	l.all = append(l.all, Tensor{Name: name + ".weight", Shape: []int{size, size, in, out},
		Dev: 1 / math.Sqrt(float64(size*size*in))})
	l.vector(name+".bias", out, 0)
}

// Numbers that the published models share.
const (
	deep  = 16 // channels of a latent
	patch = 4 * deep
	waves = 256 // of a time
	head  = 128 // features of a transformer's head
)

// zimage is the sizes of a Z-Image transformer.
type zimage struct{ layers, refiners, width, inner, middle, text int }

func (z zimage) list(l *listed) {
	condition := min(z.width, 256)
	l.linear("x_embedder", patch, z.width, 1)
	l.norm("cap_embedder.0", z.text, false)
	l.linear("cap_embedder.1", z.text, z.width, 1)
	for _, pad := range []string{"x_pad_token", "cap_pad_token"} {
		l.all = append(l.all, Tensor{Name: pad, Shape: []int{z.width, 1}, Vector: true, Dev: 1})
	}
	l.linear("t_embedder.mlp.0", waves, z.middle, 1)
	l.linear("t_embedder.mlp.2", z.middle, condition, 1)
	block := func(name string, timed bool) {
		l.matrix(name+"attention.qkv", z.width, 3*z.width, 1)
		l.matrix(name+"attention.out", z.width, z.width, 1)
		for _, n := range []string{"attention.q_norm", "attention.k_norm"} {
			l.norm(name+n, head, false)
		}
		for _, n := range []string{"attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"} {
			l.norm(name+n, z.width, false)
		}
		l.matrix(name+"feed_forward.w1", z.width, z.inner, 1)
		l.matrix(name+"feed_forward.w2", z.inner, z.width, 1)
		l.matrix(name+"feed_forward.w3", z.width, z.inner, 1)
		if timed {
			l.linear(name+"adaLN_modulation.0", condition, 4*z.width, 0.2)
		}
	}
	for i := range z.refiners {
		block(fmt.Sprintf("noise_refiner.%d.", i), true)
		block(fmt.Sprintf("context_refiner.%d.", i), false)
	}
	for i := range z.layers {
		block(fmt.Sprintf("layers.%d.", i), true)
	}
	l.linear("final_layer.linear", z.width, patch, 1)
	l.linear("final_layer.adaLN_modulation.1", condition, z.width, 0.2)
}

// flux is the sizes of a FLUX.1 transformer.
type flux struct {
	doubles, singles, width, text, pooled int
	guided                                bool
}

func (f flux) list(l *listed) {
	const modulation = 0.2
	l.linear("img_in", patch, f.width, 1)
	l.linear("txt_in", f.text, f.width, 1)
	embedder := func(name string, in int) {
		l.linear(name+".in_layer", in, f.width, 1)
		l.linear(name+".out_layer", f.width, f.width, 1)
	}
	embedder("time_in", waves)
	embedder("vector_in", f.pooled)
	if f.guided {
		embedder("guidance_in", waves)
	}
	norms := func(name string) {
		l.vector(name+"norm.query_norm.scale", head, 1)
		l.vector(name+"norm.key_norm.scale", head, 1)
	}
	for i := range f.doubles {
		for _, kind := range []string{"img", "txt"} {
			name := fmt.Sprintf("double_blocks.%d.%s_", i, kind)
			l.linear(name+"mod.lin", f.width, 6*f.width, modulation)
			l.linear(name+"attn.qkv", f.width, 3*f.width, 1)
			norms(name + "attn.")
			l.linear(name+"attn.proj", f.width, f.width, 1)
			l.linear(name+"mlp.0", f.width, 4*f.width, 1)
			l.linear(name+"mlp.2", 4*f.width, f.width, 1)
		}
	}
	for i := range f.singles {
		name := fmt.Sprintf("single_blocks.%d.", i)
		l.linear(name+"modulation.lin", f.width, 3*f.width, modulation)
		l.linear(name+"linear1", f.width, 7*f.width, 1)
		norms(name)
		l.linear(name+"linear2", 5*f.width, f.width, 1)
	}
	l.linear("final_layer.linear", f.width, patch, 1)
	l.linear("final_layer.adaLN_modulation.1", f.width, 2*f.width, modulation)
}

// autoencoder is the channels of an autoencoder's levels, the finest one first, and the blocks of the encoder's.
type autoencoder struct {
	channels []int
	blocks   int
}

func (a autoencoder) list(l *listed) {
	const colours = 3
	n := len(a.channels)
	deepest := a.channels[n-1]
	residual := func(name string, in, out int) {
		l.norm(name+"norm1", in, true)
		l.conv(name+"conv1", 3, in, out)
		l.norm(name+"norm2", out, true)
		if l.conv(name+"conv2", 3, out, out); in != out {
			l.conv(name+"nin_shortcut", 1, in, out)
		}
	}
	middle := func(half string) {
		residual(half+"mid.block_1.", deepest, deepest)
		l.norm(half+"mid.attn_1.norm", deepest, true)
		for _, m := range []string{"q", "k", "v", "proj_out"} {
			l.conv(half+"mid.attn_1."+m, 1, deepest, deepest)
		}
		residual(half+"mid.block_2.", deepest, deepest)
	}
	in := a.channels[0]
	l.conv("encoder.conv_in", 3, colours, in)
	for level, out := range a.channels {
		for i := range a.blocks {
			residual(fmt.Sprintf("encoder.down.%d.block.%d.", level, i), in, out)
			in = out
		}
		if level < n-1 {
			l.conv(fmt.Sprintf("encoder.down.%d.downsample.conv", level), 3, out, out)
		}
	}
	middle("encoder.")
	l.norm("encoder.norm_out", deepest, true)
	l.conv("encoder.conv_out", 3, deepest, 2*deep)
	l.conv("decoder.conv_in", 3, deep, deepest)
	middle("decoder.")
	in = deepest
	for level, out := range slices.Backward(a.channels) {
		for i := range a.blocks + 1 {
			residual(fmt.Sprintf("decoder.up.%d.block.%d.", level, i), in, out)
			in = out
		}
		if level > 0 {
			l.conv(fmt.Sprintf("decoder.up.%d.upsample.conv", level), 3, out, out)
		}
	}
	l.norm("decoder.norm_out", in, true)
	l.conv("decoder.conv_out", 3, in, colours)
}

// clip is the sizes of CLIP's encoder of texts.
type clip struct{ layers, width, inner, tokens int }

func (c clip) list(l *listed) {
	const positions = 77
	const table = "text_model.embeddings."
	l.all = append(l.all, Tensor{Name: table + "token_embedding.weight", Shape: []int{c.width, c.tokens}, Dev: 0.5},
		Tensor{Name: table + "position_embedding.weight", Shape: []int{c.width, positions}, Vector: true, Dev: 0.5})
	for i := range c.layers {
		name := fmt.Sprintf("text_model.encoder.layers.%d.", i)
		l.norm(name+"layer_norm1", c.width, true)
		for _, m := range []string{"q_proj", "k_proj", "v_proj", "out_proj"} {
			l.linear(name+"self_attn."+m, c.width, c.width, 1)
		}
		l.norm(name+"layer_norm2", c.width, true)
		l.linear(name+"mlp.fc1", c.width, c.inner, 1)
		l.linear(name+"mlp.fc2", c.inner, c.width, 1)
	}
	l.norm("text_model.final_layer_norm", c.width, true)
}

// t5 is the sizes of T5's encoder, of version 1.1.
type t5 struct{ layers, width, inner, heads, tokens int }

func (t t5) list(l *listed) {
	const buckets, head = 32, 64
	l.all = append(l.all, Tensor{Name: "token_embd.weight", Shape: []int{t.width, t.tokens}, Dev: 1})
	all := t.heads * head
	for i := range t.layers {
		name := fmt.Sprintf("enc.blk.%d.", i)
		l.norm(name+"attn_norm", t.width, false)
		l.matrix(name+"attn_q", t.width, all, 1/math.Sqrt(head)) // scores are not made smaller
		l.matrix(name+"attn_k", t.width, all, 1)
		l.matrix(name+"attn_v", t.width, all, 1)
		l.matrix(name+"attn_o", all, t.width, 1)
		if i == 0 {
			l.all = append(l.all, Tensor{Name: name + "attn_rel_b.weight", Shape: []int{t.heads, buckets}, Vector: true, Dev: 1})
		}
		l.norm(name+"ffn_norm", t.width, false)
		l.matrix(name+"ffn_gate", t.width, t.inner, 1)
		l.matrix(name+"ffn_up", t.width, t.inner, 1)
		l.matrix(name+"ffn_down", t.inner, t.width, 1)
	}
	l.norm("enc.output_norm", t.width, false)
}

// rrdb is the features of an upscaler's rows, those that a convolution adds, and blocks.
type rrdb struct{ features, growth, blocks int }

func (r rrdb) list(l *listed) {
	const colours = 3
	l.conv("conv_first", 3, colours, r.features)
	for i := range r.blocks {
		for k := 1; k <= 3; k++ {
			name := fmt.Sprintf("body.%d.rdb%d.conv", i, k)
			for j := range 4 {
				l.conv(fmt.Sprint(name, j+1), 3, r.features+j*r.growth, r.growth)
			}
			l.conv(name+"5", 3, r.features+4*r.growth, r.features)
		}
	}
	for _, name := range []string{"conv_body", "conv_up1", "conv_up2", "conv_hr"} {
		l.conv(name, 3, r.features, r.features)
	}
	l.conv("conv_last", 3, r.features, colours)
}
