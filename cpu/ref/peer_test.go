package ref_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var peer = flag.String("peer", "", "the yardstick's driver: ask it again for the logits in testdata")

// specimens are small models with random weights, of architectures that no reference has a file of. What llama.cpp
// (v0.5.0, float32 cache) computes from them is in testdata/peer.
var specimens = []struct {
	name, arch string
	keys       map[string]any
	without    []string // of optional tensors: all but those whose names end so, attn_output.weight is none
	tolerance  float64
	centred    []string // ends of names: what these tensors make of anything has no mean
}{
	{name: "cohere2", arch: "cohere2", tolerance: 2e-4, without: []string{".bias", "output.weight", "q_norm.weight",
		"attn_qkv.weight"}, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.sliding_window": uint32(7), "logit_scale": float32(0.3),
		"block_count": uint32(5), "rope.dimension_count": uint32(16),
	}},
	{name: "glm4", arch: "glm4", without: []string{"output.bias", "ffn_up.bias", "ffn_down.bias"}, tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(8)}},
	{name: "exaone4", arch: "exaone4", without: []string{".bias", "rope_freqs.weight"}, tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{name: "internlm2", arch: "internlm2", without: []string{".bias", "rope_freqs.weight"}, tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{name: "stablelm", arch: "stablelm", without: []string{"output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"},
		tolerance: 2e-4, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
			"rope.dimension_count": uint32(4), "use_parallel_residual": false}},
	{name: "stablelm-parallel", arch: "stablelm", without: []string{"output.bias", "ffn_gate.bias", "ffn_up.bias",
		"ffn_down.bias", "ffn_norm.weight"}, tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
			"rope.dimension_count": uint32(4), "use_parallel_residual": true}},
	{name: "gptneox", arch: "gptneox", without: []string{"output.bias"}, tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(4), "use_parallel_residual": true,
	}},
	{name: "gptneox-serial", arch: "gptneox", without: []string{"output.bias"}, tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(4), "use_parallel_residual": false,
	}},
	{name: "command-r-plus", arch: "command-r", without: []string{".bias", "output.weight", "attn_qkv.weight"},
		tolerance: 1e-3, keys: map[string]any{ // llama.cpp normalises heads from 64 layers on
			"attention.layer_norm_epsilon": float32(1e-5), "logit_scale": float32(0.3), "block_count": uint32(64),
			"rope.dimension_count": uint32(16)}},
	{name: "gpt2", arch: "gpt2", without: []string{"output.bias"}, tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5),
	}},
	{name: "ernie4_5-moe", arch: "ernie4_5-moe", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "exps.bias", "shexp.bias", "inp.bias"},
		tolerance: 2e-4, keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-5), "block_count": uint32(4), "expert_count": uint32(6),
			"expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32), "leading_dense_block_count": uint32(1),
			"interleave_moe_layer_step": uint32(1), "expert_shared_count": uint32(2),
			"expert_shared_feed_forward_length": uint32(64), "rope.dimension_count": uint32(16),
		}},
	{name: "falcon-h1", arch: "falcon-h1", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "ssm_in.bias", "ssm_out.bias"},
		tolerance: 2e-4, keys: hybridKeys},
	{name: "falcon-h1-bare", arch: "falcon-h1", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "ssm_in.bias", "ssm_out.bias",
		"ssm_norm.weight"},
		tolerance: 2e-4, keys: hybridKeys},
	{name: "qwen3next-early", arch: "qwen3next", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "ssm_in.bias", "ssm_out.bias", "ssm_conv1d.bias", "ssm_ba.bias", "exps.bias", "shexp.bias",
		"inp.bias", "output.bias"}, tolerance: 3e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(8), "ssm.conv_kernel": uint32(4),
		"ssm.inner_size": uint32(64), "ssm.state_size": uint32(16), "ssm.time_step_rank": uint32(4),
		"ssm.group_count": uint32(2), "attention.key_length": uint32(16), "attention.value_length": uint32(16),
		"expert_count": uint32(4), "expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32),
		"expert_shared_feed_forward_length": uint32(32), "full_attention_interval": uint32(2),
	}},
	// One expert, and streams without a mean: llama.cpp's norms and weights are those of transformers then.
	{name: "phimoe", arch: "phimoe", without: []string{"exps.bias", "inp.bias", "rope_factors_long.weight"},
		tolerance: 2e-4, centred: []string{"token_embd.weight", "attn_output.weight", "attn_output.bias",
			"ffn_down_exps.weight"}, keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "expert_count": uint32(6),
			"expert_used_count": uint32(1), "rope.scaling.original_context_length": uint32(512),
		}},
	{name: "hunyuan-moe", arch: "hunyuan-moe", without: []string{".bias"}, tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(96), "expert_shared_feed_forward_length": uint32(48),
		"expert_shared_count": uint32(1), "rope.dimension_count": uint32(16),
	}},
}

