//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import "github.com/sluice-ai/sluice/gpu/kernel"

type argMaxArgs struct {
	x, y, copy              uint64
	width, xStride, join, _ uint32
}

func (k *Kernels) argMax(r *recording, m *kernel.ArgMax) error {
	grid := [3]uint32{kernel.RowParts, uint32(m.Rows), 1}
	err := launch(k, r, "argmax", "argmax", grid, 256, 0, &argMaxArgs{x: m.X, y: m.Scratch, width: uint32(m.Width),
		xStride: uint32(m.Stride)})
	if err != nil {
		return err
	}
	r.Barrier()
	grid[0] = 1
	return launch(k, r, "argmax", "argmax", grid, 256, 0, &argMaxArgs{x: m.Scratch, y: m.IDs, copy: m.Second,
		width: kernel.RowParts, xStride: kernel.RowParts, join: 1})
}

type sampleArgs struct {
	logits, scratch, draws, ids, second uint64
	width, stride, parts, join          uint32
}

// sampleShared is the bytes of shared memory of a block: for each token that may be drawn a weight, a key and an id,
// and counts.
const sampleShared = kernel.MaxTopK*16 + 2*4*256 + 24

func (k *Kernels) sample(r *recording, s *kernel.Sample) error {
	a := sampleArgs{logits: s.Logits, scratch: s.Scratch, draws: s.Draws, ids: s.IDs, second: s.Second,
		width: uint32(s.Width), stride: uint32(s.Stride), parts: kernel.RowParts}
	if err := launch(k, r, "sample", "sample", [3]uint32{kernel.RowParts, uint32(s.Rows), 1}, 256, sampleShared, &a); err != nil {
		return err
	}
	r.Barrier()
	join := a // a copy: a recording keeps the address of its arguments
	join.join = 1
	return launch(k, r, "sample", "sample", [3]uint32{1, uint32(s.Rows), 1}, 256, sampleShared, &join)
}
