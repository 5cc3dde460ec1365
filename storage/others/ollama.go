package others

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/hub"
	"github.com/sluice-ai/sluice/storage/store"
)

// What Ollama leaves out of names, and the folders of its store.
const (
	ownRegistry = "registry.ollama.ai"
	library     = "library"
	latest      = "latest"

	manifestsFolder = "manifests" // HOST/OWNER/MODEL/TAG: JSON
	blobsFolder     = "blobs"     // sha256-HEX
)

// mostManifest bounds the bytes of a manifest; real ones have about a thousand.
const mostManifest = 1 << 20

// ollama finds the models of a store of Ollama's.
func ollama(root string) (all []Model) {
	manifests := filepath.Join(root, manifestsFolder)
	for _, rel := range below(manifests, 4, mostEntries) {
		parts := strings.Split(rel, "/")
		if len(parts) != 4 {
			continue
		}
		m := Model{Name: ollamaPrefix + nameOf(parts), Program: "Ollama", manifest: filepath.Join(manifests, filepath.FromSlash(rel)),
			blobs: filepath.Join(root, blobsFolder)}
		m.Path, m.Size, m.Damage = m.weights(root)
		all = append(all, m)
	}
	return all
}

// nameOf is a model's name as Ollama shows it, by HOST, OWNER, MODEL and TAG.
func nameOf(parts []string) string {
	name := parts[2]
	switch host, owner := parts[0], parts[1]; {
	case host != ownRegistry:
		name = host + "/" + owner + "/" + name
	case owner != library:
		name = owner + "/" + name
	}
	if parts[3] == latest {
		return name
	}
	return name + ":" + parts[3]
}

// weights finds the file of weights of a store's model.
func (m *Model) weights(root string) (path string, size int64, err error) {
	said, err := m.read(root)
	if err != nil {
		return "", 0, err
	}
	f := said.Weights()[0] // there is one
	path = f.Digest.In(m.blobs)
	info, err := inside(root, path)
	if err == nil && info.Size() != f.Size {
		err = fmt.Errorf("%s has %d bytes, want %d", path, info.Size(), f.Size)
	}
	return path, max(f.Size, 0), err
}

// read reads the manifest.
func (m *Model) read(root string) (*store.Manifest, error) {
	if _, err := inside(root, m.manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", m.manifest, err)
	}
	f, _, err := safefile.Open(m.manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.manifest, err)
	}
	defer f.Close()
	text, err := safefile.ReadAll(f, mostManifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.manifest, err)
	}
	files, err := hub.ParseLayers(text, store.Name{Model: "model", Tag: latest})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.manifest, err)
	}
	return &store.Manifest{Name: m.Name, Files: files}, nil
}

// Texts returns the contents of the model's files of a role, such as its system message. Only Ollama keeps some.
func (m *Model) Texts(role store.Role) ([]string, error) {
	said, _, err := m.files(role)
	if said == nil || err != nil {
		return nil, err
	}
	return said.Texts(m.blobs, role)
}

// Files returns the paths of the model's files of a role, such as its adapters. Only Ollama keeps some.
func (m *Model) Files(role store.Role) ([]string, error) {
	_, paths, err := m.files(role)
	return paths, err
}

// files finds the model's files of a role; nil: it has a single one, that of its weights.
func (m *Model) files(role store.Role) (said *store.Manifest, paths []string, err error) {
	if m.manifest == "" {
		return nil, nil, nil
	}
	root := filepath.Dir(m.blobs)
	if said, err = m.read(root); err != nil {
		return nil, nil, err
	}
	for _, f := range said.Files {
		if f.Role != role {
			continue
		}
		path := f.Digest.In(m.blobs)
		if _, err := inside(root, path); err != nil {
			return nil, nil, fmt.Errorf("%s of %s: %w", f.Name, m.Name, err)
		}
		paths = append(paths, path)
	}
	return said, paths, nil
}
