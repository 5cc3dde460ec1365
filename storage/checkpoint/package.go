package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/storage/cgml"
	"github.com/sluice-ai/sluice/storage/mapped"
)

// isPackage says whether a path is that of a file that holds a whole model: see storage/cgml.
func isPackage(path string) bool {
	if filepath.Ext(path) != ".cgml" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openPackage maps a package. It is read as the folder that Mistral publishes of the same model.
func openPackage(path string) (*Folder, error) {
	m, err := mapped.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &Folder{Path: path, Files: []File{{m, path}}, byName: map[string]int{}}
	var p *cgml.Package
	err = m.Guard(func() (err error) {
		p, err = cgml.Parse(bytes.NewReader(m.Data), int64(len(m.Data)))
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	f.texts = p.Texts
	for _, t := range p.Tensors {
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, Tensor{t, 0})
	}
	return f, nil
}
