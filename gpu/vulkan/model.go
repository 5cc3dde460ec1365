//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// model is compiled segments with their memory. One goroutine drives it; a watcher tells of steps that have ended.
type model struct {
	device  *Device
	program *ir.Program // all of it
	config  backend.Config
	memory  buffers
	slabs   slabs // that weights come in
	account backend.Memory
	apart   bool // prompts are multiplied in half precision

	weights      []weight
	caches       []cache
	states       []uint64 // by state: where its blocks begin
	rotations    []rotation
	tempers      []temper
	numbers      []numbering
	looksAhead   bool               // some rows see those after them: the host tells up to where
	experts      map[ir.Ref]*Matrix // by gate and by down: their address is that of a table
	launches     []launch
	works        []work // by segment
	cuts         []cut  // by segment
	borders      map[ir.Value]place
	crossings    map[crossing]*vk.Recording
	crossed      *vk.Buffer // rows of a value that crosses a border; nil: none has
	values       *live.Values
	scratchBytes int
	scratch      *vk.Buffer // values of the step that runs; steps run one after another
	drawn, best  *vk.Buffer // tokens drawn by the step before; for arg-max

	// What moves, where some groups share slots.
	parts   backend.Parts
	groups  []group
	rooms   []room // by slot
	copies  map[copyOf]*copying
	spots   map[*Matrix]spot
	routes  []*chosen // by segment: its choice, among experts that move
	routeOf []int     // by segment of experts that move
	parting *slot     // whose parts are given
	moves   chan move // copies that were submitted; nil: nobody keeps account

	stamped, moved *reader // of what computes, and of copies

	ticks, divided []uint64          // that the watcher reads, and that it makes of them
	told           time.Time         // up to when it has told what was computed
	shares         map[shape]*shares // of shapes of several segments, by what they are without detail

	batch  []*vk.Recording // that are submitted together
	slots  []*slot
	ring   []*backend.Step
	draws  int // of the step before
	ends   chan ended
	closed sync.WaitGroup

	ahead   sync.WaitGroup // kernels are being compiled until then
	closing atomic.Bool    // nothing more is compiled ahead
}

// compile plans the segments and takes all memory.
func compile(v *Device, p *ir.Bound, c backend.Config) (*model, error) {
	m := &model{device: v, program: p.Program, config: c, memory: buffers{d: v.d}, values: live.ValuesOf(p.Program),
		apart: v.kernels.apart(p), works: worksOf(p.Program), experts: map[ir.Ref]*Matrix{},
		copies: map[copyOf]*copying{}, crossings: map[crossing]*vk.Recording{}, spots: map[*Matrix]spot{},
		shares: map[shape]*shares{}}
	m.importSlabs()
	part := p.Only(c.Segments)
	f := fuse(part, c.Segments == nil, func(a *ir.AttendArgs) (Heads, bool) {
		h := m.heads(a)
		return h, v.kernels.Fused(&h)
	})
	if err := m.layWeights(part, f); err != nil {
		return m, err
	}
	if err := m.layCaches(part); err != nil {
		return m, err
	}
	if err := m.layStates(part); err != nil {
		return m, err
	}
	if err := plan(m, part, f); err != nil {
		return m, err
	}
	if err := m.layScratch(); err != nil {
		return m, err
	}
	if err := m.laySlots(part); err != nil {
		return m, err
	}
	if err := m.fillTables(); err != nil {
		return m, err
	}
	const ofSegment = 16 // parts and choices whose end nobody has seen: what is more waits to be submitted
	m.ends = make(chan ended, c.Ring()*(1+ofSegment*len(p.Segments)))
	m.stamped, m.moved = newReader(v.queue), newReader(v.queue)
	m.closed.Go(m.watch)
	if c.Ran != nil && len(c.Kept) > 0 {
		m.moves = make(chan move, len(m.rooms)*4)
		m.closed.Go(m.follow)
	}
	if v.ahead {
		m.chooseAttention(part)
		m.ahead.Go(func() { m.warm(m.usual()) })
	}
	return m, nil
}

func (m *model) layScratch() (err error) {
	wanted := m.capacity(true)
	best := max(ArgMaxScratch(wanted), SampleScratch(min(wanted, sampledRows)))
	for _, b := range []struct {
		to   **vk.Buffer
		size int
	}{{&m.scratch, m.scratchBytes}, {&m.drawn, 4 * wanted}, {&m.best, int(best)}} {
		if *b.to, err = m.memory.take(vk.Local, uint64(b.size), "activations"); err != nil {
			return err
		}
		m.account.Scratch += int64(b.size)
	}
	return m.device.queue.once(func(r *vk.Recording) error {
		r.BarrierAll()
		r.Fill(m.drawn, 0)
		r.BarrierAll()
		return nil
	})
}

func (m *model) Steps() []*backend.Step { return m.ring }

func (m *model) Memory() backend.Memory { return m.account }

func (m *model) slot(s *backend.Step) *slot {
	for _, x := range m.slots {
		if x.step == s {
			return x
		}
	}
	panic("vulkan: a step of another model")
}

