package arch

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// specimen records a specimen with one key changed.
func specimen(t *testing.T, name, key string, value any) (*ir.Program, error) {
	t.Helper()
	i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	s := &backendtest.Specimens[i]
	m := s.Describe(&open(t, "qwen3").Meta)
	m.Set(s.Arch+"."+key, value)
	return Record(m, s.Has, Options{})
}

// acts lists the activations of a program.
func acts(p *ir.Program) (all []ir.Act) {
	for _, s := range p.Segments {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Op == ir.GLU && !slices.Contains(all, n.Act) {
				all = append(all, n.Act)
			}
		}
	}
	return all
}

// TestActivationOfFile: the file may name the function of a feed-forward network; one that is not known is refused.
func TestActivationOfFile(t *testing.T) {
	for name, want := range map[string]ir.Act{"relu2": ir.ReLU2, "silu": ir.SiLU, "gelu": ir.GELUErf} {
		p, err := specimen(t, "bitnet", "hidden_activation", name) // llama.cpp v0.5.0 takes silu whatever it says
		require.NoError(t, err)
		require.Equal(t, []ir.Act{want}, acts(p), name)
	}
	for _, name := range []string{"bitnet", "modern-bert"} {
		_, err := specimen(t, name, "hidden_activation", "swish7")
		require.EqualError(t, err, "metadata of "+name+": "+name+`.hidden_activation: is "swish7", want gelu, relu2 or silu`)
		_, err = specimen(t, name, "hidden_activation", uint32(7))
		require.EqualError(t, err, "metadata of "+name+": "+name+".hidden_activation: is of type uint32, want a string")
	}
}

// TestWithinIndexer: models with an indexer run within as many positions as it chooses.
func TestWithinIndexer(t *testing.T) {
	i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == "glm-dsa" })
	s := &backendtest.Specimens[i]
	m := s.Describe(&open(t, "qwen3").Meta)
	p, err := Record(m, s.Has, Options{Context: 64})
	require.NoError(t, err)
	require.Equal(t, 64, p.Context)
	_, err = Record(m, s.Has, Options{Context: 65})
	require.EqualError(t, err, "metadata of glm-dsa: glm-dsa.attention.indexer.top_k: is 64, and contexts of more than 64 "+
		"positions, as the 65 asked for, are not supported yet: ask for fewer")
}

// TestNextOfIndexed: the last layers of DeepSeek V3.2's and GLM 5's files are heads. The trunk is that of a file
// without them, whatever they hold; the head is DeepSeek V3's of the same numbers.
func TestNextOfIndexed(t *testing.T) {
	for _, name := range []string{"deepseek32", "glm-dsa"} {
		i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == name })
		s := &backendtest.Specimens[i]
		record := func(as string, layers, next uint32, head bool) *ir.Program {
			m := s.Describe(&open(t, "qwen3").Meta)
			m.Set(name+".block_count", layers)
			m.Set(name+".nextn_predict_layers", next)
			m.Set(name+".expert_gating_func", uint32(2))
			m.Set("general.architecture", as)
			for _, key := range m.Keys() {
				if rest, ok := strings.CutPrefix(key, name+"."); ok {
					value, _ := m.Get(key)
					m.Set(as+"."+rest, value)
				}
			}
			p, err := Record(m, s.Has, Options{Head: head, Context: 64})
			require.NoError(t, err)
			p.Arch = ""
			return p
		}
		computed := func(p *ir.Program) string {
			text, _, _ := strings.Cut(p.String(), "\nignores ")
			_, text, _ = strings.Cut(text, "\n") // of the first line: the context, which the indexer bounds
			return text
		}
		trunk, head := record(name, 3, 1, false), record(name, 3, 1, true)
		require.Equal(t, computed(record(name, 2, 0, false)), computed(trunk))
		require.Equal(t, computed(record("deepseek2", 3, 1, true)), computed(head))
		require.Contains(t, head.String(), "blk.2.nextn.eh_proj.weight")
		require.Equal(t, 64, head.Context)

		var tensors []ir.Tensor
		for _, p := range []*ir.Program{trunk, head} {
			for i := range p.Weights {
				w := &p.Weights[i]
				if !slices.ContainsFunc(tensors, func(x ir.Tensor) bool { return x.Name == w.Name }) {
					tensors = append(tensors, ir.Tensor{Name: w.Name, Type: quant.F32, Shape: w.Shape()})
				}
			}
		}
		for _, layer := range []string{"blk.0.", "blk.2."} {
			tensors = append(tensors, ir.Tensor{Name: layer + "indexer.proj.weight", Type: quant.F32, Shape: []int{64, 6}})
		}
		for _, p := range []*ir.Program{trunk, head} {
			_, err := ir.Bind(p, tensors)
			require.NoError(t, err)
		}
		_, err := ir.Bind(trunk, append(tensors, ir.Tensor{Name: "blk.3.x", Type: quant.F32, Shape: []int{1}}))
		require.ErrorContains(t, err, "blk.3.x")
	}
}

