//go:build !linux || !(amd64 || arm64) || !(cgo || cuda)

package cuda

import (
	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Open says that this program has no CUDA.
func Open(int, Options) (backend.Device, error) {
	_, err := cu.Open("")
	return nil, err
}

// OpenTeam says that this program has no CUDA.
func OpenTeam([]int, Options) (backend.Device, error) { return Open(0, Options{}) }

// List says that this program has no CUDA.
func List(Options) ([]Found, error) {
	_, err := cu.Open("")
	return nil, err
}
