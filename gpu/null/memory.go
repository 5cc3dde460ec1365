package null

import (
	"fmt"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// memory is all buffers, in the order of their addresses. No address is used twice, and between two buffers are
// addresses that belong to none.
type memory struct {
	mu   sync.RWMutex
	all  []*driver.Buffer
	next uint64
	free uint64
}

const (
	firstAddress = 1 << 20
	gap          = 1 << 16
	spoiled      = 1 << 18 // how many bytes of new memory are NaN, at most: to fill all of a large buffer takes long
)

// backing is the memory of a buffer, which Buffer.Bytes may hide.
type backing struct {
	bytes []byte
	local bool // it is the card's own
}

func (m *memory) allocate(where driver.Memory, size uint64) (*driver.Buffer, error) {
	m.mu.Lock()
	short := where == driver.Local && size > m.free
	if !short && where == driver.Local {
		m.free -= size
	}
	m.mu.Unlock()
	if short {
		return nil, fmt.Errorf("%d bytes: %w", size, driver.ErrScarce)
	}
	words := make([]uint64, (size+7)/8) // kernels and the host read numbers of eight bytes
	for i := 0; where == driver.Local && i < min(len(words), spoiled/8); i++ {
		words[i] = 1<<64 - 1
	}
	var bytes []byte
	if size > 0 {
		bytes = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
	}
	b := m.add(backing{bytes, where == driver.Local})
	if where != driver.Local {
		b.Bytes = bytes
	}
	return b, nil
}

// add makes a buffer of bytes, with an address of its own.
func (m *memory) add(own backing) *driver.Buffer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = max(m.next, firstAddress)
	b := &driver.Buffer{Address: m.next, Size: uint64(len(own.bytes)), Own: own}
	m.next = (m.next + b.Size + gap + 255) &^ 255
	m.all = append(m.all, b)
	return b
}

func (m *memory) remove(b *driver.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.all, b); i >= 0 {
		m.all = slices.Delete(m.all, i, i+1)
		if b.Own.(backing).local {
			m.free += b.Size
		}
	}
}

// at is n bytes from an address on, all in one buffer.
func (m *memory) at(address, n uint64) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i := sort.Search(len(m.all), func(i int) bool { return m.all[i].Address > address }) - 1
	if i < 0 || address-m.all[i].Address+n > m.all[i].Size {
		return nil, fmt.Errorf("%d bytes at %#x lie in no buffer", n, address)
	}
	from := address - m.all[i].Address
	return m.all[i].Own.(backing).bytes[from : from+n : from+n], nil
}