// Enqueue gathers segments. The last one, or a look at what lies between, has them submitted together.
func (m *model) Enqueue(segment int, s *backend.Step) error {
	if !m.config.Computes(segment) || segment < 0 || segment >= len(m.program.Segments) {
		return fmt.Errorf("segment %d is not computed here", segment)
	}
	if err := m.parts.Open(); err != nil {
		return err
	}
	if m.streams(segment) {
		_, err := m.part(&backend.Work{Segment: segment, Groups: m.present(segment), Last: true}, s)
		return err
	}
	x := m.slot(s)
	if err := m.begin(x); err != nil {
		return err
	}
	if x.from < 0 {
		x.from = segment
	}
	x.to = segment
	if m.config.Computes(segment+1) && segment+1 < len(m.program.Segments) {
		return nil
	}
	return m.flush(x)
}

// begin tells the device of a step, before its first segment.
func (m *model) begin(x *slot) error {
	if x.begun {
		return nil
	}
	if err := m.device.queue.alive(nil); err != nil {
		return err
	}
	if err := x.step.Check(m.program, &m.config, m.draws); err != nil {
		return err
	}
	m.fill(x)
	for _, c := range x.choices {
		if c != nil {
			c.known.Store(false)
		}
	}
	x.begun, m.draws = true, len(x.step.Draws)
	x.begins, x.products, x.longest = time.Time{}, 0, 0
	x.countSeen()
	x.moving, x.behind = absent, absent
	return nil
}

// submit submits recordings of a step, to begin when copies have come to a value.
func (m *model) submit(x *slot, copied uint64, shapes ...shape) (value uint64, err error) {
	all := m.batch[:0]
	for i := range shapes {
		m.detail(x, &shapes[i])
		r, err := m.recording(x, shapes[i])
		if err != nil {
			return 0, err
		}
		all = append(all, r)
	}
	m.batch = all
	asked := time.Now()
	if x.begins.IsZero() {
		x.begins = asked
	}
	if value, err = m.device.queue.submit(copied, all...); err == nil {
		m.submitted(x, all, shapes, asked)
	}
	x.value = max(x.value, value)
	return value, err
}

// ended is what somebody waits for the end of: a step, a part, or a choice.
type ended struct {
	value   uint64
	slot    *slot // of a step
	done    func(error)
	release func()
	told    func(error)
	group   int // that moves, of a part with one
	asked   time.Time
	longest time.Duration // that a submit of a step is predicted to take; 0: who knows
}

// Finish drops what was enqueued and not submitted: nobody wants it any more.
func (m *model) Finish(s *backend.Step, done func(error)) {
	x := m.slot(s)
	m.parts.Drop()
	e := ended{value: x.value, slot: x, done: done, longest: x.longest}
	x.from, x.value, x.begun = -1, 0, false
	if e.value == 0 {
		done(nil)
		return
	}
	m.ends <- e // has room for all steps
}

// watch waits for what was submitted, one after another, and tells of the ends.
func (m *model) watch() {
	var last, before time.Time
	for e := range m.ends {
		err := m.device.queue.reach(m.device.queue.line, e.value, e.longest)
		switch {
		case e.release != nil:
			e.release()
			last = m.ran(&e, last)
		case e.told != nil:
			e.told(err)
		default:
			if err == nil {
				now := time.Now()
				m.learnSpeed(e.slot, before, now)
				m.tell(e.slot, now)
				err, before = e.slot.take(m), now
			}
			e.done(err)
		}
	}
}

// ran tells of a part that ended now, the one before at last. It began when its group was there.
func (m *model) ran(e *ended, last time.Time) time.Time {
	now := time.Now()
	if m.config.Ran != nil && e.group != absent && !m.times() { // else the end of the step tells
		began := later(later(e.asked, last), time.Unix(0, m.groups[e.group].landed.Load()))
		m.config.Ran(backend.Ran{Segment: m.parts.Groups[e.group].Segment, Group: e.group, Asked: e.asked, Began: began,
			Ended: later(now, began)})
	}
	return now
}

// take brings what a step left: its logits are there already.
func (s *slot) take(m *model) error {
	if row := words[uint32](s.result, 0, 1)[0]; row != 0 {
		return fmt.Errorf("row %d: a value is NaN or infinite: the weights or an earlier result are broken", row-1)
	}
	s.step.Drawn = s.step.Drawn[:0]
	if s.shape.draws {
		s.step.Drawn = append(s.step.Drawn, words[int32](s.result, 16, len(s.step.Draws))...)
	}
	return nil
}

// Close waits for the steps in flight and frees the memory.
func (m *model) Close() error {
	m.closing.Store(true)
	if m.ends != nil {
		close(m.ends)
		if m.moves != nil {
			close(m.moves)
		}
		m.closed.Wait()
		m.ahead.Wait()
		m.stamped.close()
		m.moved.close()
	}
	q := m.device.queue
	err := q.idle()
	for _, c := range m.copies {
		q.close(c.r)
	}
	for _, r := range m.crossings {
		q.close(r)
	}
	for _, s := range m.slots {
		for _, r := range s.recordings {
			q.close(r)
		}
	}
	m.memory.free()
	if errors.Is(err, backend.ErrLost) {
		err = nil // the steps have said so
	}
	return err
}
