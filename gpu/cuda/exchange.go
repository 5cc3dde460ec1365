//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
)

// exchangeArgs is the arguments of exchange.cu.
// Wide: they are the arguments of a kernel.
type exchangeArgs struct {
	part, y, residual, first, count, status uint64

	box  [kernel.MostMembers]uint64
	many uint64

	index, member, members, rows     uint32
	width, partStride, yStride, join uint32
	room, few                        uint32
	patience                         uint64
}

// answers is how long a card waits for another one of its team, in nanoseconds. A card that the CPU emulates may wait
// long for its cores.
const (
	answers      = 3_000_000_000
	answersPlain = 60_000_000_000
)

// exchange records an Exchange. A processor that plays cards runs the blocks of a kernel one after another, and those
// of two cards in different orders.
func (k *Kernels) exchange(r *recording, e *kernel.Exchange) error {
	if e.Width%4 != 0 || e.PartStride%4 != 0 || e.YStride%4 != 0 || len(e.Box.At) > kernel.MostMembers {
		return fmt.Errorf("an exchange of %d features among %d cards", e.Width, len(e.Box.At))
	}
	a := &exchangeArgs{part: e.Part, y: e.Y, residual: e.Residual, first: e.First, count: e.Count, status: e.Status,
		many: e.Box.Many(0), index: uint32(e.Index), member: uint32(e.Box.Member), members: uint32(len(e.Box.At)),
		rows: uint32(e.Rows), width: uint32(e.Width), partStride: uint32(e.PartStride), yStride: uint32(e.YStride),
		join: bit(e.Join), room: uint32(e.Box.Part(0, 1) - e.Box.Part(0, 0)),
		few: uint32(e.Box.Few(0, 1) - e.Box.Few(0, 0)), patience: answers}
	copy(a.box[:], e.Box.At)
	name, threads, each := "exchangeMany", 512, 4
	if e.Rows*e.Width <= kernel.FewShared {
		name, threads, each = "exchangeFew", 256, 2
	}
	blocks := min(parts(e.Rows*e.Width, threads*each), kernel.FlagBlocks, uint32(k.c.Facts.Processors))
	if k.c.Facts.Name == playing {
		blocks, a.patience = 1, answersPlain
	}
	r.waits = true
	return launch(k, r, "exchange", name, [3]uint32{blocks, 1, 1}, threads, 0, a)
}
