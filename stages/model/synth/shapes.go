package synth

import "fmt"

// Shape is a known model.
type Shape struct {
	Name string
	Config
}

// Find returns a shape by its name.
func Find(name string) (*Config, error) {
	for _, s := range Shapes() {
		if s.Name == name {
			if s.keyed != nil {
				return &s.Config, nil
			}
			return &s.Config, s.complete()
		}
	}
	return nil, fmt.Errorf("shape %q is not known: sluice synth --list shows those that are", name)
}

// Shapes lists the known models, from the config.json that each was published with, or from the keys of its file.
func Shapes() []Shape {
	all := [][]Shape{llamas(), llama4s(), qwens(), gemmas(), others(), recurrents(), latents(), encoders(),
		answerings(), keyedShapes()}
	var out []Shape
	for _, shapes := range all {
		out = append(out, shapes...)
	}
	return out
}

func yes() *bool { b := true; return &b }

func llamas() []Shape {
	llama := func(layers, width, ffn, heads, kv, vocab int) Config {
		return Config{ModelType: "llama", Layers: layers, Width: width, FFN: ffn, Heads: heads, KVHeads: kv,
			Vocab: vocab, Eps: 1e-5}
	}
	smol := func(theta float64, c Config) Config {
		c.Context, c.RopeTheta, c.Tied = 8192, theta, yes()
		return c
	}
	llama3 := func(factor float64, tied *bool, c Config) Config {
		c.Context, c.RopeTheta, c.Tied = 131072, 500000, tied
		c.Scaling = &Scaling{Type: "llama3", Factor: factor, Original: 8192, LowFreq: 1, HighFreq: 4}
		return c
	}
	mistral := llama(32, 4096, 14336, 32, 8, 32768)
	mistral.ModelType, mistral.Context, mistral.RopeTheta = "mistral", 32768, 1e6
	return []Shape{
		{"smollm2-135m", smol(100000, llama(30, 576, 1536, 9, 3, 49152))},
		{"smollm2-360m", smol(100000, llama(32, 960, 2560, 15, 5, 49152))},
		{"smollm2-1.7b", smol(130000, llama(24, 2048, 8192, 32, 32, 49152))},
		{"llama-3.2-1b", llama3(32, yes(), llama(16, 2048, 8192, 32, 8, 128256))},
		{"llama-3.2-3b", llama3(32, yes(), llama(28, 3072, 8192, 24, 8, 128256))},
		{"llama-3.1-8b", llama3(8, nil, llama(32, 4096, 14336, 32, 8, 128256))},
		{"llama-3.1-70b", llama3(8, nil, llama(80, 8192, 28672, 64, 8, 128256))},
		{"mistral-7b", mistral},
	}
}

func qwens() []Shape {
	qwen2 := func(layers, width, ffn, heads, kv, vocab int, tied *bool) Config {
		return Config{ModelType: "qwen2", Layers: layers, Width: width, FFN: ffn, Heads: heads, KVHeads: kv,
			Vocab: vocab, Context: 32768, RopeTheta: 1e6, Eps: 1e-6, Tied: tied}
	}
	qwen3 := func(layers, width, ffn, heads, kv int, tied *bool) Config {
		return Config{ModelType: "qwen3", Layers: layers, Width: width, FFN: ffn, Heads: heads, KVHeads: kv,
			HeadDim: 128, Vocab: 151936, Context: 40960, RopeTheta: 1e6, Eps: 1e-6, Tied: tied}
	}
	moe := func(ffn int, c Config) Config {
		c.ModelType, c.Experts, c.ExpertsUsed, c.ExpertFFN = "qwen3_moe", 128, 8, ffn
		return c
	}
	return []Shape{
		{"qwen2.5-0.5b", qwen2(24, 896, 4864, 14, 2, 151936, yes())},
		{"qwen2.5-7b", qwen2(28, 3584, 18944, 28, 4, 152064, nil)},
		{"qwen3-0.6b", qwen3(28, 1024, 3072, 16, 8, yes())},
		{"qwen3-1.7b", qwen3(28, 2048, 6144, 16, 8, yes())},
		{"qwen3-4b", qwen3(36, 2560, 9728, 32, 8, yes())},
		{"qwen3-8b", qwen3(36, 4096, 12288, 32, 8, nil)},
		{"qwen3-14b", qwen3(40, 5120, 17408, 40, 8, nil)},
		{"qwen3-32b", qwen3(64, 5120, 25600, 64, 8, nil)},
		{"qwen3-30b-a3b", moe(768, qwen3(48, 2048, 6144, 32, 4, nil))},
		{"qwen3-235b-a22b", moe(1536, qwen3(94, 4096, 12288, 64, 4, nil))},
	}
}

