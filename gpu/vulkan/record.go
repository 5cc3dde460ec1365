//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// shape is what a recording depends on. Everything else of a step is in memory.
type shape struct {
	from, to     int  // segments, from the first to the last
	rows, wanted int  // as rowClass rounds them; 0 wanted: none
	spans        int  // likewise, where the program keeps states; else 0
	prompt       bool // rows are of prompts, which the model computes apart
	alone        bool
	deep         bool // a row's position is beyond deepest
	logits       bool // the host wants to see them
	draws        bool // tokens are drawn here
	samples      bool // not only the likeliest
	detail       bool // the time is noted between its segments, too

	// Of a segment whose groups move.
	portion     portion
	group, room int  // whose matrices it reads, where
	part        int  // of experts
	tells       bool // it copies the choice of a route, and does nothing else
}

// deepest is the last position with the fewest splits of attention (shaders/lib/step.glsl).
const deepest = 2046

func (s *shape) depth() int {
	if s.deep {
		return 1 << 30
	}
	return deepest
}

// rowClass is how many rows are recorded for so many: powers of two, then multiples of 64, as rows that are not there
// cost as much as the others.
func rowClass(n int) int {
	const tile = 64
	if n > 2*tile {
		return (n + tile - 1) / tile * tile
	}
	c := 1
	for c < n {
		c *= 2
	}
	return c
}

// recorder records launches for one shape of a slot's steps.
type recorder struct {
	r     *vk.Recording
	k     *Kernels
	m     *model
	s     *slot
	shape *shape
	n     int // rows of the launch
	// region is what a part of experts reads; dry says that nothing is recorded, only compiled.
	region *region
	dry    bool
	timed  bool // it notes the time at its begin and its end, and between segments if the shape says so

	launched func(segment int) // for measurements: called after each launch; nil: by nobody

	wanted           bool
	written, touched []use // since the last barrier
}

// use is what a launch reads or writes of the scratch memory.
type use struct {
	buffer  *live.Buffer
	bytes   span
	columns span // of the buffer's rows, in float32; none: all
}

type span struct{ from, to int }

func (a span) meets(b span) bool { return a.from < b.to && b.from < a.to }

func (a use) meets(b use) bool {
	beside := a.buffer == b.buffer && a.columns != span{} && b.columns != span{} && !a.columns.meets(b.columns)
	return a.bytes.meets(b.bytes) && !beside
}

// at is the address of a place in the first row.
func (x *recorder) at(p place) uint64 { return x.row(p.b, 0) + uint64(4*p.from) }

// row is the address of a buffer's row.
func (x *recorder) row(b *live.Buffer, r int) uint64 {
	at := x.m.scratch.Address + uint64(b.Offset)
	if b.Form == asBlob {
		return at
	}
	return at + uint64(bytesOf(b, r))
}

// count is the address of how many rows there are from row r on, a multiple of MaxColumns.
func (x *recorder) count(r int) uint64 {
	i := 0
	if x.wanted {
		i = 1
	}
	return x.s.at(&x.s.left[i]) + uint64(4*(r/MaxColumns))
}

// recording is that of a shape, which is made when it is needed first.
func (m *model) recording(s *slot, sh shape) (*vk.Recording, error) {
	if r := s.recordings[sh]; r != nil {
		return r, nil
	}
	return m.newRecording(s, sh)
}

// newRecording records a shape.
func (m *model) newRecording(s *slot, sh shape) (*vk.Recording, error) {
	x := &recorder{k: m.device.kernels, m: m, s: s, shape: &sh}
	if sh.portion == among && m.mixes(sh.from) {
		x.region = s.regions[sh.from][sh.part]
	}
	stamps := m.stamps(&sh)
	x.timed = stamps > 0
	r, err := m.device.queue.record(stamps, func(r *vk.Recording) error {
		x.r = r
		if sh.tells {
			s.choices[sh.from].record(x)
			return nil
		}
		return m.record(x)
	})
	if err == nil {
		s.recordings[sh] = r
	}
	return r, err
}

