//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
)

// stepwise is the list of memory that the host writes for each step and kernels read. Nearly every kernel of a step
// reads some, and from the host's memory each would wait for the bus. So there are two copies, and a recording whose
// kernels have addresses of such memory begins with kernels that copy what the host has written to the card.
type stepwise struct {
	mu  sync.Mutex
	all []*memory
}

func (s *stepwise) add(m *memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, m)
}

func (s *stepwise) remove(m *memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.all, m); i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
}

// named appends the memory into which words of a kernel's arguments point, if it is not in the list yet.
func (s *stepwise) named(to []*memory, args []byte) []*memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; len(args) >= 8 && len(s.all) > 0; args = args[8:] {
		address := binary.LittleEndian.Uint64(args)
		for _, m := range s.all {
			if address-m.local < uint64(len(m.host)) && !slices.Contains(to, m) {
				to = append(to, m)
			}
		}
	}
	return to
}

type fetchArgs struct{ to, from, quads uint64 }

// fetch returns the launch of the kernel that copies what the host has written to the card.
func (k *Kernels) fetch(m *memory) (cu.Launch, error) {
	const threads, bytes = 256, 16
	blocks := parts(len(m.host), threads*bytes)
	return k.prepare("queue", "fetch", [3]uint32{blocks, 1, 1}, threads, 0,
		bytesOf(&fetchArgs{m.local, cu.AddressOf(m.host), uint64(len(m.host)) / bytes}))
}
