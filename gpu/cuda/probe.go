//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import "github.com/sluice-ai/sluice/gpu/kernel"

const (
	readBlocks = 2048 // of 256 threads
	peakBlocks = 1024 // of 128; kernel.PeakBytes has a word for each
	peakWarps  = 4    // of a block
	peakSums   = 8    // of a warp
)

type readArgs struct{ x, never, quads uint64 }

func (k *Kernels) read(r *recording, x *kernel.Read) error {
	blocks := uint32(min(x.Quads/kernel.ReadQuads, readBlocks))
	return launch(k, r, "probe", "read", [3]uint32{blocks, 1, 1}, 256, 0, &readArgs{x.X, x.Never, x.Quads})
}

type peakArgs struct {
	y            uint64
	seed, rounds uint32
}

func (k *Kernels) peak(r *recording, p *kernel.Peak) error {
	name := "peakWhole"
	if p.Halves {
		name = "peakHalves"
	}
	return launch(k, r, "probe", name, [3]uint32{peakBlocks, 1, 1}, 32*peakWarps, 0, &peakArgs{p.Y, 1, p.Rounds})
}

// PeakOps implements driver.Kernels.
func (k *Kernels) PeakOps(halves bool) float64 {
	const all = peakBlocks * peakWarps * peakSums
	if halves {
		return all * 2 * 16 * 8 * 16
	}
	return all * 2 * 16 * 8 * 32
}
