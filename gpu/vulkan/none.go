//go:build !cgo || !linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Open says that this program has no Vulkan.
func Open(int, Options) (backend.Device, error) {
	_, err := vk.Open()
	return nil, err
}

// OpenBest says that this program has no Vulkan.
func OpenBest(o Options) (backend.Device, error) { return Open(0, o) }

// List says that this program has no Vulkan.
func List(...string) ([]Found, error) {
	_, err := vk.Open()
	return nil, err
}
