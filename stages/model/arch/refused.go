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
		"grovemoe":         "its layers have two mixtures of experts each",
		"llada":            byDiffusion,
		"llada-moe":        byDiffusion,
		"pockettts":        ofSpeech,
		"qwen3tts":         ofSpeech,
		"rnd1":             byDiffusion,
		"t5":               "its decoder attends to what an encoder made: take a file of its encoder, t5encoder",
		"wavtokenizer-dec": ofSpeech,
	}[name]
}