// hybridKeys are those of a Mamba-2 mixer beside attention, with two groups of keys.
var hybridKeys = map[string]any{
	"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "ssm.conv_kernel": uint32(4),
	"ssm.inner_size": uint32(96), "ssm.state_size": uint32(16), "ssm.time_step_rank": uint32(6), "ssm.group_count": uint32(2),
	"attention.key_length": uint32(16), "attention.value_length": uint32(16),
}

// TestLikePeer compares logits of all positions with llama.cpp's.
func TestLikePeer(t *testing.T) {
	tokens := make([]int32, 24)
	for i := range tokens {
		tokens[i] = int32(20 + i*37%400)
	}
	for _, s := range specimens {
		t.Run(s.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), s.name+".gguf")
			m := describe(t, s.arch, s.keys)
			optional := func(name string) bool {
				return !slices.ContainsFunc(s.without, func(end string) bool { return strings.HasSuffix(name, end) })
			}
			writeSpecimen(t, path, m, optional, s.centred)
			golden := filepath.Join("testdata", "peer", s.name+".f32")
			if *peer != "" {
				askPeer(t, path, golden, tokens)
			}
			data, err := os.ReadFile(golden)
			require.NoError(t, err)
			got := backendtest.Logits(t, ref.New(), open(t, path, nil), tokens)
			require.Len(t, data, len(shown)*len(got)/len(tokens)*4)
			vocab := len(got) / len(tokens)
			for i, pos := range shown {
				for j := range vocab {
					want := math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*vocab+j):]))
					require.InDelta(t, want, got[pos*vocab+j], s.tolerance, "position %d, token %d", pos, j)
				}
			}
		})
	}
}

// shown are the positions whose logits are kept.
var shown = []int{0, 9, 23}

func describe(t *testing.T, name string, keys map[string]any) *meta.Map {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	m := new(meta.Map)
	m.Set("general.architecture", name)
	for _, key := range f.Meta.Keys() {
		if strings.HasPrefix(key, "tokenizer.") {
			value, _ := f.Meta.Get(key)
			m.Set(key, value)
		}
	}
	for key, n := range map[string]uint32{
		"block_count": 2, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4,
		"attention.head_count_kv": 2, "context_length": 512,
	} {
		m.Set(name+"."+key, n)
	}
	if name == "gptneox" { // it has no others
		m.Set("gptneox.attention.head_count_kv", uint32(4))
	}
	for key, value := range keys {
		m.Set(name+"."+key, value)
	}
	return m
}

// writeSpecimen gives the architecture all tensors that it asks for, and those of the optional ones.
func writeSpecimen(t *testing.T, path string, m *meta.Map, optional func(string) bool, centred []string) {
	p, err := arch.Record(m, optional, arch.Options{})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	var tensors []gguf.Tensor
	data := map[string][]byte{}
	for i := range p.Weights {
		w := &p.Weights[i]
		tensors = append(tensors, gguf.Tensor{Name: w.Name, Type: quant.F32, Shape: w.Shape()})
		values := random(rng, w)
		if slices.ContainsFunc(centred, func(end string) bool { return strings.HasSuffix(w.Name, end) }) {
			centre(values, w)
		}
		data[w.Name] = make([]byte, 4*len(values))
		require.NoError(t, quant.Quantize(quant.F32, data[w.Name], values))
	}
	f, err := os.Create(path)
	require.NoError(t, err)
	err = gguf.Write(f, m, tensors, func(t *gguf.Tensor, w io.Writer) error {
		_, err := w.Write(data[t.Name])
		return err
	})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// random is norms near 1, small biases, and matrices that keep the size of what they multiply.
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
		case w.Use&ir.Vector != 0:
			x = 1 + 0.2*rng.NormFloat64()
		}
		out = append(out, float32(x))
	}
	return out
}

// centre takes the mean off what a weight makes: off the rows of a table and off vectors, off the columns of matrices,
// expert by expert.
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

func askPeer(t *testing.T, path, golden string, tokens []int32) {
	all := filepath.Join(t.TempDir(), "logits")
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(tokens), " ", ","), "[]")
	out, err := exec.Command(*peer, "logits", "-m", path, "--tokens", ids, "-o", all, "--kv", "f32", "--fa", "0").CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(all)
	require.NoError(t, err)
	row := len(data) / len(tokens)
	var kept []byte
	for _, pos := range shown {
		kept = append(kept, data[pos*row:][:row]...)
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
	require.NoError(t, os.WriteFile(golden, kept, 0o644))
}
