package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Specimen is a small model with random weights, of an architecture for which there is no reference file.
type Specimen struct {
	Name, Arch string
	Tolerance  float64 // for the distance from llama.cpp's logits
	keys       map[string]any
	vocab      int                     // tokens, if they are more than those of the reference file
	without    []string                // name endings of optional tensors that it lacks
	lacks      string                  // the complete name of another one, which is the ending of others, too
	centred    []string                // name endings of tensors made so that the mean of what they give is 0
	shaped     func(name string) []int // shapes that llama.cpp wants of weights; nil: the usual one
	// beside are names in layers of tensors that the program does not meet, and that files have beside those that they
	// are as large as, by the names of these: complete ones, or those in every layer.
	beside map[string][]string
}

// Named lists the names that a weight of a program has in a file: its own, and those of what the program does not meet.
func (s *Specimen) Named(p *ir.Program, w *ir.Weight) []string {
	names := []string{w.Name}
	layer, own, _ := strings.Cut(strings.TrimPrefix(w.Name, "blk."), ".")
	for _, name := range slices.Concat(s.beside[own], s.beside[w.Name]) {
		name = "blk." + layer + "." + name
		if !slices.ContainsFunc(p.Weights, func(w ir.Weight) bool { return w.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// Reranker scores the first row of a text.
var Reranker = Specimen{Name: "bert-rank", Arch: "bert", without: []string{"attn_qkv.weight"},
	Tolerance: 2e-3, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-6), "pooling_type": uint32(4),
		"attention.causal": false, "attention.head_count_kv": uint32(4)}}

// Specimens are models of all architectures that Fixtures and Embeddings have no file of.
var Specimens = slices.Concat(firstSpecimens, denseSpecimens, mixtureSpecimens, moreSpecimens, laterSpecimens,
	recurrentSpecimens, compressedSpecimens, picturedSpecimens)

// firstSpecimens are those that were there first.
var firstSpecimens = []Specimen{
	{Name: "cohere2", Arch: "cohere2", Tolerance: 2e-4, without: []string{".bias", "output.weight", "q_norm.weight",
		"attn_qkv.weight"}, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.sliding_window": uint32(7), "logit_scale": float32(0.3),
		"block_count": uint32(5), "rope.dimension_count": uint32(16),
	}},
	{Name: "glm4", Arch: "glm4", without: []string{"output.bias", "ffn_up.bias", "ffn_down.bias"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(8)}},
	{Name: "glm4v", Arch: "glm4", without: []string{"output.bias", "ffn_up.bias", "ffn_down.bias"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(8),
			"rope.dimension_sections": []int32{1, 1, 2, 0}}},
	{Name: "exaone4", Arch: "exaone4", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "internlm2", Arch: "internlm2", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "stablelm", Arch: "stablelm", without: []string{"output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"},
		Tolerance: 2e-4, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
			"rope.dimension_count": uint32(4), "use_parallel_residual": false}},
	{Name: "stablelm-parallel", Arch: "stablelm", without: []string{"output.bias", "ffn_gate.bias", "ffn_up.bias",
		"ffn_down.bias", "ffn_norm.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
			"rope.dimension_count": uint32(4), "use_parallel_residual": true}},
	{Name: "gptneox", Arch: "gptneox", without: []string{"output.bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(4), "use_parallel_residual": true,
	}},
	{Name: "gptneox-serial", Arch: "gptneox", without: []string{"output.bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(4), "use_parallel_residual": false,
	}},
	{Name: "command-r-plus", Arch: "command-r", without: []string{".bias", "output.weight", "attn_qkv.weight"},
		Tolerance: 1e-3, keys: map[string]any{ // llama.cpp normalises heads from 64 layers on
			"attention.layer_norm_epsilon": float32(1e-5), "logit_scale": float32(0.3), "block_count": uint32(64),
			"rope.dimension_count": uint32(16)}},
	{Name: "gemma", Arch: "gemma", without: []string{".bias", "output.weight"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.key_length": uint32(32),
		"attention.value_length": uint32(32), "rope.dimension_count": uint32(32),
	}},
	{Name: "gpt2", Arch: "gpt2", without: []string{"output.bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5),
	}},
	{Name: "deepseek2-early", Arch: "deepseek2", without: []string{".bias", "output.weight"}, Tolerance: 3e-4,
		keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.q_lora_rank": uint32(32),
			"attention.kv_lora_rank": uint32(32), "attention.head_count_kv": uint32(4), "attention.key_length": uint32(32),
			"attention.value_length": uint32(24), "rope.dimension_count": uint32(16), "leading_dense_block_count": uint32(1),
			"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_shared_count": uint32(2),
			"expert_feed_forward_length": uint32(32), "expert_weights_scale": float32(1), "block_count": uint32(3),
			"rope.scaling.type": "yarn", "rope.scaling.factor": float32(8), "expert_gating_func": uint32(1),
			"rope.scaling.original_context_length": uint32(64), "rope.scaling.yarn_log_multiplier": float32(0.0707),
		}},
	{Name: "ernie4_5-moe", Arch: "ernie4_5-moe", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "exps.bias", "shexp.bias", "inp.bias"},
		Tolerance: 2e-4, keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-5), "block_count": uint32(4), "expert_count": uint32(6),
			"expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32), "leading_dense_block_count": uint32(1),
			"interleave_moe_layer_step": uint32(1), "expert_shared_count": uint32(2),
			"expert_shared_feed_forward_length": uint32(64), "rope.dimension_count": uint32(16),
		}},
	{Name: "falcon-h1", Arch: "falcon-h1", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "ssm_in.bias", "ssm_out.bias"},
		Tolerance: 2e-4, keys: hybridKeys},
	{Name: "falcon-h1-bare", Arch: "falcon-h1", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "ssm_in.bias", "ssm_out.bias",
		"ssm_norm.weight"},
		Tolerance: 2e-4, keys: hybridKeys},
	{Name: "qwen3next-early", Arch: "qwen3next", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "ssm_in.bias", "ssm_out.bias", "ssm_conv1d.bias", "ssm_ba.bias", "exps.bias", "shexp.bias",
		"inp.bias", "output.bias"}, Tolerance: 3e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(8), "ssm.conv_kernel": uint32(4),
		"ssm.inner_size": uint32(64), "ssm.state_size": uint32(16), "ssm.time_step_rank": uint32(4),
		"ssm.group_count": uint32(2), "attention.key_length": uint32(16), "attention.value_length": uint32(16),
		"expert_count": uint32(4), "expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32),
		"expert_shared_feed_forward_length": uint32(32), "full_attention_interval": uint32(2),
	}},
	// One expert, and streams with a mean of 0: only then do llama.cpp's norms and weights equal those of transformers.
	{Name: "phimoe", Arch: "phimoe", without: []string{"exps.bias", "inp.bias", "rope_factors_long.weight"},
		Tolerance: 2e-4, centred: []string{"token_embd.weight", "attn_output.weight", "attn_output.bias",
			"ffn_down_exps.weight"}, keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "expert_count": uint32(6),
			"expert_used_count": uint32(1), "rope.scaling.original_context_length": uint32(512),
		}},
	{Name: "hunyuan-moe", Arch: "hunyuan-moe", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(96), "expert_shared_feed_forward_length": uint32(48),
		"expert_shared_count": uint32(1), "rope.dimension_count": uint32(16),
	}},
	{Name: "qwen2vl", Arch: "qwen2vl", Tolerance: 2e-4, without: []string{"output.bias", "attn_output.bias",
		"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_sections": []int32{2, 3, 3, 0},
	}},
	// No pair is left over: llama.cpp does not turn such pairs of interleaved sections, transformers turns them by time.
	{Name: "qwen3vl", Arch: "qwen3vl", Tolerance: 2e-4, without: []string{".bias"}, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_sections": []int32{3, 3, 2, 0},
		"n_deepstack_layers": uint32(0),
	}},
	{Name: "qwen3vlmoe", Arch: "qwen3vlmoe", Tolerance: 2e-4, without: []string{".bias"}, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_sections": []int32{3, 3, 2, 0},
		"n_deepstack_layers": uint32(0), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(96),
	}},
}

