package exec

import (
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// stage is memory that one piece of weights travels through: the host writes, unless the piece lies in staging buffers
// of the program that the device reads, a copy brings it to the device, a kernel packs it.
type stage struct {
	host, local *driver.Buffer
}

// stageBytes is the size of pieces, unless one tile of rows takes more.
const stageBytes = 2 << 20

// fit makes room for n bytes, with written in memory that the host writes, too.
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

// slabs is the program's memory that weights come in, where the device reads them itself: a copy less for each byte,
// and no core that makes it.
type slabs struct {
	memory []byte
	buffer *driver.Buffer // nil: the device cannot, and what is uploaded is copied to memory of its own first
}

// importSlabs has the device read memory of the program, if it can.
func importSlabs(b *memory, all []byte) (s slabs) {
	if all == nil {
		return s
	}
	if x, err := b.d.Import(all); err == nil { // an advantage, not a need
		b.all = append(b.all, x)
		s = slabs{all, x}
	}
	return s
}

// holds says whether data lies in them.
func (s *slabs) holds(data []byte) bool {
	return s.buffer != nil && s.at(data) < uint64(len(s.memory)) && s.at(data)+uint64(len(data)) <= uint64(len(s.memory))
}

// at is where in them data begins.
func (s *slabs) at(data []byte) uint64 {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(s.memory)))
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))) - begin)
}
