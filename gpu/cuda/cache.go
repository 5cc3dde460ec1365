//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// compile compiles a module for the card, or reads it from the cache. A file that cannot be written or read only costs
// time.
func (k *Kernels) compile(name, ptx string) ([]byte, error) {
	path := ""
	if k.cache != "" {
		path = k.cachePath(name, ptx)
		if cubin := readSummed(path); cubin != nil {
			return cubin, nil
		}
	}
	cubin, err := k.c.Compile(name, ptx)
	if err == nil && path != "" {
		sum := sha256.Sum256(cubin)
		if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
			_ = safefile.Write(path, append(cubin[:len(cubin):len(cubin)], sum[:]...), 0o644, true)
		}
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

// readSummed reads a file that ends in the hash of the rest; nil: there is none, or it is torn. Drivers check little of
// a module.
func readSummed(path string) []byte {
	data, err := os.ReadFile(path)
	n := len(data) - sha256.Size
	if err != nil || n <= 0 || sha256.Sum256(data[:n]) != [sha256.Size]byte(data[n:]) {
		return nil
	}
	return data[:n:n]
}
