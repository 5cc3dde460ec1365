package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// Options are the choices that a program depends on besides its file.
type Options struct {
	Context int     // positions a sequence may have; 0 means what the model was trained for
	Adapted bool    // adapters may change matrices: see ir.Builder.Adaptable
	Head    bool    // the program is that of the head which predicts tokens further on: see TargetRows
	Known   []int32 // the tokens that the file's output matrix knows, where it says which; nil: all of them
}

// family records one architecture. Faults of the metadata are kept by params; recording goes on with values in
// range, so that all of them are found, and Record then drops the program.
type family func(p *params, b *ir.Builder)

// entry is one architecture.
type entry struct {
	name   string // general.architecture
	since  string // the day on which it was first run
	record family
}

// families lists all architectures, by name.
func families() []entry {
	return []entry{
		{"afmoe", "2026-11-26", afMoE},
		{"apertus", "2026-11-27", apertus},
		{"arcee", "2026-11-26", arcee},
		{"arctic", "2026-11-26", arctic},
		{"arwkv7", "2026-11-27", arwkv7},
		{"baichuan", "2026-11-26", baichuan},
		{"bailingmoe", "2026-11-26", deepseek},
		{"bailingmoe2", "2026-11-26", bailingMoE2},
		{"bailingmoe3", "2026-11-27", bailingMoE3},
		{"bert", "2026-11-23", bert},
		{"bitnet", "2026-11-27", bitNet},
		{"bloom", "2026-11-27", bloom},
		{"chameleon", "2026-11-27", chameleon},
		{"chatglm", "2026-11-26", chatGLM},
		{"codeshell", "2026-11-26", codeShell},
		{"cogvlm", "2026-11-27", cogVLM},
		{"cohere2", "2026-11-22", commandR},
		{"cohere2moe", "2026-11-26", cohere2MoE},
		{"command-r", "2026-11-22", commandR},
		{"dbrx", "2026-11-27", dbrx},
		{"deci", "2026-11-26", deci},
		{"deepseek", "2026-11-26", deepseek},
		{"deepseek2", "2026-11-22", deepseek2},
		{"deepseek2-ocr", "2026-11-27", deepseek},
		{"deepseek32", "2026-11-27", deepseek2},
		{"deepseek4", "2026-11-27", deepseek4},
		{"dots1", "2026-11-26", dots1},
		{"dots3note", "2026-11-27", dots3Note},
		{"ernie4_5", "2026-11-22", ernie45},
		{"ernie4_5-moe", "2026-11-22", ernie45},
		{"eurobert", "2026-11-26", euroBERT},
		{"exaone", "2026-11-26", exaone},
		{"exaone-moe", "2026-11-26", dots1},
		{"exaone4", "2026-11-22", exaone4},
		{"falcon", "2026-11-26", falcon},
		{"falcon-h1", "2026-11-23", falconH1},
		{"gemma", "2026-11-23", gemma},
		{"gemma-embedding", "2026-11-27", gemmaEmbedding},
		{"gemma2", "2026-11-21", gemma2},
		{"gemma3", "2026-11-21", gemma3},
		{"gemma3n", "2026-11-27", gemma3n},
		{"gemma4", "2026-11-23", gemma4},
		{"glm-dsa", "2026-11-27", deepseek2},
		{"glm4", "2026-11-22", glm4},
		{"glm4moe", "2026-11-22", glm4moe},
		{"gpt-oss", "2026-11-21", gptOSS},
		{"gpt2", "2026-11-23", gpt2},
		{"gptneox", "2026-11-22", gptNeoX},
		{"granite", "2026-11-21", granite},
		{"granite_swa", "2026-11-27", granite},
		{"granitehybrid", "2026-11-26", graniteHybrid},
		{"granitemoe", "2026-11-21", granite},
		{"grok", "2026-11-26", grok},
		{"grovemoe", "2026-11-27", groveMoE},
		{"hrm_text", "2026-11-27", hrmText},
		{"hunyuan-dense", "2026-11-22", hunyuan},
		{"hunyuan-moe", "2026-11-22", hunyuan},
		{"hunyuan_vl", "2026-11-27", hunyuan},
		{"hy_v3", "2026-11-26", dots1},
		{"hy_v4", "2026-11-27", hyV4},
		{"internlm2", "2026-11-22", llama},
		{"jais", "2026-11-27", jais},
		{"jais2", "2026-11-26", jais2},
		{"jamba", "2026-11-27", jamba},
		{"jina-bert-v2", "2026-11-27", jinaBERT},
		{"jina-bert-v3", "2026-11-27", bert},
		{"kimi-k3", "2026-11-27", kimiK3},
		{"kimi-linear", "2026-11-27", kimiLinear},
		{"laguna", "2026-11-27", laguna},
		{"lfm2", "2026-11-23", lfm2},
		{"lfm2moe", "2026-11-26", lfm2},
		{"llama", "2026-11-21", llama},
		{"llama-embed", "2026-11-26", llamaEmbed},
		{"llama4", "2026-11-22", llama4},
		{"maincoder", "2026-11-26", maincoder},
		{"mamba", "2026-11-27", mamba},
		{"mamba2", "2026-11-23", mamba2},
		{"maple", "2026-11-27", maple},
		{"mellum", "2026-11-26", mellum},
		{"mimo2", "2026-11-26", mimo2},
		{"minicpm", "2026-11-26", miniCPM},
		{"minicpm3", "2026-11-26", miniCPM3},
		{"minimax-01", "2026-11-27", minimax01},
		{"minimax-m2", "2026-11-26", minimaxM2},
		{"minimax-m3", "2026-11-27", minimaxM3},
		{"mistral3", "2026-11-26", mistral3},
		{"mistral4", "2026-11-26", deepseek2},
		{"modern-bert", "2026-11-27", modernBERT},
		{"mpt", "2026-11-27", mpt},
		{"muse-glimmer", "2026-11-27", museGlimmer},
		{"nanbeige", "2026-11-27", nanbeige},
		{"nemotron", "2026-11-26", nemotron},
		{"nemotron_h", "2026-11-26", nemotronH},
		{"nemotron_h_moe", "2026-11-26", nemotronH},
		{"neo-bert", "2026-11-26", neoBERT},
		{"nomic-bert", "2026-11-23", bert},
		{"nomic-bert-moe", "2026-11-26", bert},
		{"olmo", "2026-11-26", olmo},
		{"olmo2", "2026-11-21", olmo2},
		{"olmoe", "2026-11-21", olmoe},
		{"openelm", "2026-11-26", openELM},
		{"orion", "2026-11-26", orion},
		{"paddleocr", "2026-11-27", ernie45},
		{"pangu-embedded", "2026-11-26", qwen2},
		{"phi2", "2026-11-26", phi2},
		{"phi3", "2026-11-21", phi3},
		{"phimoe", "2026-11-23", phiMoE},
		{"plamo", "2026-11-26", plamo},
		{"plamo2", "2026-11-27", plamo2},
		{"plamo3", "2026-11-26", plamo3},
		{"plm", "2026-11-26", plm},
		{"qwen", "2026-11-26", qwen},
		{"qwen2", "2026-11-21", qwen2},
		{"qwen2moe", "2026-11-21", qwen2moe},
		{"qwen2vl", "2026-11-26", qwen2vl},
		{"qwen3", "2026-11-21", qwen3},
		{"qwen35", "2026-11-23", qwen35},
		{"qwen35moe", "2026-11-23", qwen35moe},
		{"qwen3moe", "2026-11-21", qwen3moe},
		{"qwen3next", "2026-11-23", qwen3next},
		{"qwen3vl", "2026-11-26", qwen3vl},
		{"qwen3vlmoe", "2026-11-26", qwen3vlmoe},
		{"qwen4exp", "2026-11-27", qwen4exp},
		{"refact", "2026-11-27", refact},
		{"rwkv6", "2026-11-27", rwkv6},
		{"rwkv6qwen2", "2026-11-27", rwkv6qwen2},
		{"rwkv7", "2026-11-27", rwkv7},
		{"seed_oss", "2026-11-22", seedOSS},
		{"smallthinker", "2026-11-27", smallThinker},
		{"smollm3", "2026-11-21", smollm3},
		{"spark2_5", "2026-11-27", spark25},
		{"stablelm", "2026-11-22", stableLM},
		{"starcoder", "2026-11-26", gpt2},
		{"starcoder2", "2026-11-21", starcoder2},
		{"step35", "2026-11-27", step35},
		{"t5", "2026-11-28", t5},
		{"t5encoder", "2026-11-27", t5Encoder},
		{"talkie", "2026-11-27", talkie},
		{"xverse", "2026-11-26", llama},
	}
}

