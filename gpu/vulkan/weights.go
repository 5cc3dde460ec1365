//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// patience is how long one wait for the device lasts, before it is looked whether it hangs.
const patience = time.Second

// weight is where a tensor of the file goes.
type weight struct {
	name       string // empty: no segment here uses it
	typ        quant.Type
	rows, cols int
	rowBytes   int // in the file
	packBytes  int // as kernels pack it

	matrix *Matrix // in tiles: its rows from first on; nil for vectors
	first  int
	up     bool   // of a pair the second
	each   int    // rows of each expert's matrix; 0: it is one
	joined bool   // of each expert, first the rows of one of a pair, then those of the other
	apart  uint64 // bytes from one to the next

	// Where it moves: the first of its groups, with rows of each, which of their matrices it is in, and which of their
	// tiles of rows its own begin with.
	moves      bool
	group      int
	span       int
	part, tile int
	pieces     []*Matrix  // its groups', of one that moves in pieces
	away       bool       // it has no slot: its rows are looked up in table
	table      *vk.Buffer // all of it, in the host's memory

	vector *vk.Buffer // float32, from value at on
	at     int
	factor float32   // that the vector is kept times
	host   []float32 // a copy for the host, which makes angles
}

// stage is memory that one piece of weights travels through: the host writes, unless the piece lies in slabs that the
// device reads, a copy brings it to the device, a kernel packs it.
type stage struct {
	host, local *vk.Buffer
}

// stageBytes is the size of pieces, unless one tile of rows takes more.
const stageBytes = 2 << 20

// fit makes room for n bytes, with written in memory that the host writes, too.
func (s *stage) fit(d *vk.Device, n uint64, written bool) error {
	for _, b := range []struct {
		at     **vk.Buffer
		place  vk.Place
		wanted bool
	}{{&s.local, vk.Local, true}, {&s.host, vk.Staging, written}} {
		if !b.wanted || *b.at != nil && (*b.at).Size >= n {
			continue
		}
		d.Free(*b.at)
		var err error
		if *b.at, err = allocate(d, b.place, n, "what weights travel through"); err != nil {
			*b.at = nil
			return err
		}
	}
	return nil
}

func (s *stage) free(d *vk.Device) {
	d.Free(s.host, s.local)
	s.host, s.local = nil, nil
}

// RowGrain is the height of a tile.
func (*model) RowGrain() int { return tileRows }

// Upload copies rows, and waits until they are packed: several callers keep the device busy.
func (m *model) Upload(r ir.Ref, row int, data []byte) error {
	if r < 0 || int(r) >= len(m.weights) {
		return fmt.Errorf("weight %d of %d", r, len(m.weights))
	}
	w := &m.weights[r]
	if w.name == "" {
		return fmt.Errorf("weight %d is of no segment that is computed here", r)
	}
	n := len(data) / w.rowBytes
	if len(data)%w.rowBytes != 0 || row < 0 || row > w.rows-n {
		return fmt.Errorf("%s: %d bytes for row %d, want whole rows of %d bytes, %d in all", w.name, len(data), row,
			w.rowBytes, w.rows)
	}
	if err := m.upload(w, row, n, data); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	return nil
}

