package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// cacheKinds lists the cache formats that GPU kernels know, by the number that stands for each in kernels.
var cacheKinds = [...]backend.Format{1: backend.KVF16.Format, 2: backend.KVF32.Format, 3: backend.KVQ8.Format}

// CacheKind is the number that stands for a cache format in kernels; 0: there are no kernels for it.
func CacheKind(f backend.Format) uint32 {
	if f == (backend.Format{}) {
		return 0
	}
	return uint32(max(0, slices.Index(cacheKinds[:], f)))
}

// KnownCache returns an error if there are no kernels for a cache format on a GPU whose API is called api.
func KnownCache(api string, f backend.Format) error {
	if CacheKind(f) == 0 {
		return fmt.Errorf("caches in %s have no kernels on %s: keep them in %s, or use --device cpu: %w", f, api,
			backend.KVListOpen(), errors.ErrUnsupported)
	}
	return nil
}
