package synth_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

// billions is what models are said to have, of which each shape is within 3 %.
var billions = map[string]float64{
	"falcon-7b": 7.217, "bloom-7b1": 7.069, "baichuan2-7b": 7.506, "chatglm3-6b": 6.244, "exaone-3-7.8b": 7.818,
	"mpt-7b": 6.649, "qwen-7b": 7.721, "starcoderbase-1b": 1.137, "orion-14b": 14.5, "openelm-270m": 0.2715, "olmo-7b": 6.888,
	"phi-2": 2.78, "gpt2": 0.1244, "gpt-neox-20b": 20.55, "stablelm-2-1.6b": 1.6445, "internlm2-7b": 7.738,
	"command-r": 34.98, "command-r7b": 8.028, "glm-4-9b": 9.4, "exaone-4-32b": 32.0, "seed-oss-36b": 36.15,
	"ernie-4.5-0.3b": 0.361, "minitron-4b": 4.19, "gemma-2b": 2.506, "trinity-nano": 6, "arctic": 480, "ling-lite": 16.8, "ling-mini-2": 16.26, "north-mini": 30, "dbrx": 132,
	"deepseek-moe-16b": 16.4, "dots.llm1": 142.8, "ernie-4.5-21b-a3b": 21.83, "k-exaone": 236, "glm-4.5-air": 106.85,
	"grok-1": 314, "grovemoe-33b": 33, "hunyuan-a13b": 80.4, "hunyuan-3": 295, "laguna-xs-2.1": 33, "lfm2-8b-a1b": 8.34,
	"mellum-2-12b": 12.15, "mimo-v2-flash": 309, "minimax-m2": 228.7, "olmoe-1b-7b": 6.919, "qwen1.5-moe-a2.7b": 14.32,
	"qwen3-vl-30b-a3b": 30.53, "smallthinker-4b-a0.6b": 4.27, "step-3.5-flash": 197,
	"apertus-8b": 8.05, "bitnet-b1.58-large": 0.729, "chameleon-7b": 7.0, "codeshell-7b": 7.69, "gemma-4-31b": 30.7,
	"gemma-3n-e4b": 6.87, "granite-swash-2b": 2.14, "hrm-text-1b": 1.18, "hunyuan-7b": 7.5, "jais-13b": 13.0,
	"jais-2-8b": 8.09, "minicpm-2b": 2.72, "minimax-m3": 428, "ministral-3-3b": 3.43, "nanbeige-4.2-3b": 4.17,
	"openpangu-7b": 8.03, "qwen2.5-vl-7b": 7.616, "qwen3-vl-8b": 8.19, "refact-1.6b": 1.59, "xverse-7b": 7.3,
	"minicpm3-4b": 4.07, "plm-1.8b": 1.83, "deepseek-v3.2": 671, "deepseek-v4-flash": 284, "glm-5.2": 744,
	"hunyuan-4": 780, "mistral-small-4": 119, "kimi-linear-48b-a3b": 48.5, "kimi-k3": 2800, "ling-3-tiny": 7.9,
	"mamba-2.8b": 2.77, "jamba-v0.1": 51.6, "plamo-2-1b": 1.29, "rwkv-6-1.6b": 1.6, "rwkv-7-1.5b": 1.527,
	"falcon-h1-7b": 7.59, "nemotron-h-8b": 8.1, "nemotron-3-nano-30b-a3b": 31.6, "granite-4-h-small": 32.2,
	"minimax-text-01": 456, "eurobert-210m": 0.212, "embeddinggemma-300m": 0.308, "jina-v2-base-en": 0.137,
	"llama-embed-nemotron-8b": 7.5, "modernbert-base": 0.149, "neobert": 0.222, "nomic-embed-v2-moe": 0.475,
	"flan-t5-base-encoder": 0.1096, "qwen3.5-27b": 26.9, "granite-3-1b-a400m": 1.335, "nomic-embed-v1.5": 0.1367,
}

// unshaped are the architectures without a shape: the numbers of their models are not known whole here.
var unshaped = []string{"arcee", "arwkv7", "deci", "maincoder", "maple", "plamo3", "rwkv6qwen2", "spark2_5", "talkie"}

// size is how many parameters a shape has.
func size(t *testing.T, c *synth.Config) (n int64) {
	t.Helper()
	for _, x := range tensors(t, c) {
		each := int64(1)
		for _, d := range x.Shape {
			each *= int64(d)
		}
		if x.Name != "rope_freqs.weight" {
			n += each
		}
	}
	return n
}

