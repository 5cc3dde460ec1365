package arch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// Options are the choices that a program depends on besides its file.
type Options struct {
	Context int // positions a sequence may have; 0 means what the model was trained for
}

// family records one architecture. Faults of the metadata are kept by params; recording goes on with values in
// range, so that all of them are found, and Record then drops the program.
type family func(p *params, b *ir.Builder)

// families maps general.architecture to what records it.
func families() map[string]family {
	return map[string]family{
		"command-r":     commandR,
		"deepseek2":     deepseek2,
		"ernie4_5":      ernie45,
		"gemma2":        gemma2,
		"gemma3":        gemma3,
		"glm4moe":       glm4moe,
		"gpt-oss":       gptOSS,
		"granite":       granite,
		"granitemoe":    granite,
		"hunyuan-dense": hunyuan,
		"hunyuan-moe":   hunyuan,
		"internlm2":     llama,
		"stablelm":      stableLM,
		"gptneox":       gptNeoX,
		"glm4":          glm4,
		"exaone4":       exaone4,
		"cohere2":       commandR,
		"ernie4_5-moe":  ernie45,
		"llama":         llama,
		"llama4":        llama4,
		"olmo2":         olmo2,
		"olmoe":         olmoe,
		"phi3":          phi3,
		"qwen2":         qwen2,
		"qwen2moe":      qwen2moe,
		"qwen3":         qwen3,
		"qwen3moe":      qwen3moe,
		"seed_oss":      seedOSS,
		"smollm3":       smollm3,
		"starcoder2":    starcoder2,
	}
}

// Names lists the architectures that Record knows.
func Names() []string { return slices.Sorted(maps.Keys(families())) }

// Record makes the program of the model that m describes. has says which tensors the file holds, for optional
// ones such as biases; whether the tensors fit is for ir.Bind to say. All faults of the metadata are
// reported at once.
func Record(m *meta.Map, has func(name string) bool, o Options) (*ir.Program, error) {
	name, err := m.String("general.architecture")
	if err != nil {
		return nil, err
	}
	record, ok := families()[name]
	if !ok {
		return nil, fmt.Errorf("general.architecture: %.40q is not supported, want one of %s",
			name, strings.Join(Names(), ", "))
	}
	p := &params{meta: m, arch: name, options: o}
	b := ir.NewBuilder(name, has)
	record(p, b)
	if len(p.faults) > 0 {
		return nil, fmt.Errorf("metadata of %s: %w", name, errors.Join(p.faults...))
	}
	return b.Program(p.context)
}
