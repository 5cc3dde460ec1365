//go:build cgo && linux

package vulkan

import (
	"time"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// slot is a step of the ring with what the host tells the device of it, and what comes back.
type slot struct {
	step *backend.Step

	// block is what kernels read of the step, by offset in bytes; block tables are apart.
	block       *vk.Buffer
	left        [2]int // how many rows there are from each MaxColumns-th on: of all, of the wanted ones
	ids, wanted int
	draws       int   // of DrawBytes, by wanted row
	rows        []int // of Row, by cache class
	spans       []int // of Span, by cache class, of states
	angles      []int // by rotation
	tempers     []int // by temper: a factor for each row
	numbers     []int // by numbering: one for each row
	ends        []int // of Row, by cache class: of its text's last row, if rows see that
	tables      *vk.Buffer

	// result: status, then the drawn ids, then the logits.
	result *vk.Buffer

	// Of experts that move, by segment: choices of routes, and what the parts of a segment read.
	choices []*choice
	regions [][]*region
	part    int // number of the next one

	recordings map[shape]*vk.Recording
	begun      bool
	from, to   int // segments that are enqueued and not submitted; from < 0: none
	shape      shape
	timed      []timed // what of it was submitted, for the watcher
	moving     int     // group that moves and is computed with next; absent: none
	behind     int     // group whose copy that waits for, likewise
	value      uint64  // of the queue's timeline when all that was submitted is done; 0: nothing was

	// How long it should take, and what the watcher learns of it.
	begins   time.Time // when the first of it was submitted; zero: nothing was
	products float64   // that were submitted whole
	sees     float64   // positions, of all rows
	longest  time.Duration
}

// rotation is one way to rotate, whose angles the host makes for every row.
type rotation struct {
	args    *ir.RoPEArgs
	divisor ir.Ref
}

// anglesOf is the number of a rotation.
func (m *model) anglesOf(a *ir.RoPEArgs, divisor ir.Ref) int {
	for i, r := range m.rotations {
		if r.divisor == divisor && sameRotation(r.args, a) {
			return i
		}
	}
	m.rotations = append(m.rotations, rotation{a, divisor})
	return len(m.rotations) - 1
}

// laySlots makes the ring.
func (m *model) laySlots(p *ir.Bound) error {
	rows, wanted := m.capacity(false), m.capacity(true)
	for range m.config.Ring() {
		s := &slot{step: &backend.Step{}, recordings: map[shape]*vk.Recording{}, from: -1}
		m.slots, m.ring = append(m.slots, s), append(m.ring, s.step) // what it has is freed, however far this comes
		size := 0
		take := func(bytes int) (at int) {
			at = size
			size += (bytes + 15) &^ 15
			return at
		}
		s.left[0], s.left[1] = take(4*(rows/MaxColumns+1)), take(4*(wanted/MaxColumns+1))
		s.ids, s.wanted, s.draws = take(4*rows), take(4*wanted), take(DrawBytes*wanted)
		for _, c := range p.Classes {
			ofRows, ofEnds, ofSpans := 8*rows, 0, 0
			if c.State {
				ofRows, ofSpans = 0, 16*rows
			}
			if m.looksAhead {
				ofEnds = ofRows
			}
			s.rows, s.ends = append(s.rows, take(ofRows)), append(s.ends, take(ofEnds))
			s.spans = append(s.spans, take(ofSpans))
		}
		for _, r := range m.rotations {
			s.angles = append(s.angles, take(4*rows*r.args.Dims))
		}
		for range m.tempers {
			s.tempers = append(s.tempers, take(4*rows))
		}
		for range m.numbers {
			s.numbers = append(s.numbers, take(4*rows))
		}
		var err error
		if s.block, err = m.memory.take(vk.Stepwise, uint64(size), "step"); err != nil {
			return err
		}
		if err := m.layTables(s); err != nil {
			return err
		}
		logits := 16 + 4*wanted
		bytes := logits + 4*m.config.MaxWanted*m.program.OutputWidth()
		if s.result, err = m.memory.take(vk.Staging, uint64(bytes), "logits"); err != nil {
			return err
		}
		s.step.Logits = words[float32](s.result, logits, m.config.MaxWanted*m.program.OutputWidth())
		m.account.Scratch += int64(size + bytes)
		if err := m.layChoices(s, p); err != nil {
			return err
		}
	}
	return nil
}

// words is mapped memory as other numbers.
func words[T any](b *vk.Buffer, at, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b.Bytes[at])), n)
}

func (s *slot) at(offset *int) uint64 { return s.block.Address + uint64(*offset) }

func (s *slot) status() uint64 { return s.result.Address }
func (s *slot) drawn() uint64  { return s.result.Address + 16 }

func (s *slot) logits(m *model) uint64 {
	return s.result.Address + uint64(16+4*m.capacity(true))
}

// layTables makes room for the block tables of any step: recordings know where they are, so they stay there.
func (m *model) layTables(s *slot) (err error) {
	n := 0
	for _, blocks := range m.config.Blocks {
		n += blocks * m.config.Spans()
	}
	s.tables, err = m.memory.take(vk.Stepwise, uint64(4*max(1, n)), "block tables")
	if err == nil {
		m.account.Scratch += int64(s.tables.Size)
	}
	return err
}

