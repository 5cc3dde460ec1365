//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// group is matrices that move together, each laid as kernels read it, one behind the other. A group with a slot of its
// own is one only where others of its layer or matrix move: any other lies where the model's weights do.
type group struct {
	moves    bool
	matrices []laid
	bytes    uint64
	home     *vk.Buffer // of one that does not move
	kept     *vk.Buffer // in the host's memory, what is copied to a room, from an offset on; nil: it is uploaded there
	from     uint64
	room     int    // absent: none
	copied   uint64 // it is there when copies have come to this value

	landed atomic.Int64 // when its copy was seen to have ended, in nanoseconds since 1970

	rows    int           // tiles of rows, of all matrices
	filled  []atomic.Bool // by tile of rows: it was uploaded
	missing atomic.Int64  // tiles that were not
	written atomic.Uint64 // value of the queue's timeline at the last of them
}

// laid is a matrix and where it begins in its group's memory.
type laid struct {
	w  *Matrix
	at uint64
}

// room is a slot that groups share.
type room struct {
	memory *vk.Buffer // nil: the slot is one group's own
	group  int        // absent: none
	used   uint64     // value of the queue's timeline when nothing reads it any more
	copied uint64     // value of the copies' when nothing is copied to it any more
}

// absent stands for no group, and for no room.
const absent = -1

// groupBytes is what a group takes of a device's memory, at most.
func groupBytes(p *ir.Bound, g *ir.Group) (total int64) {
	for _, r := range g.Weights {
		w := &p.Weights[r]
		from, to := g.Rows(w)
		if g.Use == ir.Vector {
			total += int64(aligned(uint64(4 * PaddedWidth(w.Rows*w.Cols))))
			continue
		}
		x := Matrix{Type: p.Types[r], Rows: to - from, Cols: w.Cols}
		total += int64(aligned(x.Bytes()))
	}
	return total
}

// aligned is where the next thing can begin.
func aligned(n uint64) uint64 { return (n + 255) &^ 255 }

// layGroups finds out which groups move, and where each weight has its group.
func (m *model) layGroups(p *ir.Bound) error {
	m.parts = backend.NewParts(p, m.config.Segments)
	m.routes, m.routeOf = make([]*chosen, len(p.Segments)), slices.Repeat([]int{absent}, len(p.Segments))
	own := m.config.Own(len(m.parts.Groups))
	m.groups = make([]group, len(own))
	for g := range m.groups {
		x, of := &m.groups[g], &m.parts.Groups[g]
		x.moves, x.room = of.Use == ir.Matrix && !own[g], absent
		for _, r := range of.Weights {
			w := &m.weights[r]
			if from, to := of.Rows(&p.Weights[r]); w.span == 0 {
				w.group, w.span = g, to-from
			}
			w.moves = w.moves || x.moves
			w.away = w.away || of.Use == ir.Table && !own[g]
		}
	}
	return m.checkGroups(p)
}

// checkGroups is an error for what cannot be computed with groups that move.
func (m *model) checkGroups(p *ir.Bound) error {
	routed := map[ir.Value]bool{}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			routed[n.Out] = n.Op == ir.Route
			for _, r := range n.Weights() {
				if w := &m.weights[r]; w.moves && n.Op != ir.Embed && m.parts.Groups[w.group].Segment != s {
					return fmt.Errorf("%s is multiplied by several segments: its group cannot share a slot: %w",
						p.Weights[r].Name, errors.ErrUnsupported)
				}
			}
			if n.Op == ir.Experts && m.weights[n.Experts.Gate].moves && !routed[n.In[1]] {
				return fmt.Errorf("%s: experts cannot share slots where their route is computed elsewhere: %w",
					&p.Segments[s], errors.ErrUnsupported)
			}
		}
	}
	return nil
}

