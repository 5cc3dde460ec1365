package namedmodel

import (
	"errors"
	"fmt"
	"os"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Open opens the model that a person has named (see Locate), or the embedded one for an empty name. The caller
// closes it.
func Open(lookup Lookup, value string) (*gguf.File, error) {
	path, manner, err := find(lookup, value)
	if err != nil {
		return nil, elsewhere(lookup, err)
	}
	if path == "" {
		return gguf.Parse(mini.Name, mini.GGUF)
	}
	file, err := OpenPath(path)
	if err == nil && manner != nil {
		fitting(manner, &file.Meta).Apply(&file.Meta)
	}
	return file, err
}

// Outline is the general.type of a file that has no weights where it says that they are.
const Outline = "outline"

// IsOutline says whether a file is a header with a hole behind it.
func IsOutline(file *gguf.File) bool {
	kind, _ := file.Meta.String("general.type")
	return kind == Outline
}

// OpenWeights opens a model that can be run.
func OpenWeights(lookup Lookup, value string) (*gguf.File, error) {
	file, err := OpenPlanned(lookup, value)
	if err == nil && IsOutline(file) {
		err = fmt.Errorf("%s: is an outline without weights (synth --hollow), which plan and inspect read: make the model "+
			"without --hollow", file.Name)
		return nil, errors.Join(err, file.Close())
	}
	return file, err
}

// OpenPlanned opens a model that can be run, or the outline of one.
func OpenPlanned(lookup Lookup, value string) (*gguf.File, error) {
	file, err := Open(lookup, value)
	if err != nil {
		return nil, err
	}
	kind, _ := file.Meta.String("general.type") // most files do not say
	switch {
	case len(file.Tensors) == 0:
		err = fmt.Errorf("%s: it has no weights: sluice tokenize and detokenize can use its vocabulary", file.Name)
	case kind == "adapter":
		err = fmt.Errorf("%s: is an adapter (LoRA), not a model: merge it into its model first", file.Name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// OpenPath opens a GGUF file, or a folder.
func OpenPath(path string) (*gguf.File, error) {
	if checkpoint.Has(path) {
		return OpenFolder(path, convert.Options{})
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder without config.json or params.json: want a GGUF file, or the folder of a model", path)
	}
	return gguf.Open(path)
}
