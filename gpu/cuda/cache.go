//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// compile compiles a module for the card, or reads it from the cache. A file that cannot be written or read only costs
// time.
func (k *Kernels) compile(name, ptx string) ([]byte, error) {
	path := ""
	if k.cache != "" {
		path = k.cachePath(name, ptx)
		if cubin, _ := safefile.ReadSummed(path); len(cubin) > 0 { // drivers check little of it
			return cubin, nil
		}
	}
	cubin, err := k.c.Compile(name, ptx)
	if err == nil && path != "" {
		_ = safefile.WriteSummed(path, cubin)
	}
	return cubin, err
}

// cachePath is the file of a compiled module. Another driver, card or source, for which it is useless, has another
// file.
func (k *Kernels) cachePath(name, ptx string) string {
	f := &k.c.Facts
	sum := sha256.Sum256([]byte(ptx))
	return filepath.Join(k.cache, fmt.Sprintf("cuda-%d-sm%d%d", k.c.Version, f.Major, f.Minor),
		fmt.Sprintf("%s-%x.cubin", name, sum[:8]))
}