// join adds a matrix to a group that moves, or that has its place beside such ones.
func (m *model) join(g int, x *Matrix, refs ...ir.Ref) {
	to := &m.groups[g]
	for _, r := range refs {
		w := &m.weights[r]
		w.part, w.tile = len(to.matrices), to.rows
		to.rows += (w.span + tileRows - 1) / tileRows
	}
	to.matrices = append(to.matrices, laid{x, to.bytes})
	m.spots[x] = spot{g, to.bytes}
	to.bytes += aligned(x.Bytes())
}

// layPieces divides a matrix whose pieces move. What is looked up in it, too, stays in the host's memory whole, and
// pieces that are kept are parts of that.
func (m *model) layPieces(p *ir.Bound, r ir.Ref) error {
	w := &m.weights[r]
	whole, err := NewMatrix(w.typ, w.rows, w.cols, false)
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
		m.groups[g].rows = (x.Rows + tileRows - 1) / tileRows
		w.pieces = append(w.pieces, &x)
		if w.table != nil && slices.Contains(m.config.Kept, g) {
			x := &m.groups[g]
			x.kept = w.table
			x.from = uint64(from/tileRows) * uint64(whole.kTiles()) * uint64(formats[w.typ].bytes)
		}
	}
	return nil
}

// layTable takes memory of the host for a weight whose rows kernels look up there.
func (m *model) layTable(w *weight) (err error) {
	if w.table, err = m.memory.raw(vk.Staging, w.matrix.Bytes(), w.name); err != nil {
		return err
	}
	m.account.Host += int64(w.table.Size)
	return nil
}

// looked says whether rows of a weight are looked up.
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

// lookup is the matrix that rows are looked up in.
func (w *weight) lookup() *Matrix {
	if w.table == nil {
		return w.matrix
	}
	x := *w.matrix
	x.Address = w.table.Address
	return &x
}