// TestNextOfStep: the last layers of Step 3.5's files, which may have windows and limits of their own, are left out.
func TestNextOfStep(t *testing.T) {
	p, err := specimen(t, "step35", "nextn_predict_layers", uint32(2))
	require.NoError(t, err)
	layers := 0
	for _, s := range p.Segments {
		layers = max(layers, s.Layer+1)
	}
	require.Equal(t, 2, layers)
	require.Contains(t, p.Ignore, "blk.2.")
	require.Contains(t, p.Ignore, "blk.3.")
	_, err = specimen(t, "step35", "nextn_predict_layers", uint32(4))
	require.EqualError(t, err, "metadata of step35: step35.nextn_predict_layers: is 4, want 0 to 3")
}

// TestHeadless: no file without heads has the program of one, whatever its lists of layers say of their last.
func TestHeadless(t *testing.T) {
	for i := range backendtest.Specimens {
		s := &backendtest.Specimens[i]
		_, err := Record(s.Describe(&open(t, "qwen3").Meta), s.Has, Options{Head: true})
		require.ErrorContains(t, err, "head", s.Name)
	}
}

// TestRefusedByName: what changes the meaning of weights, and no program has, is refused.
func TestRefusedByName(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any
		want      string
	}{
		{"deepseek2-ocr", "attention.sliding_window", uint32(128), "is 128, and windows of answers alone are not supported"},
		{"granite_swa", "attention.rope_pattern", []bool{true}, "has 1 layers, want 3"},
		{"granite_swa", "attention.rope_pattern", "none", "is of type string, want an array of bools"},
		{"maple", "swiglu_clamp_exp", []float32{1, -2, 3}, "is -2 for layer 1, want a limit, or 0"},
		{"maple", "swiglu_clamp_exp", []float32{1, 2}, "has 2 layers, want 3"},
		{"step35", "attention.head_count_kv", []int32{2, 4, 2, 2},
			"is 4 for layer 1, want a divisor of step35.attention.head_count, 6"},
		{"laguna", "rope.dimension_count_swa", uint32(18), "is 18, want an even number of at most the head size, 16"},
		{"nanbeige", "num_loops", uint32(600), "is 600, want 1 to 512"},
		{"nanbeige", "skip_loop_final_norm", uint32(1), "is of type uint32, want a bool"},
		{"hrm_text", "hrm.prefix_lm", true, "is true, and prompts whose rows see what follows them are not supported"},
		{"hrm_text", "block_count", uint32(13), "is 13, want layers for each of 2 cycles of 3 passes through 2: 12"},
		{"bailingmoe3", "kda.gate_lower_bound", float32(0), "is 0, want a number below 0"},
		{"bailingmoe3", "kda.safe_gate", false, "is false, and such gates are not supported"},
		{"chameleon", "swin_norm", true, "is true, and norms after blocks are not supported: nothing is known that computes " +
			"them as they were trained"},
		{"deepseek4", "hyper_connection.count", uint32(9), "is 9, want 2 to 8"},
		{"deepseek4", "attention.compress_ratios", []uint32{0, 4, 64}, "is 64 for layer 2, want 0, 4 or 128"},
		{"deepseek4", "attention.output_group_count", uint32(4), "is 4, want a divisor of deepseek4.attention.head_count, 6"},
		{"deepseek4", "rope.dimension_count", uint32(64), "is 64, want less than deepseek4.attention.key_length, 64"},
		{"deepseek4", "expert_gating_func", uint32(2), "is 2, want 4 to 4"},
		{"deepseek4", "hash_layer_count", uint32(4), "is 4, want 0 to 3"},
		{"deepseek4", "swiglu_clamp_shexp", []float32{1, -2, 3}, "is -2 for layer 1, want a limit, or 0"},
		{"kimi-k3", "activation.situ_beta", float32(0), "is 0, want a number above 0"},
		{"kimi-k3", "activation.situ_linear_beta", float32(-1), "is -1, want a number above 0"},
		{"kimi-k3", "attn_res.block_size", uint32(1025), "is 1025, want 0 to 1024"},
		{"qwen4exp", "hyper_connection.count", uint32(1), "is 1, want 2 to 64"},
		{"qwen4exp", "ple.layers", []uint32{}, "has 0 numbers, want 1"},
		{"qwen4exp", "ple.layers", []uint32{4}, "is layer 4 of 4"},
		{"qwen4exp", "ple.layer_multipliers", []uint64{1, 2}, "has 2 numbers, want 3"},
		{"qwen4exp", "ple.head_vocab_sizes", []uint64{61, 71, 0, 79}, "number 2 is 0, want 1 or more"},
		{"qwen4exp", "ple.head_vocab_sizes", []uint64{61, 71, 1 << 63, 79},
			"hash 2 names rows from 132 on, 9223372036854775808 in all: too many"},
		{"qwen4exp", "embedding_length_per_layer_input", uint32(8),
			"is 8, want qwen4exp.embedding_length, 64, divided by 4 hashes"},
		{"dots3note", "attention.key_length_mla_swa", uint32(16), "is 16, want more than dots3note.rope.dimension_count, 16"},
		{"hy_v4", "hyper_connection.count", uint32(65), "is 65, want 2 to 64"},
		{"paddleocr", "rope.dimension_sections", []int32{2, 3, 2, 1}, "is [2 3 2 1], want pairs of 3 axes"},
	} {
		_, err := specimen(t, c.name, c.key, c.value)
		require.EqualError(t, err, "metadata of "+c.name+": "+c.name+"."+c.key+": "+c.want)
	}
}