func (m *model) record(x *recorder) error {
	x.r.Barrier() // of what was submitted before
	x.stamp()
	segment := x.shape.from
	for i := range m.launches {
		l := &m.launches[i]
		if !m.takes(x.shape, i) {
			continue
		}
		for ; segment < l.segment; segment++ {
			x.border()
		}
		x.wanted, x.n = l.wanted, x.shape.rows
		if l.wanted {
			x.n = x.shape.wanted
		}
		if x.n == 0 || l.idle != nil && l.idle(x) {
			continue
		}
		x.order(l)
		if err := l.record(x); err != nil {
			return err
		}
		if x.launched != nil {
			x.launched(l.segment)
		}
	}
	for ; segment < x.shape.to; segment++ {
		x.border()
	}
	if x.shape.portion == before || x.shape.portion == among {
		x.stamp()
		return nil
	}
	if err := m.recordEnd(x); err != nil {
		return err
	}
	x.stamp() // what becomes of the output is the last segment's
	x.r.BarrierToHost()
	return nil
}

// order puts a barrier before a launch that needs what came before it, or writes where that still reads or writes.
func (x *recorder) order(l *launch) {
	uses := func(all []*live.Buffer) (u []use) {
		for _, b := range all {
			u = append(u, use{buffer: b, bytes: span{b.Offset, b.Offset + bytesOf(b, x.m.capacity(b.Wanted))}})
		}
		return u
	}
	reads, writes := uses(l.reads), uses(l.writes)
	if len(writes) > 0 {
		writes[0].columns = l.columns
	}
	if meet(reads, x.written) || meet(writes, x.written) || meet(writes, x.touched) {
		x.r.Barrier()
		x.written, x.touched = nil, nil
	}
	x.written, x.touched = append(x.written, writes...), append(x.touched, reads...)
}

func meet(a, b []use) bool {
	for _, u := range a {
		for _, v := range b {
			if u.meets(v) {
				return true
			}
		}
	}
	return false
}

// recordEnd records what becomes of the output, or looks at what is handed on.
func (m *model) recordEnd(x *recorder) error {
	width := m.program.OutputWidth()
	if x.shape.to != len(m.program.Segments)-1 {
		if m.config.Computes(x.shape.to + 1) {
			return nil // it will be seen there
		}
		for _, v := range m.program.Handed(x.shape.to) {
			p := m.place(v)
			if p.b == nil {
				continue // it is part of the kernels that read it
			}
			x.r.Barrier()
			x.n, x.wanted = x.shape.rows, false
			err := x.k.Finite(x.r, x.at(p), x.s.status(), x.count(0), m.program.Widths[v], stride(p.b), x.n)
			if err != nil {
				return err
			}
		}
		return nil
	}
	if x.n, x.wanted = x.shape.wanted, true; x.n == 0 {
		return nil
	}
	out := m.place(m.program.Output)
	x.r.Barrier()
	if err := x.k.Finite(x.r, x.at(out), x.s.status(), x.count(0), width, stride(out.b), x.n); err != nil {
		return err
	}
	if x.shape.logits {
		err := x.k.Each(x.r, &Each{Formula: Copy, A: x.at(out), AStride: stride(out.b), Y: x.s.logits(m), YStride: width,
			Width: width, Rows: x.n, Count: x.count(0)})
		if err != nil {
			return err
		}
	}
	if !x.shape.draws {
		return nil
	}
	err := x.k.ArgMax(x.r, x.at(out), m.drawn.Address, x.s.drawn(), m.best.Address, width, stride(out.b), x.n)
	if err != nil || !x.shape.samples {
		return err
	}
	for from := 0; from < x.n; from += sampledRows {
		x.r.Barrier()
		err := x.k.Sample(x.r, &Sample{Logits: x.row(out.b, from) + uint64(4*out.from),
			Draws: x.s.at(&x.s.draws) + uint64(DrawBytes*from), IDs: m.drawn.Address + uint64(4*from),
			Second: x.s.drawn() + uint64(4*from), Scratch: m.best.Address, Width: width, Stride: stride(out.b),
			Rows: min(sampledRows, x.n-from)})
		if err != nil {
			return err
		}
	}
	return nil
}

// sampledRows is how many rows are sampled at once: each takes half a MiB meanwhile.
const sampledRows = 16
