// Package visiontest makes tiny towers of random weights, one for each family that has no reference of its own library:
// what they make of pictures is compared with what llama.cpp makes of the same files.
package visiontest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Sizes of all towers.
const (
	Text  = 48 // features of a row of text
	Patch = 8  // pixels
	width = 32
	heads = 2
	ffn   = 48
	deep  = 2 // layers
)

// Tiny is a tower of random weights, and a picture that it computes without resizing it.
type Tiny struct {
	Name, Kind string
	Size       [2]int // width and height of a picture, in pixels

	keys    []any // names and values, beside what all have
	tensors []tensor
}

type tensor struct {
	name  string
	shape []int
}

// All lists them.
func All() []Tiny {
	return []Tiny{
		{"qwen2vl", "qwen2vl_merger", [2]int{80, 48}, []any{"clip.vision.spatial_merge_size", uint32(2)}, join(twoFrames(false),
			blocks("ln1+ ln2+ attn_q+ attn_k+ attn_v+ attn_out+ ffn_up+ ffn_down+"), norms("v.post_ln+"),
			matrix("mm.0", 4*width, 64), matrix("mm.2", 64, Text))},
		{"glm4v", "glm4v", [2]int{64, 64}, []any{"clip.use_silu", true, "clip.vision.image_size", uint32(64)}, join(
			twoFrames(true), norms("v.norm_embd v.post_ln"), one("mm.post_norm.weight", Text), one("mm.post_norm.bias", Text), one("v.position_embd.weight", width, 64),
			blocks("ln1 ln2 attn_qkv attn_out ffn_gate ffn_up ffn_down"),
			one("mm.patch_merger.weight", 2, 2, width, Text), one("mm.patch_merger.bias", Text), weight("mm.model.fc", Text, Text),
			weight("mm.gate", Text, 40), weight("mm.up", Text, 40), weight("mm.down", 40, Text))},
		{"pixtral", "pixtral", [2]int{48, 32}, []any{"clip.use_silu", true}, join(
			pixtral(), weight("mm.1", width, Text))},
		{"mistral3", "pixtral", [2]int{80, 48}, []any{"clip.use_silu", true, "clip.vision.spatial_merge_size", uint32(2)}, join(
			pixtral(), weight("mm.1", width, Text), norms("mm.input_norm"), weight("mm.patch_merger", 4*width, width),
			qkNorms(width))},
		{"gemma4 small", "gemma4v", [2]int{120, 72}, []any{"clip.use_gelu", true, "clip.vision.image_mean", []float32{0, 0, 0},
			"clip.vision.image_std", []float32{1, 1, 1}}, join(gemma4(), limits())},
		{"gemma4 large", "gemma4v", [2]int{72, 120}, []any{"clip.use_gelu", true, "clip.vision.image_mean", []float32{0, 0, 0},
			"clip.vision.image_std", []float32{1, 1, 1}}, join(gemma4(), one("v.std_bias", width), one("v.std_scale", width))},
		{"internvl", "internvl", [2]int{48, 48}, []any{"clip.use_gelu", true, "clip.vision.projector.scale_factor", uint32(2)},
			internVL()},
		{"idefics3", "idefics3", [2]int{48, 48}, []any{"clip.use_gelu", true, "clip.vision.projector.scale_factor", uint32(3),
			"clip.vision.preproc_image_size", uint32(96)}, join(patches(), one("v.patch_embd.bias", width),
			one("v.position_embd.weight", width, 36), norms("v.post_ln+"),
			blocks("ln1+ ln2+ attn_q+ attn_k+ attn_v+ attn_out+ ffn_up+ ffn_down+"), weight("mm.model.fc", 9*width, Text))},
		{"llama4", "llama4", [2]int{48, 48}, []any{"clip.use_gelu", true, "clip.vision.projector.scale_factor", uint32(2)},
			llama4()},
		{"minicpm", "resampler", [2]int{56, 40}, []any{"clip.use_gelu", true, "clip.minicpmv_version", int32(3),
			"clip.minicpmv_query_num", uint32(5)}, minicpm()},
	}
}

// Width is that of its rows of text.
func (x *Tiny) Width() int {
	if x.Kind == "resampler" {
		return 128 // heads have as many values
	}
	return Text
}