// fill tells the device of the step. Rows that are not there, up to the shape's, are computed or not, and leave
// nothing: kernels know how many there are.
func (m *model) fill(s *slot) {
	step := s.step
	s.shape = shape{rows: rowClass(len(step.Tokens)), prompt: m.apart && step.Prompt, alone: true}
	if len(m.program.States) > 0 {
		s.shape.spans = rowClass(len(step.Spans))
	}
	if n := len(step.Wanted); n > 0 {
		s.shape.wanted = rowClass(n)
	}
	rows, wanted := s.shape.rows, s.shape.wanted
	copy(words[int32](s.block, s.ids, rows), step.Tokens)
	clear(words[int32](s.block, s.ids, rows)[len(step.Tokens):])
	if wanted > 0 {
		copy(words[int32](s.block, s.wanted, wanted), step.Wanted)
		clear(words[int32](s.block, s.wanted, wanted)[len(step.Wanted):])
	}
	for i, there := range []int{len(step.Tokens), len(step.Wanted)} {
		left := words[uint32](s.block, s.left[i], m.capacity(i == 1)/MaxColumns+1)
		for c := range left {
			left[c] = uint32(max(0, there-c*MaxColumns))
		}
	}
	m.fillRows(s)
	m.fillAngles(s)
	m.fillPositions(s)
	m.fillDraws(s)
	words[uint32](s.result, 0, 1)[0] = 0
}

// fillDraws says how tokens are drawn.
func (m *model) fillDraws(s *slot) {
	s.shape.logits = len(s.step.Draws) == 0
	all := words[byte](s.block, s.draws, DrawBytes*s.shape.wanted)
	for i := range s.shape.wanted {
		var d *backend.Draw
		if i < len(s.step.Draws) {
			d = &s.step.Draws[i]
			s.shape.logits = s.shape.logits || d.Host
			s.shape.draws = s.shape.draws || !d.Host
			if d.Host || d.Temp <= 0 {
				d = nil // or the likeliest token, which is found first
			} else {
				s.shape.samples = true
			}
		}
		PutDraw(all[DrawBytes*i:], d)
	}
}

// fillRows says of each row, or of each span where states are kept, where it stands and where its sequence's blocks are
// listed.
func (m *model) fillRows(s *slot) {
	tables, at := words[int32](s.tables, 0, int(s.tables.Size)/4), 0
	for c, class := range m.program.Classes {
		for i := range s.step.Spans {
			span := &s.step.Spans[i]
			t := &span.Tables[c]
			if table := uint32(at - t.First); class.State {
				words[Span](s.block, s.spans[c]+16*i, 1)[0] = Span{uint32(span.Row), uint32(span.Rows), uint32(span.Pos), table}
			} else {
				m.fillSpan(s, c, span, table)
			}
			at += copy(tables[at:], t.Blocks)
		}
		if class.State {
			clear(words[Span](s.block, s.spans[c], s.shape.spans)[len(s.step.Spans):])
		} else {
			clear(words[Row](s.block, s.rows[c], s.shape.rows)[len(s.step.Tokens):])
		}
	}
	for i := range s.step.Spans {
		span := &s.step.Spans[i]
		s.shape.alone = s.shape.alone && span.Rows == 1
		s.shape.deep = s.shape.deep || span.Pos+span.Rows > deepest
	}
}

// fillSpan is fillRows for the rows of a span, in one class.
func (m *model) fillSpan(s *slot, class int, span *backend.Span, table uint32) {
	rows := words[Row](s.block, s.rows[class]+8*span.Row, span.Rows)
	for j := range rows {
		rows[j] = Row{Position: uint32(span.Pos + j), Table: table}
	}
	if m.looksAhead {
		ends := words[Row](s.block, s.ends[class]+8*span.Row, span.Rows)
		for j := range ends {
			ends[j] = Row{Position: uint32(span.Pos + span.Rows - 1), Table: table}
		}
	}
}

// fillPositions says what kernels take by a row's position, but for angles.
func (m *model) fillPositions(s *slot) {
	for i := range s.step.Spans {
		span := &s.step.Spans[i]
		for t := range m.tempers {
			factors := words[float32](s.block, s.tempers[t]+4*span.Row, span.Rows)
			for j := range factors {
				factors[j] = m.tempers[t].of(span.Pos + j)
			}
		}
		for i := range m.numbers {
			m.numbers[i].fill(words[uint32](s.block, s.numbers[i]+4*span.Row, span.Rows), s.step.Tokens[span.Row:], span.Pos)
		}
	}
}

func (m *model) fillAngles(s *slot) {
	for i, r := range m.rotations {
		var divisors []float32
		if r.divisor != ir.NoRef {
			divisors = m.weights[r.divisor].host
		}
		all := words[float32](s.block, s.angles[i], s.shape.rows*r.args.Dims)
		for j := range s.step.Spans {
			span := &s.step.Spans[j]
			for k := range span.Rows {
				at := (span.Row + k) * r.args.Dims
				Angles(all[at:at:at+r.args.Dims], r.args, divisors, span.Pos+k)
			}
		}
	}
}
