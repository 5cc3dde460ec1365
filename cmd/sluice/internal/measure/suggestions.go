package measure

// suggestion is a model that suggest knows.
type suggestion struct {
	shape string // of stages/model/synth, from the config.json that it was published with
	quant string // file type of the file that is meant
	pull  string // what sluice pull takes
}

// suggestions are models that many people run, the smallest first, each with a repository that has its GGUF files.
// Their sizes and speeds follow from the shape, so that nothing here can contradict the plan.
var suggestions = []suggestion{
	{"qwen3-0.6b", "Q8_0", "Qwen/Qwen3-0.6B-GGUF:Q8_0"},
	{"llama-3.2-1b", "Q4_K_M", "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M"},
	{"smollm3-3b", "Q4_K_M", "ggml-org/SmolLM3-3B-GGUF:Q4_K_M"},
	{"llama-3.2-3b", "Q4_K_M", "bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M"},
	{"qwen3-4b", "Q4_K_M", "Qwen/Qwen3-4B-GGUF:Q4_K_M"},
	{"qwen2.5-7b", "Q4_K_M", "bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"},
	{"llama-3.1-8b", "Q4_K_M", "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M"},
	{"qwen3-8b", "Q4_K_M", "Qwen/Qwen3-8B-GGUF:Q4_K_M"},
	{"gpt-oss-20b", "MXFP4_MOE", "ggml-org/gpt-oss-20b-GGUF"},
	{"qwen3-30b-a3b", "Q4_K_M", "Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M"},
	{"llama-3.1-70b", "Q4_K_M", "bartowski/Meta-Llama-3.1-70B-Instruct-GGUF:Q4_K_M"},
	{"gpt-oss-120b", "MXFP4_MOE", "ggml-org/gpt-oss-120b-GGUF"},
}
