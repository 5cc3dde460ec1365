package exec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// lay takes memory for the weights, or returns an error that names all weights that cannot be used.
func (m *weights) lay(p *ir.Bound, f *plan.Fusion) error {
	used, _, _ := p.Used()
	var faults []error
	for r := range p.Weights {
		if !used[r] {
			continue
		}
		if err := m.all[r].measure(m.card, &p.Weights[r], p.Types[r]); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", p.Weights[r].Name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if err := m.layGroups(p); err != nil {
		return err
	}
	for _, list := range f.Stacks {
		if err := m.layMatrix(p, list); err != nil {
			return err
		}
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op == ir.Experts {
				if err := m.layExperts(p, n); err != nil {
					return err
				}
			}
		}
	}
	for r := range p.Weights {
		w := &m.all[r]
		if w.name == "" || w.matrix != nil || w.vector != nil {
			continue
		}
		if p.Weights[r].Use&ir.Vector != 0 {
			if err := m.layVector(f, ir.Ref(r)); err != nil {
				return err
			}
		} else if err := m.layMatrix(p, &plan.Stack{Refs: []ir.Ref{ir.Ref(r)}}); err != nil {
			return err
		}
	}
	return m.laySlots()
}

func (w *weight) measure(c *card, want *ir.Weight, t quant.Type) (err error) {
	w.name, w.typ, w.rows, w.cols, w.factor = want.Name, t, want.Rows, want.Cols, 1
	if w.rowBytes, err = t.RowBytes(want.Cols); err != nil {
		return err
	}
	if w.packBytes, err = c.kernels.UploadBytes(t, want.Cols); err != nil {
		return err
	}
	api := c.d.Facts().API
	_, unknown := c.kernels.Matrix(t, want.Rows, want.Cols, false)
	switch {
	case want.Use&ir.Vector != 0 && !quant.HasCodec(t):
		return fmt.Errorf("%s cannot be decoded", t)
	case want.Use&ir.Vector == 0 && unknown != nil:
		return fmt.Errorf("%s has no kernels on %s: convert the model to a type that has, such as Q8_0, or use "+
			"--device cpu", t, api)
	case want.Experts > 0 && want.Rows/want.Experts%kernel.TileRows != 0:
		return fmt.Errorf("matrices of %d rows for each expert: %w on %s, want a multiple of %d: use --device cpu",
			want.Rows/want.Experts, plan.ErrNoKernel, api, kernel.TileRows)
	}
	return nil
}

// layMatrix takes memory for weights that lie as one matrix: their rows one after the other, or, of a pair, tile by
// tile in turn.
func (m *weights) layMatrix(p *ir.Bound, s *plan.Stack) error {
	rows := 0
	for _, r := range s.Refs {
		rows += p.Weights[r].Rows
	}
	if s.Pair {
		rows /= 2
	}
	first := &m.all[s.Refs[0]]
	x, err := m.card.kernels.Matrix(p.Types[s.Refs[0]], rows, p.Weights[s.Refs[0]].Cols, s.Pair)
	switch {
	case err != nil:
		return err
	case first.moves && first.span < first.rows:
		return m.layPieces(p, s.Refs[0])
	case first.moves:
		m.join(first.group, &x, s.Refs...)
	case first.away:
		first.matrix = &x
		return m.layTable(first)
	default:
		b, err := m.memory.take(driver.Local, x.Bytes(), first.name)
		if err != nil {
			return err
		}
		x.Address = b.Address
		m.memory.account.Weights += int64(x.Bytes())
	}
	at := 0
	for i, r := range s.Refs {
		w := &m.all[r]
		w.matrix, w.first, w.up = &x, at, s.Pair && i == 1
		if !s.Pair {
			at += w.rows
		}
	}
	if first.moves && looked(p, s.Refs[0]) {
		if err := m.layTable(first); err != nil {
			return err
		}
	}
	return m.layBias(p, s)
}

// layBias takes memory for the biases of a stack, one after the other.
func (m *weights) layBias(p *ir.Bound, s *plan.Stack) error {
	if len(s.Biases) == 0 {
		return nil
	}
	n := 0
	for _, r := range s.Biases {
		n += p.Weights[r].Cols
	}
	b, err := m.memory.take(driver.Local, uint64(4*n), p.Weights[s.Biases[0]].Name)
	if err != nil {
		return err
	}
	m.memory.account.Weights += int64(b.Size)
	at := 0
	for _, r := range s.Biases {
		m.all[r].vector, m.all[r].at = b, at
		at += p.Weights[r].Cols
	}
	return nil
}

func (m *weights) layVector(f *plan.Fusion, r ir.Ref) error {
	w := &m.all[r]
	b, err := m.memory.take(driver.Local, uint64(4*kernel.PaddedWidth(w.rows*w.cols)), w.name)
	if err != nil {
		return err
	}
	w.vector = b
	m.memory.account.Weights += int64(b.Size)
	if f.Sinks[r] {
		w.factor = math.Log2E
	}
	if f.Divisors[r] {
		w.host = make([]float32, w.cols)
	}
	return nil
}

