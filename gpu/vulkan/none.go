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

// Measure knows no device.
func Measure(backend.Device) (Rates, error) { return Rates{}, nil }

// Ceilings knows no device.
func Ceilings(backend.Device, bool) (read, multiply []float64, err error) { return nil, nil, nil }

// List says that this program has no Vulkan.
func List(...string) ([]Found, error) {
	_, err := vk.Open()
	return nil, err
}
