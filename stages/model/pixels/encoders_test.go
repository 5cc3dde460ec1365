package pixels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// clipTensors is an encoder of 8 features and two layers.
func clipTensors() (all []ir.Tensor) {
	add := func(name string, shape ...int) {
		all = append(all, ir.Tensor{Name: name, Type: quant.F16, Shape: shape})
	}
	both := func(name string, in, out int) {
		add(name+".weight", in, out)
		add(name+".bias", out)
	}
	add("embeddings.token_embedding.weight", 8, 50)
	add("embeddings.position_embedding.weight", 8, 7)
	norm := func(name string) {
		add(name+".weight", 8)
		add(name+".bias", 8)
	}
	for l := range 2 {
		at := fmt.Sprintf("encoder.layers.%d.", l)
		for _, m := range []string{"q_proj", "k_proj", "v_proj", "out_proj"} {
			both(at+"self_attn."+m, 8, 8)
		}
		both(at+"mlp.fc1", 8, 12)
		both(at+"mlp.fc2", 12, 8)
		norm(at + "layer_norm1")
		norm(at + "layer_norm2")
	}
	norm("final_layer_norm")
	return all
}

// t5Tensors is an encoder of 8 features and two layers, whose heads have 12 together.
func t5Tensors() (all []ir.Tensor) {
	add := func(name string, shape ...int) {
		all = append(all, ir.Tensor{Name: name + ".weight", Type: quant.F16, Shape: shape})
	}
	add("shared", 8, 50)
	for l := range 2 {
		at := fmt.Sprintf("encoder.block.%d.layer.", l)
		for _, m := range []string{"q", "k", "v"} {
			add(at+"0.SelfAttention."+m, 8, 12)
		}
		add(at+"0.SelfAttention.o", 12, 8)
		add(at+"0.layer_norm", 8)
		add(at+"1.layer_norm", 8)
		add(at+"1.DenseReluDense.wi_0", 8, 20)
		add(at+"1.DenseReluDense.wi_1", 8, 20)
		add(at+"1.DenseReluDense.wo", 20, 8)
	}
	add("encoder.block.0.layer.0.SelfAttention.relative_attention_bias", 2, 32)
	add("encoder.final_layer_norm", 8)
	return all
}

func TestEncoders(t *testing.T) {
	for _, prefix := range []string{"", "text_model."} {
		file := clipTensors()
		for i := range file {
			file[i].Name = prefix + file[i].Name
		}
		e, err := NewClip(file, TextSettings{Heads: 2, Eps: 1e-5})
		require.NoError(t, err)
		require.Equal(t, [4]int{0, 8, 50, 7}, [4]int{e.Embedding, e.Width, e.Tokens, e.Positions})
	}
	e, err := NewT5(t5Tensors(), TextSettings{Heads: 2, Eps: 1e-6, Far: 128})
	require.NoError(t, err)
	require.Equal(t, [3]int{8, 50, 0}, [3]int{e.Width, e.Tokens, e.Positions})
	require.Equal(t, 2, strings.Count(e.String(), "buckets=32 to 128"), "all layers have the first one's biases")
}

func TestEncoderFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() error
		want string
	}{
		{"clip heads", func() error {
			_, err := NewClip(clipTensors(), TextSettings{Heads: 3})
			return err
		}, "no encoder of the kind clip: 8 features are not 3 heads"},
		{"no heads", func() error {
			_, err := NewClip(clipTensors(), TextSettings{})
			return err
		}, "0 heads"},
		{"table", func() error {
			_, err := NewT5(edited(t5Tensors(), "shared.weight", 8), TextSettings{Heads: 2, Far: 128})
			return err
		}, "no encoder of the kind t5: shared.weight is no table of tokens"},
		{"buckets", func() error {
			_, err := NewT5(t5Tensors(), TextSettings{Heads: 2, Far: 9})
			return err
		}, "32 buckets of distances up to 9"},
		{"more", func() error {
			_, err := NewT5(append(t5Tensors(), ir.Tensor{Name: "decoder", Shape: []int{1}}), TextSettings{Heads: 2, Far: 128})
			return err
		}, "decoder"},
	} {
		require.ErrorContains(t, c.make(), c.want, c.name)
	}
}

// TestAnyEncoder: shapes that a file has made up are an error, and no panic.
func TestAnyEncoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := TextSettings{Heads: 2, Eps: 1e-6, Far: 128}
		_, _ = NewClip(misshapen(t, clipTensors(), 2, 7, 8, 12), s)
		_, _ = NewT5(misshapen(t, t5Tensors(), 2, 8, 12, 32), s)
	})
}

func FuzzReadTextSettings(f *testing.F) {
	f.Add([]byte(`{"architectures": ["CLIPTextModel"], "hidden_act": "quick_gelu", "num_attention_heads": 12}`))
	f.Add([]byte(`{"architectures": ["T5EncoderModel"], "feed_forward_proj": "gated-gelu", "num_heads": 64}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, s, err := ReadTextSettings(text); err == nil {
			require.NoError(t, s.check())
		}
	})
}

func TestReadTextSettings(t *testing.T) {
	kind, s, err := ReadTextSettings([]byte(`{"architectures": ["T5EncoderModel"], "feed_forward_proj": "gated-gelu",
		"num_heads": 64, "layer_norm_epsilon": 1e-6}`))
	require.NoError(t, err)
	require.Equal(t, "T5EncoderModel", kind)
	require.Equal(t, T5XXL, s)
	kind, s, err = ReadTextSettings([]byte(`{"architectures": ["CLIPTextModel"], "hidden_act": "quick_gelu",
		"num_attention_heads": 12, "layer_norm_eps": 1e-5}`))
	require.NoError(t, err)
	require.Equal(t, "CLIPTextModel", kind)
	require.Equal(t, ClipL, s)
	_, _, err = ReadTextSettings([]byte(`{"architectures": ["CLIPTextModel"], "hidden_act": "gelu"}`))
	require.ErrorContains(t, err, `want CLIPTextModel with quick_gelu`)
}
