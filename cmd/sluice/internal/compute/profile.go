package compute

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/kvmix"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// sampled is how much of both ends of a tensor a model is recognised by.
const sampled = 4096

// ContentOf identifies a model by its tensors: their names, types and shapes, and the bytes at both ends of each. The
// whole of a large file would take seconds to read.
func ContentOf(file *gguf.File) (string, error) {
	if sent := file.Content(); sent != "" {
		return sent, nil
	}
	sum := sha256.New()
	for i := range file.Tensors {
		t := &file.Tensors[i]
		fmt.Fprintf(sum, "%q %s %v\n", t.Name, t.Type, t.Shape)
		err := file.View(t, func(data []byte) error {
			sum.Write(data[:min(sampled, len(data))])
			sum.Write(data[max(0, len(data)-sampled):])
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:16]), nil
}

// profilePath is the file that a model's profile is kept in, in the user's cache.
func profilePath(e *env.Env, file *gguf.File) (string, error) {
	content, err := ContentOf(file)
	if err != nil {
		return "", err
	}
	folder, err := cacheFolder(e)
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "kv", content+".json"), nil
}

// RecallProfile returns the profile that was kept of a model with such caches; nil: there is none that can be used.
func RecallProfile(e *env.Env, file *gguf.File, caches []ir.KVLayer) *kvmix.Profile {
	p := new(kvmix.Profile)
	if path, err := profilePath(e, file); err != nil || !recall(path, p) || !p.Fits(caches) {
		return nil
	}
	return p
}

// KeepProfile keeps a model's profile, in place of an older one, and returns where.
func KeepProfile(e *env.Env, file *gguf.File, p *kvmix.Profile) (string, error) {
	path, err := profilePath(e, file)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", env.OnFile(path, err)
	}
	if err := safefile.Write(path, append(text, '\n'), 0o600, true); err != nil {
		return "", env.OnFile(path, err)
	}
	return path, nil
}
