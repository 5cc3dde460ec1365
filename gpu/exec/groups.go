package exec

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// layGroups finds which groups move, and the group of each weight.
func (m *weights) layGroups(p *ir.Bound) error {
	own := m.config.Own(len(m.parts.Groups))
	m.groups = make([]group, len(own))
	for g := range m.groups {
		x, of := &m.groups[g], &m.parts.Groups[g]
		x.moves, x.slot = of.Use == ir.Matrix && !own[g], absent
		for _, r := range of.Weights {
			w := &m.all[r]
			if from, to := of.Rows(&p.Weights[r]); w.span == 0 {
				w.group, w.span = g, to-from
			}
			w.moves = w.moves || x.moves
			w.away = w.away || of.Use == ir.Table && !own[g]
		}
	}
	return m.checkGroups(p)
}

// checkGroups returns an error for a program that cannot be computed with the groups that move.
func (m *weights) checkGroups(p *ir.Bound) error {
	routed := map[ir.Value]bool{}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			routed[n.Out] = n.Op == ir.Route
			for _, r := range n.Weights() {
				if w := &m.all[r]; w.moves && n.Op != ir.Embed && m.parts.Groups[w.group].Segment != s {
					return fmt.Errorf("%s is multiplied by several segments: its group cannot share a slot: %w",
						p.Weights[r].Name, errors.ErrUnsupported)
				}
			}
			if n.Op == ir.Experts && m.all[n.Experts.Gate].moves && !routed[n.In[1]] {
				return fmt.Errorf("%s: experts cannot share slots where their route is computed elsewhere: %w",
					&p.Segments[s], errors.ErrUnsupported)
			}
		}
	}
	return nil
}

// join adds a matrix to the memory of a group that moves, or that stays but belongs to a layer whose other groups move.
func (m *weights) join(g int, x *kernel.Matrix, refs ...ir.Ref) {
	to := &m.groups[g]
	for _, r := range refs {
		w := &m.all[r]
		w.part, w.tile = len(to.matrices), to.rows
		to.rows += (w.span + kernel.TileRows - 1) / kernel.TileRows
	}
	to.matrices = append(to.matrices, laid{x, to.bytes})
	m.spots[x] = spot{g, to.bytes}
	to.bytes += aligned(x.Bytes())
}

// laySlots takes memory for the groups that stay, and for the slots.
func (m *weights) laySlots() (err error) {
	for g := range m.groups {
		x := &m.groups[g]
		switch {
		case len(x.matrices) == 0:
			continue
		case !x.moves:
			if x.home, err = m.memory.take(driver.Local, x.bytes, m.nameOf(g)); err != nil {
				return err
			}
			m.memory.account.Weights += int64(x.home.Size)
		}
		x.filled = make([]atomic.Bool, x.rows)
		x.missing.Store(int64(x.rows))
	}
	if err := m.layKept(); err != nil {
		return err
	}
	m.slots = make([]slot, len(m.config.Slots))
	for s, fit := range m.config.Slots {
		m.slots[s].group = absent
		if len(fit) < 2 && !m.groups[fit[0]].moves {
			continue
		}
		size := uint64(0)
		for _, g := range fit {
			size = max(size, m.groups[g].bytes)
		}
		if m.slots[s].memory, err = m.memory.take(driver.Local, size, "slots of weights"); err != nil {
			return err
		}
		m.memory.account.Weights += int64(size)
	}
	return nil
}

// keptAtOnce is the most bytes of the host's memory in one allocation. Allocations are this large since drivers allow
// few.
const keptAtOnce = 1 << 30

// layKept takes memory of the host for the groups that are kept there, unless it is part of a table that is there
// anyway.
func (m *weights) layKept() (err error) {
	for all := m.config.Kept; len(all) > 0; {
		n, bytes := 0, uint64(0)
		for ; n < len(all) && (n == 0 || bytes+m.groups[all[n]].bytes <= keptAtOnce); n++ {
			if x := &m.groups[all[n]]; x.kept == nil {
				x.from, bytes = bytes, bytes+x.bytes
			}
		}
		if bytes > 0 {
			b, err := m.memory.raw(driver.Staging, bytes, "weights that wait in memory")
			if err != nil {
				return err
			}
			m.memory.account.Host += int64(bytes)
			for _, g := range all[:n] {
				if x := &m.groups[g]; x.kept == nil {
					x.kept = b
				}
			}
		}
		all = all[n:]
	}
	return nil
}
