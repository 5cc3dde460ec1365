package cpu_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// secret is the CPU without the memory of its slots, as a device with memory of its own: groups come by Upload alone.
type secret struct{ backend.Device }

func (d secret) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return &secretModel{Model: m, p: p, groups: p.On(p.All()), coming: map[int]*coming{}}, err
}

type secretModel struct {
	backend.Model
	p      *ir.Bound
	groups []ir.Group
	mu     sync.Mutex
	coming map[int]*coming // by slot
}

// coming is a group that is being uploaded.
type coming struct {
	group   int
	data    [][]byte
	missing int
}

func (*secretModel) Slot(int) []byte { return nil }

// Place notes what is to come.
func (m *secretModel) Place(group, slot int, data [][]byte) error {
	memory := m.Model.Slot(slot)
	if data != nil || memory == nil {
		return fmt.Errorf("group %d, slot %d: it is uploaded, to a slot that is shared", group, slot)
	}
	x := &coming{group: group}
	for _, r := range m.groups[group].Weights {
		from, to := m.groups[group].Rows(&m.p.Weights[r])
		n := m.rowBytes(r) * (to - from)
		x.data, memory, x.missing = append(x.data, memory[:n:n]), memory[n:], x.missing+n
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, y := range m.coming {
		if y.group == group {
			delete(m.coming, s)
		}
	}
	m.coming[slot] = x
	return nil
}

func (m *secretModel) rowBytes(r ir.Ref) int { return int(m.p.Size(r)) / m.p.Weights[r].Rows }

// Upload fills what was announced, and places it when it is whole.
func (m *secretModel) Upload(r ir.Ref, row int, rows []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, x := range m.coming {
		for i, ref := range m.groups[x.group].Weights {
			from, to := m.groups[x.group].Rows(&m.p.Weights[r])
			if ref != r || row < from || row >= to {
				continue
			}
			copy(x.data[i][(row-from)*m.rowBytes(r):], rows)
			if x.missing -= len(rows); x.missing > 0 {
				return nil
			}
			delete(m.coming, slot)
			return m.Model.Place(x.group, slot, x.data)
		}
	}
	return m.Model.Upload(r, row, rows)
}

// TestUploadedSlots: a device that has no memory to read into is given its groups by Upload, in the same suite.
func TestUploadedSlots(t *testing.T) {
	backendtest.Slots(t, secret{device(t, 2, "")}, someTypes)
}
