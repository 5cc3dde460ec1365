package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// cacheKinds are the formats of caches that cards' kernels know, by what they call them.
var cacheKinds = [...]backend.Format{1: backend.KVF16.Format, 2: backend.KVF32.Format, 3: backend.KVQ8.Format}

// CacheKind is what kernels call a format of caches; 0: there are none for it.
func CacheKind(f backend.Format) uint32 {
	if f == (backend.Format{}) {
		return 0
	}
	return uint32(max(0, slices.Index(cacheKinds[:], f)))
}

// KnownCache is an error unless there are kernels for a format of caches, on a card whose API has a name.
func KnownCache(api string, f backend.Format) error {
	if CacheKind(f) == 0 {
		return fmt.Errorf("caches in %s have no kernels on %s: keep them in %s, or use --device cpu: %w", f, api,
			backend.KVListOpen(), errors.ErrUnsupported)
	}
	return nil
}