// fillTables brings what is looked up in the host's memory. It may be the mapping of a file that was cut.
func (m *model) fillTables() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", backend.ErrWeights, reason)
		}
	}()
	for r := range m.weights {
		w := &m.weights[r]
		if w.table == nil {
			continue
		}
		x, most := w.lookup(), max(stageBytes/w.rowBytes/tileRows, 1)*tileRows
		for row := 0; row < w.rows; row += most {
			n := min(most, w.rows-row)
			data := slices.Clone(m.config.Tables[r][row*w.rowBytes:][:n*w.rowBytes]) // a fault is here, and nowhere else
			if err := m.pack(w, x, row, n, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// layRooms takes memory for groups that move, and slots for them.
func (m *model) layRooms() (err error) {
	for g := range m.groups {
		x := &m.groups[g]
		switch {
		case len(x.matrices) == 0:
			continue
		case !x.moves:
			if x.home, err = m.memory.take(vk.Local, x.bytes, m.nameOf(g)); err != nil {
				return err
			}
			m.account.Weights += int64(x.home.Size)
		}
		x.filled = make([]atomic.Bool, x.rows)
		x.missing.Store(int64(x.rows))
	}
	if err := m.layKept(); err != nil {
		return err
	}
	m.rooms = make([]room, len(m.config.Slots))
	for s, fit := range m.config.Slots {
		m.rooms[s].group = absent
		if len(fit) < 2 && !m.groups[fit[0]].moves {
			continue
		}
		size := uint64(0)
		for _, g := range fit {
			size = max(size, m.groups[g].bytes)
		}
		if m.rooms[s].memory, err = m.memory.take(vk.Local, size, "slots of weights"); err != nil {
			return err
		}
		m.account.Weights += int64(size)
	}
	return nil
}

// keptAtOnce is how much of the host's memory is taken at once: drivers allow few allocations.
const keptAtOnce = 1 << 30

// layKept takes memory of the host for the groups that are kept, unless their weight is there to be looked up.
func (m *model) layKept() (err error) {
	for all := m.config.Kept; len(all) > 0; {
		n, bytes := 0, uint64(0)
		for ; n < len(all) && (n == 0 || bytes+m.groups[all[n]].bytes <= keptAtOnce); n++ {
			if x := &m.groups[all[n]]; x.kept == nil {
				x.from, bytes = bytes, bytes+x.bytes
			}
		}
		if bytes > 0 {
			b, err := m.memory.raw(vk.Staging, bytes, "weights that wait in memory")
			if err != nil {
				return err
			}
			m.account.Host += int64(bytes)
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

// nameOf is a group's, by its first weight.
func (m *model) nameOf(g int) string {
	of := &m.parts.Groups[g]
	name := m.weights[of.Weights[0]].name
	switch {
	case of.Expert != ir.Dense:
		return fmt.Sprintf("expert %d of %s", of.Expert, name)
	case of.Each > 0:
		return fmt.Sprintf("piece %d of %s", of.Piece, name)
	}
	return name
}

// address is where a group's memory begins to which it is uploaded; 0: it has none now.
func (m *model) address(x *group) uint64 {
	switch {
	case x.home != nil:
		return x.home.Address
	case x.kept != nil:
		return x.kept.Address + x.from
	case x.room != absent:
		return m.rooms[x.room].memory.Address
	}
	return 0
}

// there is an error if kernels cannot read a group.
func (m *model) there(g int) error {
	x := &m.groups[g]
	switch {
	case len(x.matrices) == 0:
		return nil // where it always is
	case x.moves && x.room == absent:
		return fmt.Errorf("group %d (%s) is in no slot", g, m.nameOf(g))
	case x.missing.Load() > 0:
		return fmt.Errorf("group %d (%s) was not uploaded whole", g, m.nameOf(g))
	}
	return nil
}

// base is where kernels read a group that is there.
func (m *model) base(x *group) uint64 {
	if x.moves {
		return m.rooms[x.room].memory.Address
	}
	return x.home.Address
}

// streams says whether a segment reads groups that move.
func (m *model) streams(segment int) bool {
	return slices.ContainsFunc(m.parts.Matrices[segment], func(g int) bool { return m.groups[g].moves })
}

// present lists the groups of a segment that are there.
func (m *model) present(segment int) (all []int) {
	for _, g := range m.parts.Matrices[segment] {
		if m.there(g) == nil {
			all = append(all, g)
		}
	}
	return all
}

// Slot is nil: nothing is computed from the file's layout here.
func (m *model) Slot(int) []byte { return nil }

// Place makes a room a group's. A copy of one that is kept begins when nothing reads the room any more.
func (m *model) Place(g, slot int, data [][]byte) error {
	if slot < 0 || slot >= len(m.rooms) || m.rooms[slot].memory == nil {
		return fmt.Errorf("group %d: slot %d of %d is none that groups share", g, slot, len(m.rooms))
	}
	if !slices.Contains(m.config.Slots[slot], g) {
		return fmt.Errorf("group %d: slot %d is for groups %v", g, slot, m.config.Slots[slot])
	}
	if data != nil {
		return fmt.Errorf("group %d: slots of this device have no memory to place it from", g)
	}
	x, r := &m.groups[g], &m.rooms[slot]
	if x.kept != nil && x.missing.Load() > 0 {
		return fmt.Errorf("group %d (%s) was not uploaded whole", g, m.nameOf(g))
	}
	if r.group != absent {
		m.groups[r.group].room = absent
	}
	if x.room != absent {
		m.rooms[x.room].group = absent
	}
	r.group, x.room = g, slot
	if x.kept != nil {
		return m.fetch(g, slot)
	}
	x.copied = r.copied // what was on its way there comes first
	for i := range x.filled {
		x.filled[i].Store(false)
	}
	x.missing.Store(int64(x.rows))
	return nil
}

// copyOf is a group that is copied to a room, with timestamps or without.
type copyOf struct {
	group, room int
	timed       bool
}

// copying is a recording of such a copy.
type copying struct {
	r    *vk.Recording
	busy atomic.Bool // its timestamps have yet to be read
}

// copier is the recording of a group's copy to a room. One with timestamps can be submitted again when they were read:
// until then there is another one.
func (m *model) copier(of copyOf) (*copying, error) {
	c := m.copies[of]
	if c != nil && of.timed && !c.busy.CompareAndSwap(false, true) {
		of.timed = false
		c = m.copies[of]
	}
	if c != nil {
		return c, nil
	}
	x, r, q := &m.groups[of.group], &m.rooms[of.room], m.device.queue
	c = &copying{}
	c.busy.Store(of.timed)
	stamps := 0
	if of.timed {
		stamps = 2
	}
	var err error
	c.r, err = q.fill(m.device.d.RecordCopies, stamps, func(rec *vk.Recording) error {
		if of.timed {
			rec.Stamp()
			defer rec.Stamp()
		}
		rec.Copy(r.memory, 0, x.kept, x.from, x.bytes)
		return nil
	})
	if err == nil {
		m.copies[of] = c
	}
	return c, err
}

// fetch submits the copy of a group that is kept.
func (m *model) fetch(g, slot int) error {
	x, r, q := &m.groups[g], &m.rooms[slot], m.device.queue
	c, err := m.copier(copyOf{g, slot, m.moves != nil && m.device.copying.bits > 0})
	if err != nil {
		return err
	}
	x.landed.Store(0)
	asked := time.Now()
	x.copied, err = q.copy(c.r, max(r.used, x.written.Load()), r.copied)
	r.copied = x.copied
	if err == nil && m.moves != nil {
		select {
		case m.moves <- move{g, x.copied, asked, c}:
		default: // it only keeps account
		}
	}
	return err
}

// move is a copy whose end is waited for by nobody but who keeps account.
type move struct {
	group int
	value uint64
	asked time.Time
	by    *copying
}

// follow tells of copies as they end.
func (m *model) follow() {
	var last time.Time
	for c := range m.moves {
		if m.device.queue.reach(m.device.queue.copies, c.value, 0) != nil {
			continue
		}
		began, ended := m.copied(&c, time.Now())
		began = later(later(c.asked, last), began)
		ended = later(ended, began)
		m.groups[c.group].landed.Store(ended.UnixNano())
		m.config.Ran(backend.Ran{Group: c.group, Copied: true, Asked: c.asked, Began: began, Ended: ended})
		last = ended
	}
}

// copied is from when to when a copy ran that the host sees to have ended now.
func (m *model) copied(c *move, seen time.Time) (began, ended time.Time) {
	if c.by.r.Marks() == 0 {
		return began, seen
	}
	ticks, err := c.by.r.Ticks(make([]uint64, 0, 2))
	if err != nil {
		return began, seen
	}
	c.by.r.ResetStamps()
	c.by.busy.Store(false)
	k := m.device.copying
	m.device.see(k, ticks[0], ticks[1], c.asked, seen)
	return k.time(ticks[0]), earlier(k.time(ticks[1]), seen)
}

// behind is the value of copies that the group's place is free at, to be uploaded to. Of no group it is at once.
func (x *group) behind() uint64 {
	if x == nil || x.kept != nil {
		return 0
	}
	return x.copied
}

// wrote notes the value of the queue's timeline at which some of the group had been uploaded.
func (x *group) wrote(value uint64) {
	if x == nil {
		return
	}
	for before := x.written.Load(); before < value && !x.written.CompareAndSwap(before, value); {
		before = x.written.Load()
	}
}

// note keeps account of rows that were uploaded.
func (x *group) note(w *weight, row, rows int) {
	tile := w.tile + row%w.span/tileRows
	for i := range (rows + tileRows - 1) / tileRows {
		if x.filled[tile+i].CompareAndSwap(false, true) {
			x.missing.Add(-1)
		}
	}
}
