package arch

// Reasons why files of some architectures that llama.cpp reads do not run.
const (
	byDiffusion = "it makes texts by diffusion, not token by token"
	ofSpeech    = "it is a part of a model that speaks, not one of texts"
	besideModel = "it is a part of another model, which takes it beside its own file: see --mmproj and --draft"
)

// refused says why an architecture that is known by name is not supported; empty for one of which nothing is known.
func refused(name string) string {
	return map[string]string{
		"clip":             besideModel,
		"dflash":           besideModel,
		"dream":            byDiffusion,
		"gemma4-assistant": besideModel,
		"glm5-next":        "llama.cpp does not read it, and what its layers compute is not known here",
		"glm5next":         "llama.cpp does not read it, and what its layers compute is not known here",
		"gptj":             "files of this name have been read by no program: llama.cpp knows the name alone",
		"graniteswitch":    "tokens of the text choose one of its adapters, and stand for other tokens: adapters are chosen by requests here",
		"llada":            byDiffusion,
		"llada-moe":        byDiffusion,
		"pockettts":        ofSpeech,
		"qwen3tts":         ofSpeech,
		"rnd1":             byDiffusion,
		"wavtokenizer-dec": ofSpeech,
	}[name]
}
