package serve

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	faults "github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/storage/store"
)

// adapterFolder is a folder of adapters: GGUF files, and folders of PEFT. What is named lies in it, and nowhere else.
type adapterFolder string

// Adapter implements answer.AdapterFolder.
func (f adapterFolder) Adapter(name, path string, base *actors.Engine) (actors.Adapter, error) {
	if store.CheckFileName(path) != nil {
		return actors.Adapter{}, faults.Of("lora_path: %.80q is no name of a file or folder: want one of those in the "+
			"server's folder of adapters, as it is", path)
	}
	for _, at := range []string{path, path + ".gguf"} {
		if full := filepath.Join(string(f), at); isAdapter(full) {
			return compute.AdapterOf(name, full, 1, base.Metadata()), nil
		}
	}
	return actors.Adapter{}, faults.Of("lora_path: there is no adapter %.80q in the server's folder of adapters", path)
}

// isAdapter says whether a path looks like an adapter's.
func isAdapter(path string) bool {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return models.IsPEFT(path)
	}
	return err == nil && info.Mode().IsRegular() && strings.HasSuffix(path, ".gguf")
}

// paths are those of all adapters in the folder; none: there is no folder.
func (f adapterFolder) paths() (all []string, err error) {
	if f == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if path := filepath.Join(string(f), e.Name()); store.CheckFileName(e.Name()) == nil && isAdapter(path) {
			all = append(all, path)
		}
	}
	return all, nil
}