func (m *model) upload(w *weight, row, n int, data []byte) error {
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

// pack brings rows of a file to a matrix, from one of its rows on.
func (m *model) pack(w *weight, x *Matrix, first, n int, data []byte) error {
	return m.packFor(w, &destination{x: *x, first: first, up: w.up}, n, data)
}

// packFor is pack of what may belong to a group, behind what is copied to its place.
func (m *model) packFor(w *weight, to *destination, n int, data []byte) error {
	s := <-m.device.stages
	defer func() { m.device.stages <- s }()
	most := max(stageBytes/w.packBytes/tileRows, 1) * tileRows
	there := formats[w.typ].split == 0 && m.slabs.holds(data) // as kernels pack it, where the device reads
	if err := s.fit(m.device.d, uint64(max(most*w.packBytes, stageBytes)), !there); err != nil {
		return err
	}
	for from, rows := 0, 0; from < n; from += rows {
		rows = min(most, n-from)
		file := data[from*w.rowBytes:][:rows*w.rowBytes]
		source, at := s.host, uint64(0)
		if there {
			source, at = m.slabs.buffer, m.slabs.at(file)
		} else if err := Recode(w.typ, w.cols, s.host.Bytes, file); err != nil {
			return err
		}
		value, err := m.device.queue.after(to.of.behind(), func(r *vk.Recording) error {
			r.Copy(s.local, 0, source, at, uint64(rows*w.packBytes))
			r.BarrierAll()
			err := m.device.kernels.Pack(r, &to.x, s.local.Address, to.first+from, rows, to.up)
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

// destination is where rows of a weight are packed: from which row of a matrix on, or of the second one of a pair, and
// how many fit there.
type destination struct {
	x     Matrix
	first int
	up    bool
	most  int
	of    *group // that they belong to, if it is kept account of
}

// destination is that of rows from one on.
func (m *model) destination(w *weight, row int) (to destination, err error) {
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

// within is the number of the matrix, or pair, of several that follow each other, that the rows are of.
func (to *destination) within(w *weight) (n int) {
	n, to.first = to.first/w.each, to.first%w.each
	to.most = min(to.most, w.each-to.first)
	if w.joined {
		to.up = n%2 == 1
		n /= 2
	}
	return n
}

// uploadVector decodes values, and keeps a copy where the host needs one.
func (m *model) uploadVector(w *weight, row, n int, data []byte) error {
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
	s := <-m.device.stages
	defer func() { m.device.stages <- s }()
	size := uint64(4 * len(values))
	if err := s.fit(m.device.d, max(size, stageBytes), true); err != nil {
		return err
	}
	copy(unsafe.Slice((*float32)(unsafe.Pointer(&s.host.Bytes[0])), len(values)), values)
	return m.device.queue.once(func(r *vk.Recording) error {
		r.BarrierAll()
		r.Copy(w.vector, uint64(4*(w.at+row*w.cols)), s.host, 0, size)
		r.BarrierAll()
		return nil
	})
}

// layWeights reports all that cannot be used, or takes memory for the weights.
func (m *model) layWeights(p *ir.Bound, f *fusion) error {
	m.weights = make([]weight, len(p.Weights))
	used, _, _ := p.Used()
	var faults []error
	for r := range p.Weights {
		if !used[r] {
			continue
		}
		if err := m.weights[r].measure(&p.Weights[r], p.Types[r]); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", p.Weights[r].Name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if err := m.layGroups(p); err != nil {
		return err
	}
	for _, list := range f.stacks {
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
		w := &m.weights[r]
		if w.name == "" || w.matrix != nil || w.vector != nil {
			continue
		}
		if p.Weights[r].Use&ir.Vector != 0 {
			if err := m.layVector(p, f, ir.Ref(r)); err != nil {
				return err
			}
		} else if err := m.layMatrix(p, &stack{refs: []ir.Ref{ir.Ref(r)}}); err != nil {
			return err
		}
	}
	return m.layRooms()
}

func (w *weight) measure(want *ir.Weight, t quant.Type) (err error) {
	w.name, w.typ, w.rows, w.cols, w.factor = want.Name, t, want.Rows, want.Cols, 1
	if w.rowBytes, err = t.RowBytes(want.Cols); err != nil {
		return err
	}
	if w.packBytes, err = UploadBytes(t, want.Cols); err != nil {
		return err
	}
	switch {
	case want.Use&ir.Vector != 0 && !quant.HasCodec(t):
		return fmt.Errorf("%s cannot be decoded", t)
	case want.Use&ir.Vector == 0 && !Supported(t):
		return fmt.Errorf("%s has no kernels on Vulkan: convert the model to a type that has, such as Q8_0, or use "+
			"--device cpu", t)
	case want.Experts > 0 && want.Rows/want.Experts%tileRows != 0:
		return fmt.Errorf("matrices of %d rows for each expert: %w on Vulkan, want a multiple of %d: use --device cpu",
			want.Rows/want.Experts, errNoKernel, tileRows)
	}
	return nil
}

// layMatrix takes memory for weights that are one matrix: rows one after the other, or two in turn.
func (m *model) layMatrix(p *ir.Bound, s *stack) error {
	rows := 0
	for _, r := range s.refs {
		rows += p.Weights[r].Rows
	}
	if s.pair {
		rows /= 2
	}
	first := &m.weights[s.refs[0]]
	x, err := NewMatrix(p.Types[s.refs[0]], rows, p.Weights[s.refs[0]].Cols, s.pair)
	switch {
	case err != nil:
		return err
	case first.moves && first.span < first.rows:
		return m.layPieces(p, s.refs[0])
	case first.moves:
		m.join(first.group, &x, s.refs...)
	case first.away:
		first.matrix = &x
		return m.layTable(first)
	default:
		memory, err := m.memory.take(vk.Local, x.Bytes(), first.name)
		if err != nil {
			return err
		}
		x.Address = memory.Address
		m.account.Weights += int64(x.Bytes())
	}
	at := 0
	for i, r := range s.refs {
		w := &m.weights[r]
		w.matrix, w.first, w.up = &x, at, s.pair && i == 1
		if !s.pair {
			at += w.rows
		}
	}
	if first.moves && looked(p, s.refs[0]) {
		if err := m.layTable(first); err != nil {
			return err
		}
	}
	return m.layBias(p, s)
}

// layBias takes memory for the biases of a stack, one after the other.
func (m *model) layBias(p *ir.Bound, s *stack) error {
	if len(s.biases) == 0 {
		return nil
	}
	n := 0
	for _, r := range s.biases {
		n += p.Weights[r].Cols
	}
	memory, err := m.memory.take(vk.Local, uint64(4*n), p.Weights[s.biases[0]].Name)
	if err != nil {
		return err
	}
	m.account.Weights += int64(memory.Size)
	at := 0
	for _, r := range s.biases {
		m.weights[r].vector, m.weights[r].at = memory, at
		at += p.Weights[r].Cols
	}
	return nil
}

func (m *model) layVector(p *ir.Bound, f *fusion, r ir.Ref) error {
	w := &m.weights[r]
	memory, err := m.memory.take(vk.Local, uint64(4*PaddedWidth(w.rows*w.cols)), w.name)
	if err != nil {
		return err
	}
	w.vector = memory
	m.account.Weights += int64(memory.Size)
	if f.sinks[r] {
		w.factor = math.Log2E
	}
	if f.divisors[r] {
		w.host = make([]float32, w.cols)
	}
	return nil
}

// vector is the address of a weight's values, or 0.
func (m *model) vector(r ir.Ref) uint64 {
	if r == ir.NoRef {
		return 0
	}
	w := &m.weights[r]
	return w.vector.Address + uint64(4*w.at)
}
