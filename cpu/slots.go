package cpu

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// room is a slot that groups share: products read the group as it lies in the file. Experts, which may be used again
// while they are resident, are packed in the slot by the first product (docs/adr/0014).
type room struct {
	memory []byte // nil: the slot is one group's own
	holds  int    // group; -1: none
}

// absent stands in model.where for a group that is in no slot.
const absent = -1

// layRooms allocates the memory of shared slots as one area, so that it gets as many huge pages as possible.
func (m *model) layRooms(p *ir.Bound) error {
	groups := m.parts.Groups
	m.where, m.named = make([]int, len(groups)), make([]bool, len(groups))
	sizes, total := make([]int64, len(m.config.Slots)), int64(0)
	for s, fit := range m.config.Slots {
		if len(fit) == 1 {
			continue
		}
		for _, g := range fit {
			sizes[s] = max(sizes[s], backend.SlotBytes(p, &groups[g]))
			m.where[g] = absent
		}
		total += sizes[s]
	}
	memory, err := mem.Alloc(total)
	if err != nil {
		return fmt.Errorf("slots of weights: %w", err)
	}
	m.roomMemory = memory
	for _, size := range sizes {
		m.rooms = append(m.rooms, room{memory: memory[:size:size], holds: absent})
		memory = memory[size:]
	}
	m.populated.Go(func() { mem.Populate(m.roomMemory, &m.closing) })
	return nil
}

// Slot is nil for a slot of one group.
func (m *model) Slot(slot int) []byte {
	if slot < 0 || slot >= len(m.rooms) || len(m.rooms[slot].memory) == 0 {
		return nil
	}
	return m.rooms[slot].memory
}

func (m *model) Place(group, slot int, data [][]byte) error {
	if err := m.fits(group, slot, data); err != nil {
		return fmt.Errorf("group %d, slot %d: %w", group, slot, err)
	}
	r := &m.rooms[slot]
	m.leave(r.holds)
	if at := m.where[group]; at != absent {
		m.rooms[at].holds = absent
	}
	for i, ref := range m.parts.Groups[group].Weights {
		w := m.matrix(group, ref)
		w.Data = data[i]
		clear(w.Packed)
	}
	r.holds, m.where[group] = group, slot
	return nil
}

// leave makes a group absent.
func (m *model) leave(group int) {
	if group == absent {
		return
	}
	m.where[group] = absent
	for _, ref := range m.parts.Groups[group].Weights {
		m.matrix(group, ref).Data = nil
	}
}

// matrix is the part of a weight that a group has.
func (m *model) matrix(group int, ref ir.Ref) *kernels.Matrix {
	g, w := &m.parts.Groups[group], &m.weights[ref]
	return w.parts[max(g.Expert, g.Piece)]
}

// fits is an error if a group cannot be placed in a slot, or if data is not the group's data in the slot.
func (m *model) fits(group, slot int, data [][]byte) error {
	if slot < 0 || slot >= len(m.rooms) || len(m.rooms[slot].memory) == 0 {
		return errors.New("no such slot is shared")
	}
	if !slices.Contains(m.config.Slots[slot], group) {
		return fmt.Errorf("it is for groups %v", m.config.Slots[slot])
	}
	g := &m.parts.Groups[group]
	if len(data) != len(g.Weights) {
		return fmt.Errorf("data of %d weights, want %d", len(data), len(g.Weights))
	}
	for i, ref := range g.Weights {
		w := &m.weights[ref]
		if want := m.matrix(group, ref).Rows * w.row; len(data[i]) != want {
			return fmt.Errorf("%s: %d bytes, want %d", w.name, len(data[i]), want)
		}
		if !inside(m.rooms[slot].memory, data[i]) {
			return fmt.Errorf("%s: data lies outside the slot", w.name)
		}
	}
	return nil
}

// inside says whether data is part of memory.
func inside(memory, data []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data))) - uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	return at <= uintptr(len(memory)-len(data)) // a difference below 0 wraps to a large number
}

// there is an error if a group is in no slot.
func (m *model) there(group int) error {
	if m.where[group] != absent {
		return nil
	}
	g := &m.parts.Groups[group]
	name := m.weights[g.Weights[0]].name
	switch {
	case g.Expert != ir.Dense:
		return fmt.Errorf("group %d (expert %d of %s) is in no slot", group, g.Expert, name)
	case g.Each > 0:
		return fmt.Errorf("group %d (piece %d of %s) is in no slot", group, g.Piece, name)
	}
	return fmt.Errorf("group %d (with %s) is in no slot", group, name)
}
