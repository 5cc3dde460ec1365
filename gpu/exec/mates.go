package exec

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
)

// mates is what a model has in common with those of the other cards of a team. A kernel that exchanges waits for the
// other cards', so what was recorded is held back until all cards have recorded theirs: to record may take long, and
// may wait for a card.
type mates struct {
	team *plan.Team // nil: the model is alone
	box  *kernel.Box
	own  *driver.Buffer // the card's box
	next uint32         // number of the next step's first exchange
	held []held
}

// held is a recording that waits until the other cards have made theirs.
type held struct {
	entry *entry
	r     driver.Recording
	key   recorded
}

// layBox takes memory for the card's box.
func (m *model) layBox() (err error) {
	x, l := &m.mates, m.layout
	if x.team == nil {
		return nil
	}
	x.next = 1
	x.box = &kernel.Box{Member: x.team.Member, Room: l.plan.Room, At: make([]uint64, x.team.Members)}
	if x.own, err = l.memory.take(driver.Local, x.box.Bytes(), "what cards exchange"); err != nil {
		return err
	}
	x.box.At[x.team.Member] = x.own.Address
	l.memory.account.Scratch += int64(x.own.Size)
	return nil
}

// meet makes the boxes of all models of a team reachable for each of them, and empties them.
func meet(all []*model) error {
	for i, m := range all {
		for j, mate := range all {
			if i == j {
				continue
			}
			b, err := reach(m.layout.memory.d, mate.device.d, mate.mates.own)
			if err != nil {
				return fmt.Errorf("%s: %w", m.device.facts.Name, err)
			}
			m.layout.memory.all = append(m.layout.memory.all, b)
			m.mates.box.At[j] = b.Address
		}
	}
	for _, m := range all {
		err := m.device.queue.once(func(r driver.Recording) error {
			r.BarrierAll()
			r.Fill(m.mates.own, 0)
			r.BarrierAll()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reach makes memory of another card reachable for the kernels of one.
func reach(d, other driver.Device, b *driver.Buffer) (*driver.Buffer, error) {
	r, ok := d.(driver.Reacher)
	if !ok {
		return nil, fmt.Errorf("its driver gives kernels no memory of another card: have cards compute layers, as 0,1: %w",
			errors.ErrUnsupported)
	}
	return r.Reach(other, b)
}

// begin tells kernels the number of a step's first exchange.
func (x *mates) begin(e *entry, at int) {
	if x.team == nil {
		return
	}
	e.exchanges = x.next
	words[uint32](e.block, at, 1)[0] = x.next
}

// prepare does what takes long before what was held back is submitted.
func (m *model) prepare() error {
	if err := m.device.queue.alive(nil); err != nil {
		return err // the others would wait in vain
	}
	for i := range m.mates.held {
		if p, ok := m.mates.held[i].r.(driver.Preparer); ok {
			if err := p.Prepare(); err != nil {
				return err
			}
		}
	}
	return nil
}

// release submits what was held back.
func (m *model) release() error {
	x := &m.mates
	for i := range x.held {
		h := &x.held[i]
		one := [1]recorded{h.key}
		m.batch = append(m.batch[:0], h.r)
		if _, err := m.give(h.entry, 0, m.batch, one[:]); err != nil {
			x.held = x.held[:0]
			return err
		}
		x.next = h.entry.exchanges + uint32(m.layout.plan.Exchanges(&h.key.Shape))
	}
	x.held = x.held[:0]
	return nil
}
