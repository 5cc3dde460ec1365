//go:build cgo && linux

package vulkan

import (
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// slabs is the program's memory that weights come in, where the device reads them itself: a copy less for each byte,
// and no core that makes it.
type slabs struct {
	memory []byte
	buffer *vk.Buffer // nil: the device cannot, and what is uploaded is copied to memory of its own first
}

// importSlabs has the device read slabs, if it can.
func (m *model) importSlabs() {
	if m.config.Slabs == nil {
		return
	}
	if b, err := m.device.d.Import(m.config.Slabs); err == nil { // an advantage, not a need
		m.slabs = slabs{m.config.Slabs, b}
		m.memory.all = append(m.memory.all, b)
	}
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
