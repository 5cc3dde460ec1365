package exec

import (
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// stage is memory for one piece of weights on its way to the device. The host writes the piece to host, unless it lies
// in memory of the program that the device reads itself; a copy brings it to local, and a kernel packs it into tiles.
type stage struct {
	host, local *driver.Buffer
}

// stageBytes is the size of pieces, unless one tile of rows takes more.
const stageBytes = 2 << 20

// fit makes room for n bytes in local and, if the host writes the piece, in host.
func (s *stage) fit(d driver.Device, n uint64, written bool) error {
	for _, b := range []struct {
		at     **driver.Buffer
		memory driver.Memory
		wanted bool
	}{{&s.local, driver.Local, true}, {&s.host, driver.Staging, written}} {
		if !b.wanted || *b.at != nil && (*b.at).Size >= n {
			continue
		}
		d.Free(*b.at)
		var err error
		if *b.at, err = allocate(d, b.memory, n, "what weights travel through"); err != nil {
			*b.at = nil
			return err
		}
	}
	return nil
}

func (s *stage) free(d driver.Device) {
	d.Free(s.host, s.local)
	s.host, s.local = nil, nil
}

// imported is memory of the program that the device itself copies to or from, if it can: that spares the CPU a copy of
// each byte.
type imported struct {
	memory []byte
	buffer *driver.Buffer // nil: the device cannot, and the host copies between it and a buffer of the device's
}

// importMemory makes memory of the program reachable for the device, if it can.
func importMemory(b *memory, all []byte) (s imported) {
	if all == nil {
		return s
	}
	if x, err := b.d.Import(all); err == nil { // else the host copies
		b.all = append(b.all, x)
		s = imported{all, x}
	}
	return s
}

// holds says whether data lies in memory that the device reaches.
func (s *imported) holds(data []byte) bool {
	return s.buffer != nil && s.at(data) < uint64(len(s.memory)) && s.at(data)+uint64(len(data)) <= uint64(len(s.memory))
}

// at is the offset in it at which data begins.
func (s *imported) at(data []byte) uint64 {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(s.memory)))
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))) - begin)
}