// guessers lists architectures of files that only guess tokens for another model, by its hidden states.
func guessers() []entry {
	return []entry{{"eagle3", "2026-11-27", eagle3}}
}

// Names lists the architectures of models that Record knows.
func Names() []string {
	var names []string
	for _, e := range families() {
		names = append(names, e.name)
	}
	return names
}

// Since is the day on which an architecture was first run; empty for one that is not known.
func Since(name string) string {
	e, _ := find(name)
	return e.since
}

func find(name string) (entry, bool) {
	all := append(families(), guessers()...)
	if i := slices.IndexFunc(all, func(e entry) bool { return e.name == name }); i >= 0 {
		return all[i], true
	}
	return entry{}, false
}

// Guesses says whether files of an architecture only guess tokens for another model.
func Guesses(name string) bool {
	return slices.ContainsFunc(guessers(), func(e entry) bool { return e.name == name })
}

// Record makes the program of the model that m describes. has says which tensors the file holds, for optional
// ones such as biases; whether the tensors fit is for ir.Bind to say. All faults of the metadata are
// reported at once.
func Record(m *meta.Map, has func(name string) bool, o Options) (*ir.Program, error) {
	name, err := m.String("general.architecture")
	if err != nil {
		return nil, err
	}
	e, ok := find(name)
	if why := refused(name); why != "" {
		return nil, fmt.Errorf("general.architecture: %q is not supported: %s", name, why)
	}
	if !ok {
		return nil, fmt.Errorf("general.architecture: %.40q is not supported; the nearest name that is: %s. All are: %s",
			name, nearest(name), strings.Join(Names(), ", "))
	}
	if err := untransformed(m); err != nil {
		return nil, err
	}
	p := &params{meta: m, arch: name, options: o}
	b := ir.NewBuilder(name, has)
	if o.Adapted {
		b.Adaptable()
	}
	e.record(p, b)
	if o.Head && len(p.faults) == 0 && !b.Parted() {
		p.faultf("no heads that predict tokens further on are known of this architecture")
	}
	if len(p.faults) > 0 {
		return nil, fmt.Errorf("metadata of %s: %w", name, errors.Join(p.faults...))
	}
	return b.Program(p.context)
}

// transforms are words in keys of metadata that say that weights are not those of the architecture, but have to be
// multiplied by something first: without, they give garbage.
var transforms = []string{"hadamard", "rotation"}

// untransformed returns an error if the metadata has keys of a transform of weights.
func untransformed(m *meta.Map) error {
	for _, key := range m.Keys() {
		if slices.ContainsFunc(transforms, func(word string) bool { return strings.Contains(key, word) }) {
			return fmt.Errorf("%.80s: weights that are transformed so are not supported: take a file of this model in "+
				"another quantisation", key)
		}
	}
	return nil
}
