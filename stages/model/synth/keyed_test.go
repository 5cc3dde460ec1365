package synth_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

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
}

// unshaped are the architectures without a shape.
var unshaped = []string{
	"apertus", "arcee", "arwkv7", "bailingmoe3", "bitnet", "chameleon", "codeshell", "cogvlm", "deci",
	"deepseek32", "deepseek4", "dots3note", "eurobert", "falcon-h1", "gemma-embedding", "gemma3n", "gemma4",
	"glm-dsa", "granite_swa", "granitehybrid", "granitemoe", "hrm_text", "hunyuan-dense", "hunyuan_vl",
	"hy_v4", "jais", "jais2", "jamba", "jina-bert-v2", "jina-bert-v3", "kimi-k3", "kimi-linear", "llama-embed",
	"maincoder", "mamba", "maple", "minicpm", "minicpm3", "minimax-01", "minimax-m3", "mistral3", "mistral4",
	"modern-bert", "muse-glimmer", "nanbeige", "nemotron_h", "nemotron_h_moe", "neo-bert", "nomic-bert",
	"nomic-bert-moe", "paddleocr", "pangu-embedded", "plamo2", "plamo3", "plm", "qwen2vl", "qwen35", "qwen3vl",
	"qwen4exp", "refact", "rwkv6", "rwkv6qwen2", "rwkv7", "spark2_5", "t5encoder", "talkie", "xverse",
}

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

	small, err := synth.Find("openelm-270m")
	require.NoError(t, err)
	small.Tiny()
	again, err := synth.Find("openelm-270m")
	require.NoError(t, err)
	require.Equal(t, 16, again.Layers)
	require.InEpsilon(t, 271527168, size(t, again), 1e-9, "a tiny one leaves the others as they were")
}