// TestRefusedArchitectures: of names that are known, the reason is said, here and in the document, and none runs.
func TestRefusedArchitectures(t *testing.T) {
	text, err := os.ReadFile("../../../docs/architectures.md")
	require.NoError(t, err)
	_, said, _ := strings.Cut(string(text), "these are refused")
	for _, name := range []string{"glm5-next", "glm5next", "gptj", "graniteswitch",
		"clip", "dflash", "dream", "gemma4-assistant", "llada", "llada-moe",
		"pockettts", "qwen3tts", "rnd1", "wavtokenizer-dec"} {
		require.NotEmpty(t, refused(name), name)
		require.NotContains(t, Names(), name)
		require.Contains(t, said, name)
		m := open(t, "qwen3").Meta
		m.Set("general.architecture", name)
		_, err := Record(&m, func(string) bool { return true }, Options{})
		require.EqualError(t, err, "general.architecture: \""+name+"\" is not supported: "+refused(name))
	}
	for _, name := range Names() {
		require.Empty(t, refused(name))
	}
}

// TestMostKept: streams are kept a bounded number of times.
func TestMostKept(t *testing.T) {
	i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == "kimi-k3" })
	s := &backendtest.Specimens[i]
	m := s.Describe(&open(t, "qwen3").Meta)
	m.Set("kimi-k3.block_count", uint32(65))
	m.Set("kimi-k3.attention.head_count_kv", make([]int32, 65))
	_, err := Record(m, s.Has, Options{})
	require.EqualError(t, err, "metadata of kimi-k3: kimi-k3.attn_res.block_size: is 2, and so 65 layers keep the stream "+
		"33 times: want at most 32")
}

// TestTokensOfPictures: a vocabulary must have more tokens than those of pictures.
func TestTokensOfPictures(t *testing.T) {
	i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == "chameleon" })
	s := &backendtest.Specimens[i]
	m := s.Describe(&open(t, "qwen3").Meta)
	m.Set("tokenizer.ggml.tokens", make([]string, 8196))
	_, err := Record(m, s.Has, Options{})
	require.EqualError(t, err, "metadata of chameleon: tokenizer.ggml.tokens: has 8196 tokens, want more than those of "+
		"pictures, which end at 8196")
}