// layExperts takes memory for the matrices of an Experts: gate and up as pairs, if they have one type or are one
// tensor, and down.
func (m *weights) layExperts(p *ir.Bound, n *ir.Node) error {
	e := n.Experts
	all := [][]ir.Ref{e.Takes(), {e.Down}}
	if len(all[0]) == 2 && (p.Types[e.Gate] != p.Types[e.Up] || (e.GateBias == ir.NoRef) != (e.UpBias == ir.NoRef)) {
		all = [][]ir.Ref{{e.Gate}, {e.Up}, {e.Down}}
	}
	for _, refs := range all {
		w, joined := &p.Weights[refs[0]], e.Joined() && refs[0] == e.Gate
		rows := w.Rows / w.Experts
		if joined {
			rows /= 2
		}
		x, err := m.card.kernels.Matrix(p.Types[refs[0]], rows, w.Cols, joined || len(refs) == 2)
		switch {
		case err != nil:
			return err
		case rows%kernel.TileRows != 0:
			return fmt.Errorf("%s: experts of %d features: %w on %s, want a multiple of %d: use --device cpu", w.Name,
				rows, plan.ErrNoKernel, m.card.d.Facts().API, kernel.TileRows)
		}
		m.all[refs[0]].joined = joined
		if m.all[refs[0]].moves {
			m.joinExperts(&x, refs, w.Experts)
			continue
		}
		size := aligned(x.Bytes())
		b, err := m.memory.take(driver.Local, size*uint64(w.Experts), w.Name)
		if err != nil {
			return err
		}
		m.memory.account.Weights += int64(b.Size)
		x.Address = b.Address
		for i, r := range refs {
			t := &m.all[r]
			t.matrix, t.up, t.each, t.apart = &x, i == 1, x.Rows, size
		}
		if err := m.layAddresses(refs[0], x, size, w.Experts); err != nil {
			return err
		}
	}
	return nil
}

// joinExperts gives each expert's matrix, or pair, of experts that move, a place in the expert's group. Their addresses
// come with each part of the segment, in tables: this matrix has the next one.
func (m *weights) joinExperts(x *kernel.Matrix, refs []ir.Ref, experts int) {
	w := &m.all[refs[0]]
	for e := range experts {
		m.join(w.group+e, x, refs...)
	}
	for i, r := range refs {
		t := &m.all[r]
		t.matrix, t.up, t.each = x, i == 1, x.Rows
	}
	table := *x
	m.spots[&table] = spot{plan.Absent, uint64(8 * experts * w.part)}
	m.experts[refs[0]] = &table
}

// layAddresses writes a table of the addresses of the experts' matrices, for kernels.
func (m *weights) layAddresses(r ir.Ref, x kernel.Matrix, apart uint64, experts int) error {
	table, err := m.memory.take(driver.Local, uint64(8*experts), "addresses")
	if err != nil {
		return err
	}
	host, err := allocate(m.memory.d, driver.Staging, uint64(8*experts), "addresses")
	if err != nil {
		return err
	}
	defer m.memory.d.Free(host)
	for e := range experts {
		binary.LittleEndian.PutUint64(host.Bytes[8*e:], x.Address+uint64(e)*apart)
	}
	x.Address = table.Address
	m.experts[r] = &x
	if m.config.Counted {
		return nil
	}
	return m.card.queue.once(func(rec driver.Recording) error {
		rec.Copy(table, 0, host, 0, uint64(8*experts))
		rec.BarrierAll()
		return nil
	})
}

// layPieces divides a matrix that moves in pieces. If rows are looked up in it, too, it lies whole in the host's
// memory, and pieces that are kept there are parts of it.
func (m *weights) layPieces(p *ir.Bound, r ir.Ref) error {
	w := &m.all[r]
	whole, err := m.card.kernels.Matrix(w.typ, w.rows, w.cols, false)
	if err != nil {
		return err
	}
	w.matrix = &whole
	if looked(p, r) {
		if err := m.layTable(w); err != nil {
			return err
		}
	}
	for g := w.group; g < len(m.groups) && m.parts.Groups[g].Segment == m.parts.Groups[w.group].Segment; g++ {
		from, to := m.parts.Groups[g].Rows(&p.Weights[r])
		x := whole
		x.Rows = to - from
		m.join(g, &x, r)
		m.groups[g].rows = (x.Rows + kernel.TileRows - 1) / kernel.TileRows
		w.pieces = append(w.pieces, &x)
		if w.table != nil && slices.Contains(m.config.Kept, g) {
			x := &m.groups[g]
			x.kept = w.table
			x.from = uint64(from/kernel.TileRows) * uint64(whole.KTiles()) * uint64(whole.TileBytes)
		}
	}
	return nil
}

// layTable takes memory of the host for a weight whose rows kernels look up there.
func (m *weights) layTable(w *weight) (err error) {
	if w.table, err = m.memory.raw(driver.Staging, w.matrix.Bytes(), w.name); err != nil {
		return err
	}
	m.memory.account.Host += int64(w.table.Size)
	return nil
}

// looked says whether an Embed looks up rows of a weight.
func looked(p *ir.Bound, r ir.Ref) bool {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op == ir.Embed && n.W == r {
				return true
			}
		}
	}
	return false
}
