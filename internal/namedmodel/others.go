package namedmodel

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/storage/others"
	"github.com/sluice-ai/sluice/storage/store"
)

// OtherPlaces are the folders where other programs keep this person's models, by the variables that those programs
// read.
func OtherPlaces(lookup Lookup) (p others.Places) {
	home := system.Home(lookup)
	below := func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) }
	if dir, _ := lookup("OLLAMA_MODELS"); dir != "" {
		p.Ollama = []string{dir}
	} else if home != "" {
		const ofService = "/usr/share/ollama/.ollama/models" // of the user that Linux packages make for the service
		p.Ollama = []string{below(".ollama", "models"), ofService}
	}
	if home != "" {
		p.LMStudio = []string{below(".lmstudio", "models"), below(".cache", "lm-studio", "models")}
	}
	if dir, _ := lookup("HF_HUB_CACHE"); dir != "" {
		p.HuggingFace = []string{dir}
	} else if dir := HubFolder(lookup); dir != "" {
		p.HuggingFace = []string{filepath.Join(dir, "hub")}
	}
	return p
}

// elsewhere returns err. If a name is not in the store, but another program keeps a model of it, it says so.
func elsewhere(lookup Lookup, err error) error {
	absent := (*store.Absent)(nil)
	if !errors.As(err, &absent) {
		return err
	}
	if m := others.Known(OtherPlaces(lookup), absent.Name); m != nil {
		return fmt.Errorf("%w, or use the one that is here (%s): -m %s", err, m.Program, m.Name)
	}
	return err
}

// HubFolder is the folder of Hugging Face's own programs; empty, if there is none.
func HubFolder(lookup Lookup) string {
	if dir, _ := lookup("HF_HOME"); dir != "" {
		return dir
	}
	if cache, _ := lookup("XDG_CACHE_HOME"); cache != "" {
		return filepath.Join(cache, "huggingface")
	}
	if home := system.Home(lookup); home != "" {
		return filepath.Join(home, ".cache", "huggingface")
	}
	return ""
}