// TestBillions: shapes are as large as their models are said to be.
func TestBillions(t *testing.T) {
	for name, want := range billions {
		c, err := synth.Find(name)
		require.NoError(t, err)
		require.InEpsilon(t, want, float64(size(t, c))/1e9, 0.03, name)
	}
}

// TestLacking: the first layers of models, and some of the others, lack what the rest has.
func TestLacking(t *testing.T) {
	for _, x := range []struct{ shape, lacks, has string }{
		{"modernbert-base", "blk.0.attn_norm.weight", "blk.1.attn_norm.weight"},
		{"mimo-v2-flash", "blk.5.attn_sinks.weight", "blk.6.attn_sinks.weight"},
		{"mimo-v2-flash", "blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.weight"},
		{"step-3.5-flash", "blk.2.ffn_gate_inp.weight", "blk.3.ffn_gate_inp.weight"},
		{"gemma-4-31b", "blk.5.attn_v.weight", "blk.6.attn_v.weight"},
		{"jamba-v0.1", "blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.weight"},
		{"gpt2", "output.bias", "blk.0.attn_qkv.bias"},
	} {
		c, err := synth.Find(x.shape)
		require.NoError(t, err)
		require.False(t, c.Has(x.lacks), x.lacks)
		require.True(t, c.Has(x.has), x.has)
	}
}

// TestWholeNumbers: the experts of tokens are numbers below their count, none twice in a row.
func TestWholeNumbers(t *testing.T) {
	c, err := synth.Find("deepseek-v4-flash")
	require.NoError(t, err)
	c.Tiny()
	c.Vocab = 300
	all := tensors(t, c)
	at := slices.IndexFunc(all, func(x synth.Tensor) bool { return x.Name == "blk.0.ffn_gate_tid2eid.weight" })
	require.Equal(t, []int{2, 300}, all[at].Shape)
	require.Equal(t, 8, all[at].Below)
	var out bytes.Buffer
	require.NoError(t, (&synth.Filler{Seed: 1}).Write(&out, &all[at], quant.I32))
	values := make([]float32, 600)
	require.Len(t, out.Bytes(), 2400)
	quant.Whole(values, out.Bytes())
	seen := map[float32]bool{}
	for i := 0; i < len(values); i += 2 {
		require.NotEqual(t, values[i], values[i+1])
		seen[values[i]] = true
	}
	require.Len(t, seen, 8)
	require.True(t, seen[0] && seen[7])
}

// TestEveryArchitecture: all have a shape, but those that are named.
func TestEveryArchitecture(t *testing.T) {
	missing := map[string]bool{}
	for _, name := range arch.Names() {
		missing[name] = true
	}
	for _, s := range synth.Shapes() {
		c, err := synth.Find(s.Name)
		require.NoError(t, err)
		name, err := c.Meta(s.Name).String("general.architecture")
		require.NoError(t, err)
		delete(missing, name)
	}
	require.Equal(t, unshaped, slices.Sorted(maps.Keys(missing)))
}

// TestKeyedLayers: shapes by keys take other numbers of layers, and lists follow them.
func TestKeyedLayers(t *testing.T) {
	c, err := synth.Find("openelm-270m")
	require.NoError(t, err)
	c.Layers = 18
	heads, err := c.Meta("x").Ints("openelm.attention.head_count_kv")
	require.NoError(t, err)
	require.Equal(t, []int64{3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 3, 3}, heads)
	require.NotEmpty(t, tensors(t, c))

	seeing, err := synth.Find("qwen3-vl-8b")
	require.NoError(t, err)
	axes, err := seeing.Meta("x").Ints("qwen3vl.rope.dimension_sections")
	require.NoError(t, err)
	require.Equal(t, []int64{24, 20, 20, 0}, axes, "a list of something else")
	for _, s := range synth.Shapes() {
		for _, layers := range []int{1, 2, 7} {
			c, err := synth.Find(s.Name)
			require.NoError(t, err)
			c.Layers, c.Vocab = layers, c.LeastVocab(8192)
			_, err = arch.Record(c.Meta("x"), c.Has, arch.Options{})
			require.NoError(t, err, "%s with %d layers", s.Name, layers)
		}
	}
	small, err := synth.Find("openelm-270m")
	require.NoError(t, err)
	small.Tiny()
	again, err := synth.Find("openelm-270m")
	require.NoError(t, err)
	require.Equal(t, 16, again.Layers)
	require.InEpsilon(t, 271527168, size(t, again), 1e-9, "a tiny one leaves the others as they were")
}