func gemmas() []Shape {
	gemma2 := func(layers, width, ffn, heads, kv, head int) Config {
		return Config{ModelType: "gemma2", Layers: layers, Width: width, FFN: ffn, Heads: heads, KVHeads: kv,
			HeadDim: head, Vocab: 256000, Context: 8192, Window: 4096, ScoreCap: 50, LogitCap: 30}
	}
	gemma3 := func(layers, width, ffn, heads, kv int) Config {
		return Config{ModelType: "gemma3", Layers: layers, Width: width, FFN: ffn, Heads: heads, KVHeads: kv,
			HeadDim: 256, Vocab: 262208, Context: 131072, Window: 1024, RopeTheta: 1e6,
			Scaling: &Scaling{Type: "linear", Factor: 8}}
	}
	smallest := gemma3(26, 1152, 6912, 4, 1)
	smallest.Vocab, smallest.Context, smallest.Window, smallest.Scaling = 262144, 32768, 512, nil
	return []Shape{
		{"gemma-2-2b", gemma2(26, 2304, 9216, 8, 4, 256)},
		{"gemma-2-9b", gemma2(42, 3584, 14336, 16, 8, 256)},
		{"gemma-2-27b", gemma2(46, 4608, 36864, 32, 16, 128)},
		{"gemma-3-1b", smallest},
		{"gemma-3-4b", gemma3(34, 2560, 10240, 8, 4)},
		{"gemma-3-12b", gemma3(48, 3840, 15360, 16, 8)},
	}
}

func others() []Shape {
	gptOSS := func(layers, experts int) Config {
		return Config{ModelType: "gpt_oss", Layers: layers, Width: 2880, FFN: 2880, Heads: 64, KVHeads: 8, HeadDim: 64,
			Vocab: 201088, Context: 131072, Eps: 1e-5, RopeTheta: 150000, Window: 128,
			Experts: experts, ExpertsUsed: 4, ExpertFFN: 2880,
			Scaling: &Scaling{Type: "yarn", Factor: 32, Original: 4096, BetaFast: 32, BetaSlow: 1}}
	}
	return []Shape{
		{"gpt-oss-20b", gptOSS(24, 32)},
		{"gpt-oss-120b", gptOSS(36, 128)},
		{"phi-4", Config{ModelType: "phi3", Layers: 40, Width: 5120, FFN: 17920, Heads: 40, KVHeads: 10,
			Vocab: 100352, Context: 16384, Eps: 1e-5, RopeTheta: 250000}},
		{"phi-3.5-moe", Config{ModelType: "phimoe", Layers: 32, Width: 4096, FFN: 6400, Heads: 32, KVHeads: 8,
			Vocab: 32064, Context: 131072, Eps: 1e-5, Bias: true, HeadBias: true, Window: 131072,
			Experts: 16, ExpertsUsed: 2, ExpertFFN: 6400}},
		{"smollm3-3b", Config{ModelType: "smollm3", Layers: 36, Width: 2048, FFN: 11008, Heads: 16, KVHeads: 4,
			Vocab: 128256, Context: 65536, Eps: 1e-6, RopeTheta: 5e6}},
		{"granite-3.3-8b", Config{ModelType: "granite", Layers: 40, Width: 4096, FFN: 12800, Heads: 32, KVHeads: 8,
			Vocab: 49159, Context: 131072, Eps: 1e-5, RopeTheta: 1e7, Tied: yes(),
			EmbeddingScale: 12, AttentionScale: 0.0078125, ResidualScale: 0.22, LogitScale: 16}},
		{"granite-3-1b-a400m", Config{ModelType: "granitemoe", Layers: 24, Width: 1024, FFN: 512, Heads: 16, KVHeads: 8,
			Vocab: 49155, Context: 4096, Eps: 1e-6, Tied: yes(), Experts: 32, ExpertsUsed: 8, ExpertFFN: 512}},
		{"olmo-2-7b", Config{ModelType: "olmo2", Layers: 32, Width: 4096, FFN: 11008, Heads: 32, KVHeads: 32,
			Vocab: 100352, Context: 4096, Eps: 1e-6, RopeTheta: 500000}},
		{"starcoder2-3b", Config{ModelType: "starcoder2", Layers: 30, Width: 3072, FFN: 12288, Heads: 24, KVHeads: 2,
			Vocab: 49152, Context: 16384, LayerEps: 1e-5, RopeTheta: 999999.4420358813}},
	}
}
