package compute

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/model/lora"
)

// AdapterFlags name adapters of a model that is run by one command.
type AdapterFlags struct {
	Lora []string `name:"lora" sep:"none" placeholder:"[NAME=]PATH[:SCALE]" help:"Adapter (LoRA) that changes the model: a GGUF file, or a folder of PEFT. SCALE is what its change is multiplied by, 1 without it. May be repeated: changes are added."`
}

// adapterFlag is a value of --lora.
type adapterFlag struct {
	name, path string
	scale      float32
}

// parseAdapter reads [NAME=]PATH[:SCALE].
func parseAdapter(text string) (a adapterFlag, err error) {
	a.path, a.scale = text, 1
	if name, path, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(name, `/\`) {
		a.name, a.path = name, path
	}
	if at := strings.LastIndexByte(a.path, ':'); at > 0 {
		if _, err := os.Stat(a.path); err != nil {
			scale, err := strconv.ParseFloat(a.path[at+1:], 32)
			if err != nil {
				return a, env.Usagef("--lora is %q: there is no such file, and behind the colon is no number", text)
			}
			a.path, a.scale = a.path[:at], float32(scale)
		}
	}
	if a.name == "" {
		a.name = AdapterName(a.path)
	}
	if a.path == "" || actors.CheckAdapterName(a.name) != nil {
		return a, env.Usagef("--lora is %q: want [NAME=]PATH[:SCALE], with a name without / and +", text)
	}
	return a, nil
}

// AdapterName is what an adapter is called whose name is not said.
func AdapterName(path string) string {
	name := filepath.Base(filepath.Clean(path))
	return strings.ReplaceAll(strings.TrimSuffix(name, ".gguf"), "+", "-")
}

// AdapterOf is the adapter in a file or folder, multiplied by scale, for a model whose file has metadata base.
func AdapterOf(name, path string, scale float32, base *meta.Map) actors.Adapter {
	return actors.Adapter{Name: name, Path: path, Open: func(p *ir.Program) (*lora.Loaded, error) {
		a, files, err := models.OpenAdapter(path, base)
		if err != nil {
			return nil, err
		}
		for i := range a.Changes {
			a.Changes[i].Scale *= scale
		}
		loaded, err := a.Bind(p)
		return loaded, errors.Join(err, files.Close())
	}}
}

// ownAdapters are the adapters at paths, which change all answers of a model, as its Modelfile says.
func ownAdapters(paths []string, m *actors.Model) (all []actors.Adapter) {
	for _, path := range paths {
		all = append(all, AdapterOf(AdapterName(path), path, 1, &m.File.Meta))
	}
	return all
}

// AddTo loads the adapters that the flags name. applied has all requests of the engine changed by them; else requests
// name those that they want.
func (f *AdapterFlags) AddTo(e *actors.Engine, applied bool) error {
	scales := map[int]float32{}
	for i, text := range f.Lora {
		a, err := parseAdapter(text)
		if err != nil {
			return err
		}
		if applied {
			a.name = strconv.Itoa(i) // nobody asks for it, and the same one may be given twice
		}
		if err := e.AddAdapter(AdapterOf(a.name, a.path, a.scale, e.Metadata()), true); err != nil {
			return fmt.Errorf("--lora: %w", err)
		}
		all := e.Adapters()
		scales[all[len(all)-1].ID] = 1
	}
	if !applied || len(f.Lora) == 0 {
		return nil
	}
	return e.ScaleAdapters(scales)
}
