package exec

import (
	"fmt"
	"runtime/debug"
	"slices"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// RowGrain is the height of a tile.
func (*model) RowGrain() int { return kernel.TileRows }

// Upload uploads rows of a weight, and waits until they are packed. Several goroutines may call it, which keeps the
// device busy.
func (m *model) Upload(r ir.Ref, row int, data []byte) error { return m.weights.upload(r, row, data) }

func (m *weights) upload(r ir.Ref, row int, data []byte) error {
	if r < 0 || int(r) >= len(m.all) {
		return fmt.Errorf("weight %d of %d", r, len(m.all))
	}
	w := &m.all[r]
	if w.name == "" {
		return fmt.Errorf("weight %d is of no segment that is computed here", r)
	}
	n := len(data) / w.rowBytes
	if len(data)%w.rowBytes != 0 || row < 0 || row > w.rows-n {
		return fmt.Errorf("%s: %d bytes for row %d, want whole rows of %d bytes, %d in all", w.name, len(data), row,
			w.rowBytes, w.rows)
	}
	if err := m.uploadRows(w, row, n, data); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	return nil
}

func (m *weights) uploadRows(w *weight, row, n int, data []byte) error {
	if w.vector != nil {
		if err := m.uploadVector(w, row, n, data); err != nil || w.matrix == nil {
			return err
		}
	}
	for from := 0; from < n; {
		to, err := m.destination(w, row+from)
		if err != nil {
			return err
		}
		rows := min(n-from, to.most)
		if err := m.packFor(w, &to, rows, data[from*w.rowBytes:][:rows*w.rowBytes]); err != nil {
			return err
		}
		if to.of != nil {
			to.of.note(w, row+from, rows)
		}
		from += rows
	}
	return nil
}

// pack packs rows of a file into a matrix, from one of its rows on.
func (m *weights) pack(w *weight, x *kernel.Matrix, first, n int, data []byte) error {
	return m.packFor(w, &destination{x: *x, first: first, up: w.up}, n, data)
}

// packFor is pack for rows that may belong to a group: it waits for the copies to the group's place that were submitted
// before.
func (m *weights) packFor(w *weight, to *destination, n int, data []byte) error {
	c := m.card
	s := <-c.stages
	defer func() { c.stages <- s }()
	most := max(stageBytes/w.packBytes/kernel.TileRows, 1) * kernel.TileRows
	there := !c.kernels.Recodes(w.typ) && m.slabs.holds(data) // no conversion, and the device reads it where it is
	if err := s.fit(c.d, uint64(max(most*w.packBytes, stageBytes)), !there); err != nil {
		return err
	}
	for from, rows := 0, 0; from < n; from += rows {
		rows = min(most, n-from)
		file := data[from*w.rowBytes:][:rows*w.rowBytes]
		source, at := s.host, uint64(0)
		if there {
			source, at = m.slabs.buffer, m.slabs.at(file)
		} else if err := c.kernels.Recode(w.typ, w.cols, s.host.Bytes, file); err != nil {
			return err
		}
		value, err := c.queue.after(to.of.behind(), func(r driver.Recording) error {
			r.Copy(s.local, 0, source, at, uint64(rows*w.packBytes))
			r.BarrierAll()
			err := c.kernels.Launch(r, &kernel.Pack{W: &to.x, File: s.local.Address, First: to.first + from, Rows: rows,
				Up: to.up})
			r.BarrierAll()
			return err
		})
		if err != nil {
			return err
		}
		to.of.wrote(value)
	}
	return nil
}

// destination is where rows of a weight are packed: from row first of a matrix on, or of the second matrix of a pair,
// and how many fit there.
type destination struct {
	x     kernel.Matrix
	first int
	up    bool
	most  int
	of    *group // the group of the rows; nil: their weight does not move
}

// destination returns where rows from one on are packed.
func (m *weights) destination(w *weight, row int) (to destination, err error) {
	to = destination{first: w.first + row, up: w.up, most: w.rows - row}
	if !w.moves {
		to.x = *w.lookup()
		if w.each > 0 {
			to.x.Address += uint64(to.within(w)) * w.apart
		}
		return to, nil
	}
	g := w.group + row/w.span
	to.of = &m.groups[g]
	l := to.of.matrices[w.part]
	to.x, to.first, to.most = *l.w, w.first+row%w.span, min(w.span-row%w.span, w.rows-row)
	if to.x.Address = m.address(to.of); to.x.Address == 0 {
		return to, fmt.Errorf("group %d (%s) is in no slot", g, m.nameOf(g))
	}
	to.x.Address += l.at
	if w.joined {
		to.within(w)
	}
	return to, nil
}

// within returns in which matrix, or pair, of several that lie one behind the other, the rows are. first becomes their
// row in it.
func (to *destination) within(w *weight) (n int) {
	n, to.first = to.first/w.each, to.first%w.each
	to.most = min(to.most, w.each-to.first)
	if w.joined {
		to.up = n%2 == 1
		n /= 2
	}
	return n
}

// uploadVector uploads a vector as float32, and keeps a copy where the host needs one.
func (m *weights) uploadVector(w *weight, row, n int, data []byte) error {
	values := make([]float32, n*w.cols)
	if err := quant.Dequantize(w.typ, values, data); err != nil {
		return err
	}
	if w.host != nil {
		copy(w.host[row*w.cols:], values)
	}
	if w.factor != 1 {
		for i := range values {
			values[i] *= w.factor
		}
	}
	s := <-m.card.stages
	defer func() { m.card.stages <- s }()
	size := uint64(4 * len(values))
	if err := s.fit(m.card.d, max(size, stageBytes), true); err != nil {
		return err
	}
	copy(unsafe.Slice((*float32)(unsafe.Pointer(&s.host.Bytes[0])), len(values)), values)
	return m.card.queue.once(func(r driver.Recording) error {
		r.BarrierAll()
		r.Copy(w.vector, uint64(4*(w.at+row*w.cols)), s.host, 0, size)
		r.BarrierAll()
		return nil
	})
}

// fillTables packs the tables that lie in the host's memory. They may come from a mapped file that was truncated
// meanwhile: reading it then faults, which becomes an error.
func (m *weights) fillTables() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", backend.ErrWeights, reason)
		}
	}()
	for r := range m.all {
		w := &m.all[r]
		if w.table == nil {
			continue
		}
		x, most := w.lookup(), max(stageBytes/w.rowBytes/kernel.TileRows, 1)*kernel.TileRows
		for row := 0; row < w.rows; row += most {
			n := min(most, w.rows-row)
			rows := m.config.Uploaded().Tables[r][row*w.rowBytes:][:n*w.rowBytes]
			data := slices.Clone(rows) // the only place where mapped memory is read
			if err := m.pack(w, x, row, n, data); err != nil {
				return err
			}
		}
	}
	return nil
}