func minicpm() []tensor {
	const text = 128
	all := join(patches(), one("v.patch_embd.bias", width), one("v.position_embd.weight", width, 70*70), norms("v.post_ln+"),
		blocks("ln1+ ln2+ attn_q+ attn_k+ attn_v+ attn_out+ ffn_up+ ffn_down+"), weight("resampler.kv", width, text),
		weight("resampler.proj", text, text), one("resampler.query", text, 5), one("resampler.pos_embed_k", text))
	for _, name := range strings.Fields("ln_q ln_kv ln_post") {
		all = append(all, tensor{"resampler." + name + ".weight", []int{text}}, tensor{"resampler." + name + ".bias", []int{text}})
	}
	for _, name := range strings.Fields("q k v out") {
		all = append(all, matrix("resampler.attn."+name, text, text)...)
	}
	return all
}

func join(lists ...[]tensor) (all []tensor) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func one(name string, shape ...int) []tensor { return []tensor{{name, shape}} }

func weight(name string, in, out int) []tensor { return one(name+".weight", in, out) }

func matrix(name string, in, out int) []tensor {
	return append(weight(name, in, out), tensor{name + ".bias", []int{out}})
}

// norms lists norms over a row; those with a plus have a bias.
func norms(names string) (all []tensor) {
	for _, name := range strings.Fields(names) {
		name, biased := strings.CutSuffix(name, "+")
		all = append(all, tensor{name + ".weight", []int{width}})
		if biased {
			all = append(all, tensor{name + ".bias", []int{width}})
		}
	}
	return all
}

// blocks lists the parts of each layer; those with a plus have a bias.
func blocks(parts string) (all []tensor) {
	shapes := map[string][]int{"attn_qkv": {width, 3 * width}, "ffn_up": {width, ffn}, "ffn_gate": {width, ffn},
		"ffn_down": {ffn, width}}
	for l := range deep {
		for _, part := range strings.Fields(parts) {
			part, biased := strings.CutSuffix(part, "+")
			name, shape := fmt.Sprintf("v.blk.%d.%s", l, part), shapes[part]
			switch {
			case shape != nil:
			case strings.HasPrefix(part, "attn_") && !strings.HasSuffix(part, "norm"):
				shape = []int{width, width}
			default:
				shape = []int{width}
			}
			all = append(all, tensor{name + ".weight", shape})
			if biased {
				all = append(all, tensor{name + ".bias", shape[len(shape)-1:]})
			}
		}
	}
	return all
}

func patches() []tensor { return one("v.patch_embd.weight", Patch, Patch, 3, width) }

func twoFrames(biased bool) []tensor {
	all := append(patches(), tensor{"v.patch_embd.weight.1", []int{Patch, Patch, 3, width}})
	if biased {
		all = append(all, tensor{"v.patch_embd.bias", []int{width}})
	}
	return all
}

func pixtral() []tensor {
	return join(patches(), norms("v.pre_ln"), blocks("ln1 ln2 attn_q attn_k attn_v attn_out ffn_gate ffn_up ffn_down"),
		weight("mm.2", Text, Text), one("v.token_embd.img_break", Text))
}

func gemma4() []tensor {
	return join(patches(), one("v.position_embd.weight", width, 16, 2), qkNorms(width/heads),
		blocks("ln1 ln2 attn_q attn_k attn_v attn_out attn_post_norm ffn_gate ffn_up ffn_down ffn_post_norm"),
		weight("mm.input_projection", width, Text))
}

func qkNorms(n int) (all []tensor) {
	for l := range deep {
		for _, part := range []string{"q", "k"} {
			all = append(all, tensor{fmt.Sprintf("v.blk.%d.attn_%s_norm.weight", l, part), []int{n}})
		}
	}
	return all
}

// limits are those of the small tower's matrices: of the first layer's around zero, of the second one's not.
func limits() (all []tensor) {
	for l := range deep {
		for _, part := range strings.Fields("attn_q attn_k attn_v attn_out ffn_gate ffn_up ffn_down") {
			for _, end := range []string{"input_min", "input_max", "output_min", "output_max"} {
				all = append(all, tensor{fmt.Sprintf("v.blk.%d.%s.%s", l, part, end), []int{1}})
			}
		}
	}
	return all
}

func internVL() []tensor {
	return join(patches(), one("v.patch_embd.bias", width), one("v.class_embd", width), one("v.position_embd.weight", width, 37),
		blocks("ln1+ ln2+ attn_q+ attn_k+ attn_v+ attn_out+ ffn_up+ ffn_down+ ls1 ls2"),
		one("mm.model.mlp.0.weight", 4*width), one("mm.model.mlp.0.bias", 4*width),
		matrix("mm.model.mlp.1", 4*width, Text), matrix("mm.model.mlp.3", Text, Text))
}

