//go:build cgo && linux

package vulkan

import (
	"fmt"
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
	data, err := safefile.ReadSummed(cachePath(dir, &d.Facts)) // drivers check little of it
	if err != nil {
		return err
	}
	return d.UseCache(data)
}

// SaveCache writes what has been compiled, unless the file holds it already. Other processes may write it, too.
func SaveCache(d *vk.Device, dir string) error {
	data, err := d.CacheData()
	if err != nil {
		return err
	}
	return safefile.WriteSummed(cachePath(dir, &d.Facts), data)
}