// hybridKeys are the metadata of a Mamba-2 mixer beside attention, with two groups of keys.
var hybridKeys = map[string]any{
	"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "ssm.conv_kernel": uint32(4),
	"ssm.inner_size": uint32(96), "ssm.state_size": uint32(16), "ssm.time_step_rank": uint32(6), "ssm.group_count": uint32(2),
	"attention.key_length": uint32(16), "attention.value_length": uint32(16),
}

// Describe returns the specimen's metadata, with the tokenizer of another model.
func (s *Specimen) Describe(other *meta.Map) *meta.Map {
	m := new(meta.Map)
	m.Set("general.architecture", s.Arch)
	for _, key := range other.Keys() {
		if strings.HasPrefix(key, "tokenizer.") {
			value, _ := other.Get(key)
			m.Set(key, value)
		}
	}
	if s.vocab > 0 {
		lengthen(m, s.vocab)
	}
	for key, n := range map[string]uint32{
		"block_count": 2, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4,
		"attention.head_count_kv": 2, "context_length": 512,
	} {
		m.Set(s.Arch+"."+key, n)
	}
	if s.Arch == "gptneox" { // it has no others
		m.Set("gptneox.attention.head_count_kv", uint32(4))
	}
	for key, value := range s.keys {
		if !strings.HasPrefix(key, "tokenizer.") && !strings.HasPrefix(key, "xielu.") {
			key = s.Arch + "." + key
		}
		m.Set(key, value)
	}
	return m
}

// lengthen gives a tokenizer so many tokens.
func lengthen(m *meta.Map, n int) {
	const tokens, types, unused = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", 5
	all, err := m.Strings(tokens)
	kinds, err2 := m.Ints(types)
	if err != nil || err2 != nil {
		panic("the reference file has no vocabulary")
	}
	numbers := make([]int32, 0, n)
	for _, kind := range kinds {
		numbers = append(numbers, int32(kind))
	}
	for i := len(all); i < n; i++ {
		all, numbers = append(all, fmt.Sprintf("<more %d>", i)), append(numbers, unused)
	}
	m.Set(tokens, all)
	m.Set(types, numbers)
}

