//go:build cgo && linux

package vulkan

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// cachePath is the file of a device's compiled kernels. Another driver or card, for which they are useless, has another
// file. The driver finds kernels in it by their code, so changed shaders only add to it.
func cachePath(dir string, f *vk.Facts) string {
	return filepath.Join(dir, fmt.Sprintf("vulkan-%x-%x.cache", f.CacheUUID, f.DriverUUID[:8]))
}

// OpenCache makes the device use the kernels compiled before, from a file in dir. A missing or damaged file is an
// empty cache. It is called once, before kernels are recorded.
func OpenCache(d *vk.Device, dir string) error {
	data, err := os.ReadFile(cachePath(dir, &d.Facts))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Drivers check little of the data: the hash at its end keeps a torn file from them.
	if n := len(data) - sha256.Size; n < 0 || sha256.Sum256(data[:n]) != [sha256.Size]byte(data[n:]) {
		data = nil
	} else {
		data = data[:n]
	}
	return d.UseCache(data)
}

// SaveCache writes what has been compiled, unless the file holds it already. Other processes may write it, too.
func SaveCache(d *vk.Device, dir string) error {
	data, err := d.CacheData()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	data = append(data, sum[:]...)
	path := cachePath(dir, &d.Facts)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := safefile.Write(path, data, 0o644, true); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
