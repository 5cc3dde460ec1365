//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// cacheKinds are the formats of caches that kernels know, by their constant Type.
var cacheKinds = [...]backend.Format{1: backend.KVF16.Format, 2: backend.KVF32.Format, 3: backend.KVQ8.Format}

// cacheKind is the constant of a format; 0: there are no kernels for it.
func cacheKind(f backend.Format) uint32 {
	if f == (backend.Format{}) {
		return 0
	}
	return uint32(max(0, slices.Index(cacheKinds[:], f)))
}

// Caches implements kernel.Table.
func (k *Kernels) Caches(f backend.Format) error {
	if cacheKind(f) == 0 {
		return fmt.Errorf("caches in %s have no kernels on Vulkan: keep them in %s, or use --device cpu: %w", f,
			backend.KVListOpen(), errors.ErrUnsupported)
	}
	return nil
}