// Has says whether the specimen has an optional tensor.
func (s *Specimen) Has(name string) bool {
	return name != s.lacks &&
		!slices.ContainsFunc(s.without, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Shape is the shape of a weight as llama.cpp wants it in a file.
func (s *Specimen) Shape(w *ir.Weight) []int {
	if s.shaped != nil {
		if shape := s.shaped(w.Name); shape != nil {
			return shape
		}
	}
	return w.Shape()
}

// Weights returns the bytes of all weights of its program, by Ref: float32.
func (s *Specimen) Weights(t testing.TB, p *ir.Program) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([][]byte, len(p.Weights))
	for i := range p.Weights {
		w := &p.Weights[i]
		values := random(rng, w)
		if slices.ContainsFunc(s.centred, func(end string) bool { return strings.HasSuffix(w.Name, end) }) {
			centre(values, w)
		}
		data[i] = make([]byte, 4*len(values))
		require.NoError(t, quant.Quantize(quant.F32, data[i], values))
	}
	return data
}

// SpecimenTokens are the prompt of specimens.
func SpecimenTokens() []int32 {
	tokens := make([]int32, 24)
	for i := range tokens {
		tokens[i] = int32(20 + i*37%400)
	}
	return tokens
}

// LikeOracle compares a device's logits of all specimens with the oracle's, at most factor times each one's tolerance
// away; what a device says that it lacks it refuses. record makes a program of metadata and the tensors that there are.
func LikeOracle(t *testing.T, d, oracle backend.Device, tokenizer *meta.Map, factor float64,
	record func(m *meta.Map, has func(string) bool) (*ir.Program, error)) {
	for i := range Specimens {
		s := &Specimens[i]
		t.Run(s.Name, func(t *testing.T) {
			p, err := record(s.Describe(tokenizer), s.Has)
			require.NoError(t, err)
			tensors := make([]ir.Tensor, len(p.Weights))
			for i := range p.Weights {
				tensors[i] = ir.Tensor{Name: p.Weights[i].Name, Type: quant.F32, Shape: p.Weights[i].Shape()}
			}
			data := s.Weights(t, p)
			m, err := NewModel(p, tensors, func(i int, use func([]byte) error) error { return use(data[i]) })
			require.NoError(t, err)
			if lacks := d.Traits().Lacks; lacks != nil && lacks(p) != nil {
				_, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF32, MaxRows: 1, MaxWanted: 1}})
				require.Error(t, err, "it says that it lacks a kernel: %v", lacks(p))
				return
			}
			tokens := SpecimenTokens()
			worst, at := distance(Logits(t, d, m, tokens), Logits(t, oracle, m, tokens))
			t.Logf("largest difference %.3g of %.3g", worst, factor*s.Tolerance)
			require.LessOrEqual(t, worst, factor*s.Tolerance, "position %d, token %d", at/m.Vocab, at%m.Vocab)
		})
	}
}

// random makes weights: norms near 1, small biases, and matrices that keep the size of their input.
func random(rng *rand.Rand, w *ir.Weight) []float32 {
	var out []float32
	for range w.Rows * w.Cols {
		x := 1.5 * rng.NormFloat64() / math.Sqrt(float64(w.Cols))
		switch {
		case w.Use&ir.Vector != 0 && strings.HasSuffix(w.Name, ".bias"):
			x = 0.2 * rng.NormFloat64()
		case strings.HasSuffix(w.Name, ".ssm_a"):
			x = -0.5 + 0.1*rng.NormFloat64()
		case strings.HasSuffix(w.Name, ".ssm_conv1d.weight"):
			x = rng.NormFloat64()
		case strings.Contains(w.Name, "_mix_lerp_"):
			x = 0.5 + 0.2*rng.NormFloat64()
		case strings.HasSuffix(w.Name, "mix_decay.weight"):
			x = -1 + 0.3*rng.NormFloat64()
		case strings.HasSuffix(w.Name, toldEnd):
			x = float64((len(out)/w.Cols*5 + len(out)%w.Cols) % toldExperts)
		case w.Use&ir.Vector != 0:
			x = 1 + 0.2*rng.NormFloat64()
		}
		out = append(out, float32(x))
	}
	return out
}

// centre subtracts means, so that what a weight gives has a mean of 0: from the rows of a table, from vectors, and from
// the columns of matrices, expert by expert.
func centre(values []float32, w *ir.Weight) {
	each, n, step := 1, w.Cols, 1 // of columns that are centred together
	if w.Use == ir.Matrix {
		each, n, step = w.Cols, w.Rows/max(w.Experts, 1), w.Cols
	}
	for from := 0; from < len(values); from += each * n {
		for i := range each {
			mean := float32(0)
			for j := range n {
				mean += values[from+i+j*step] / float32(n)
			}
			for j := range n {
				values[from+i+j*step] -= mean
			}
		}
	}
}