func llama4() []tensor {
	return join(one("v.patch_embd.weight", 3*Patch*Patch, width), one("v.class_embd", width),
		one("v.position_embd.weight", width, 37), norms("v.pre_ln+ v.post_ln+"),
		blocks("ln1+ ln2+ attn_q+ attn_k+ attn_v+ attn_out+ ffn_up+ ffn_down+"),
		weight("mm.model.mlp.1", 4*width, 64), weight("mm.model.mlp.2", 64, 64), weight("mm.model.fc", 64, Text))
}

// values are a tensor's, the same for the same name in every tower of the name.
func (x *Tiny) values(t *tensor) []float32 {
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	h := fnv.New64a()
	fmt.Fprint(h, x.Name, " ", t.name)
	r := rand.New(rand.NewPCG(h.Sum64(), 34))
	all := make([]float32, n)
	scale, middle := 2/math.Sqrt(float64(n)/float64(t.shape[len(t.shape)-1])), 0.0
	switch {
	case strings.HasSuffix(t.name, "_min"):
		all[0] = -1.25
		return all
	case strings.HasSuffix(t.name, "_max"):
		all[0] = 1.25
		if strings.HasPrefix(t.name, "v.blk.1.") {
			all[0] = 0.75
		}
		return all
	case len(t.shape) == 1 && strings.HasSuffix(t.name, ".weight") || t.name == "v.std_scale":
		scale, middle = 0.3, 1
	case len(t.shape) == 1:
		scale = 0.3
	case strings.HasPrefix(t.name, "v.position"):
		scale = 0.5
	}
	for i := range all {
		all[i] = float32(middle + scale*(2*r.Float64()-1))
	}
	return all
}

// Meta is the metadata of the tower's file.
func (x *Tiny) Meta() *meta.Map {
	m := &meta.Map{}
	for _, list := range [][]any{{"general.architecture", "clip", "general.type", "mmproj", "clip.has_vision_encoder", true,
		"clip.projector_type", x.Kind, "clip.vision.image_size", uint32(48), "clip.vision.patch_size", uint32(Patch),
		"clip.vision.embedding_length", uint32(width), "clip.vision.feed_forward_length", uint32(ffn),
		"clip.vision.block_count", uint32(deep), "clip.vision.attention.head_count", uint32(heads),
		"clip.vision.projection_dim", uint32(Text), "clip.vision.attention.layer_norm_epsilon", float32(1e-6),
		"clip.vision.image_mean", []float32{0.5, 0.5, 0.5}, "clip.vision.image_std", []float32{0.5, 0.25, 0.5}}, x.keys} {
		for i := 0; i < len(list); i += 2 {
			m.Set(list[i].(string), list[i+1])
		}
	}
	return m
}

// Tensors lists the tensors of the tower's file.
func (x *Tiny) Tensors() (all []gguf.Tensor) {
	for _, one := range x.tensors {
		all = append(all, gguf.Tensor{Name: one.name, Type: quant.F32, Shape: one.shape})
	}
	return all
}

// Bytes is the tower's file.
func (x *Tiny) Bytes(t testing.TB) []byte {
	t.Helper()
	m, tensors := x.Meta(), x.Tensors()
	var out bytes.Buffer
	at := 0
	require.NoError(t, gguf.Write(&out, m, tensors, func(_ *gguf.Tensor, w io.Writer) error {
		at++
		return binary.Write(w, binary.LittleEndian, x.values(&x.tensors[at-1]))
	}))
	return out.Bytes()
}

// File is the tower's file, open until the test ends.
func (x *Tiny) File(t testing.TB) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(x.Name, x.Bytes(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// Pixels are a picture of that size: a number of each colour, line by line.
func Pixels(w, h int) []byte {
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	all := make([]byte, 3*w*h)
	for i := range all {
		all[i] = byte(r.UintN(256))
	}
	return all
}

// Wide is the tower with rows of another width, and with positions for pictures of any size; Gemma 4's alone can have
// them.
func (x Tiny) Wide(text int) Tiny {
	x.tensors = slices.Clone(x.tensors)
	for i, t := range x.tensors {
		switch t.name {
		case "mm.input_projection.weight":
			x.tensors[i].shape = []int{width, text}
		case "v.position_embd.weight":
			x.tensors[i].shape = []int{width, 256, 2}
		}
	}
	return x
}
