package exec

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// model is compiled segments with their memory. One goroutine calls it; another one, watch, reports steps that have
// ended.
type model struct {
	backend.Blind
	blocks
	device   *Device
	config   backend.Config
	layout   *layout
	weights  *weights
	ring     ring
	border   border
	mates    mates
	accounts accounts

	outgoing
	ends   chan ended
	closed sync.WaitGroup

	ahead   sync.WaitGroup // done when kernels have been compiled ahead
	closing atomic.Bool    // nothing more is compiled ahead
}

// layout is the part of a compiled model that does not change.
type layout struct {
	program *ir.Program // all of it
	part    *ir.Bound   // what is computed here
	plan    *plan.Plan
	works   []work // by segment
	apart   bool   // prompts are multiplied in half precision
	memory  *memory

	scratch     *driver.Buffer // values of the step that runs; steps run one after another
	drawn, best *driver.Buffer // tokens drawn by the step before; memory for drawing
}

// compile plans the segments and takes all memory. If the config says Counted, it only counts the memory.
func compile(v *Device, p *ir.Bound, c backend.Config, team *plan.Team) (*model, error) {
	from := v.d
	if c.Counted {
		from = &counter{Device: v.d}
	}
	l := &layout{program: p.Program, part: p.Only(c.Segments), works: worksOf(p.Program), apart: v.kernels.Apart(p),
		memory: &memory{d: from}}
	m := &model{device: v, config: c, layout: l, border: border{made: map[crossing]driver.Recording{}},
		accounts: accounts{shares: map[recorded]*shares{}}, mates: mates{team: team}}
	m.weights = newWeights(v.card, &m.config, l.memory, l.part)
	m.weights.adapters = adapters{card: v.card, most: c.Adapters}
	if !c.Counted {
		m.border.shared = importMemory(l.memory, c.Crossing)
	}
	return m, m.lay()
}

// open makes a model whose memory was taken ready for weights and steps.
func (m *model) open() error {
	if m.config.Counted {
		return nil
	}
	if err := m.clearDrawn(); err != nil {
		return err
	}
	if err := m.weights.fillTables(); err != nil {
		return err
	}
	m.start()
	return nil
}

// lay plans the program, and takes all memory that it needs.
func (m *model) lay() error {
	l, c, kernels := m.layout, &m.config, m.device.kernels
	for i, x := range l.part.KV {
		if err := kernels.Caches(c.KV.Of(i, l.part.Classes[x.Class])); err != nil {
			return err
		}
	}
	f := plan.Fuse(l.part, c.Segments == nil, kernels, c.KV)
	if err := m.weights.lay(l.part, f); err != nil {
		return err
	}
	t := plan.Target{Kernels: kernels, Weights: m.weights, KV: c.KV, Rows: c.MaxRows, Wanted: c.MaxWanted, Apart: l.apart,
		Segments: c.Segments, Team: m.mates.team}
	var err error
	if t.Caches, t.States, err = m.layCaches(); err != nil {
		return err
	}
	if l.plan, err = plan.New(l.part, f, t); err != nil {
		return err
	}
	if err := m.layScratch(); err != nil {
		return err
	}
	if err := m.layBox(); err != nil {
		return err
	}
	return m.layRing()
}

// layCaches takes memory for the KV caches and the recurrent states of the segments that are computed here, by block of
// their cache class.
func (m *model) layCaches() (caches []plan.Cache, states []uint64, err error) {
	l, c := m.layout, &m.config
	m.blocks = blocks{queue: m.device.queue, memory: l.memory, areas: make([][]area, len(l.part.Classes))}
	caches, states = make([]plan.Cache, len(l.part.KV)), make([]uint64, len(l.part.States))
	_, cached, kept := l.part.Used()
	take := func(class int, to *uint64, each uint64, what string) {
		x := area{each: each, count: c.Blocks[class]}
		if err != nil || each == 0 {
			return
		}
		if x.buffer, err = l.memory.take(driver.Local, each*uint64(x.count), what); err == nil {
			*to = x.buffer.Address
			l.memory.account.KV += int64(x.buffer.Size)
			m.blocks.areas[class] = append(m.blocks.areas[class], x)
		}
	}
	for i, x := range l.part.KV {
		if cached[i] {
			h := kernel.Heads{KV: x.KVHeads, Features: x.KDim, Values: x.VDim,
				Cache: c.KV.Of(i, l.part.Classes[x.Class])}
			take(x.Class, &caches[i].Keys, h.KeyBytes(1), "KV cache")
			take(x.Class, &caches[i].Values, h.ValueBytes(1), "KV cache")
			if x.Recent > 0 {
				take(x.Recent, &caches[i].OpenKeys, h.Recent().KeyBytes(1), "KV cache")
				take(x.Recent, &caches[i].OpenValues, h.Recent().ValueBytes(1), "KV cache")
			}
		}
	}
	for i, x := range l.part.States {
		if kept[i] {
			take(x.Class, &states[i], uint64(backend.StateBytes(x)), "recurrent states")
		}
	}
	return caches, states, err
}

func (m *model) layScratch() (err error) {
	l := m.layout
	for _, b := range []struct {
		to   **driver.Buffer
		size uint64
	}{{&l.scratch, uint64(l.plan.Scratch)}, {&l.drawn, uint64(4 * l.plan.Capacity(true))}, {&l.best, l.plan.BestBytes()}} {
		if *b.to, err = l.memory.take(driver.Local, b.size, "activations"); err != nil {
			return err
		}
		l.memory.account.Scratch += int64(b.size)
	}
	return nil
}

func (m *model) clearDrawn() error {
	return m.device.queue.once(func(r driver.Recording) error {
		r.BarrierAll()
		r.Fill(m.layout.drawn, 0)
		r.BarrierAll()
		return nil
	})
}

// start starts the goroutines of the model.
func (m *model) start() {
	const ofSegment = 16 // parts and choices that the watcher has yet to see end: beyond so many, submitting waits
	m.ends = make(chan ended, m.config.Ring()*(1+ofSegment*len(m.layout.program.Segments)))
	m.accounts.stamped, m.weights.copies.stamped = newReader(m.device.queue), newReader(m.device.queue)
	m.closed.Go(m.watch)
	if m.config.Ran != nil && len(m.config.Kept) > 0 {
		m.weights.copies.submitted = make(chan move, len(m.weights.slots)*4)
		m.closed.Go(m.weights.follow)
	}
	if m.device.ahead {
		if m.layout.plan.Capacity(false) > kernel.FewColumns {
			m.device.kernels.Tune(plan.HeadsOf(m.layout.part, m.config.KV), &bench{card: m.device.card})
		}
		m.ahead.Go(func() { m.warm(m.usual()) })
	}
}

func (m *model) Steps() []*backend.Step { return m.ring.steps }

func (m *model) Memory() backend.Memory { return m.layout.memory.account }

// Run enqueues a segment, or submits a part of one. If the caller asks for a route's choice, it is copied to the host
// behind the route, and the watcher reports it.
func (m *model) Run(w backend.Work, s *backend.Step) error {
	if w.Chosen != nil && !m.routes(w.Segment) {
		w.Release()
		return fmt.Errorf("segment %d is no route that is computed here, of experts that share slots", w.Segment)
	}
	var err error
	if err = s.Follows(&m.config.Layout, &w); err != nil || w.Whole {
		if err == nil {
			err = m.enqueue(w.Segment, s)
		}
		w.Release()
	} else {
		err = m.submitPart(&w, s)
	}
	if err != nil || w.Chosen == nil || !w.Ends() {
		return err
	}
	return m.hear(w.Segment, s, w.Chosen)
}

// enqueue notes a segment. All that were noted are submitted together when the last one of a row of segments on this
// device comes, or when the host asks for a value between them.
func (m *model) enqueue(segment int, s *backend.Step) error {
	segments := len(m.layout.program.Segments)
	if !m.config.Computes(segment) || segment < 0 || segment >= segments {
		return fmt.Errorf("segment %d is not computed here", segment)
	}
	if err := m.weights.parts.Open(); err != nil {
		return err
	}
	if m.weights.streams(segment) {
		_, err := m.part(&backend.Work{Segment: segment, Groups: m.weights.present(segment), Last: true}, s)
		return err
	}
	x := m.ring.of(s)
	if err := m.begin(x); err != nil {
		return err
	}
	if x.from < 0 {
		x.from = segment
	}
	x.to = segment
	if m.config.Computes(segment+1) && segment+1 < segments {
		return nil
	}
	return m.flush(x)
}

// begin writes what kernels read of a step, before its first segment.
func (m *model) begin(x *entry) error {
	if x.begun {
		return nil
	}
	if err := m.device.queue.alive(nil); err != nil {
		return err
	}
	if err := x.step.Check(m.layout.program, &m.config.Limits, m.ring.draws); err != nil {
		return err
	}
	for i := range x.step.Spans {
		if x.step.Spans[i].Sees != nil { // kernels of attention begin a window at the last position that a row sees
			return fmt.Errorf("rows of a picture see each other, which only the processor computes (--device cpu): %w",
				errors.ErrUnsupported)
		}
	}
	m.fill(x)
	if err := m.fillAdapters(x, &m.layout.plan.Entry); err != nil {
		return err
	}
	m.mates.begin(x, m.layout.plan.Entry.Exchanges)
	for _, c := range x.experts.choices {
		if c != nil {
			c.known.Store(false)
		}
	}
	x.begun, m.ring.draws = true, len(x.step.Draws)
	x.clock.begins, x.clock.work, x.clock.longest = time.Time{}, 0, 0
	x.clock.detail = m.config.Detail != nil && m.config.Detail()
	x.countSeen()
	x.clock.moving, x.clock.behind = absent, absent
	return nil
}

// ended is a step, a part, or a choice whose end the watcher waits for.
type ended struct {
	value   uint64
	entry   *entry // nil: not of a step
	done    func(error)
	release func()
	told    func(error)
	group   int // of a part, the first group that moves; absent: none
	asked   time.Time
	longest time.Duration // that a submission of a step is predicted to take; 0: unknown
}

// Finish drops the segments that were enqueued and not submitted: their results are not wanted any more.
func (m *model) Finish(s *backend.Step, done func(error)) {
	x := m.ring.of(s)
	m.weights.parts.Drop()
	m.mates.held = m.mates.held[:0]
	s.Restart()
	x.release()
	e := ended{value: x.value, entry: x, done: done, longest: x.clock.longest}
	x.from, x.value, x.begun = -1, 0, false
	if e.value == 0 {
		done(nil)
		return
	}
	m.ends <- e // never blocks: the channel has room for all steps
}

// watch waits for the end of what was submitted, in order, and reports it.
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
				m.learnSpeed(e.entry, before, now)
				m.tell(e.entry, now)
				err, before = e.entry.take(), now
			}
			e.done(err)
		}
	}
}

// ran reports a part that ended now; the one before it ended at last. It began when its group had been copied.
func (m *model) ran(e *ended, last time.Time) time.Time {
	now := time.Now()
	if m.config.Ran != nil && e.group != absent && !m.times() { // else tell reports it at the end of the step
		began := later(later(e.asked, last), time.Unix(0, m.weights.groups[e.group].landed.Load()))
		m.config.Ran(backend.Ran{Segment: m.weights.parts.Groups[e.group].Segment, Group: e.group, Asked: e.asked,
			Began: began, Ended: later(now, began)})
	}
	return now
}

// take checks a step's status and copies the drawn tokens to the step. Logits need no copy: the step's are the result's
// memory.
func (x *entry) take() error {
	row := words[uint32](x.result, plan.ResultStatus, 1)[0]
	if row == kernel.Unanswered {
		return errors.New("another card of the team did not answer in time: it computes something else, or was lost")
	}
	if row != 0 {
		return fmt.Errorf("row %d: a value is NaN or infinite: the weights or an earlier result are broken", row-1)
	}
	x.step.Drawn = x.step.Drawn[:0]
	if x.shape.Draws {
		x.step.Drawn = append(x.step.Drawn, words[int32](x.result, plan.ResultDrawn, len(x.step.Draws))...)
	}
	return nil
}

// Close waits for the steps in flight and frees the memory.
func (m *model) Close() error {
	defer m.device.card.models.Add(-1)
	if m.config.Counted {
		return nil // other models may be computing: there is no need to wait for them
	}
	m.closing.Store(true)
	if m.ends != nil {
		close(m.ends)
		if m.weights.copies.submitted != nil {
			close(m.weights.copies.submitted)
		}
		m.closed.Wait()
		m.ahead.Wait()
		m.accounts.stamped.close()
		m.weights.copies.stamped.close()
	}
	q := m.device.queue
	err := q.idle()
	for _, c := range m.weights.copies.made {
		q.close(c.r)
	}
	for _, r := range m.border.made {
		q.close(r)
	}
	for _, x := range m.ring.entries {
		for _, r := range x.recordings {
			q.close(r)
		}
	}
	m.weights.adapters.free()
	m.layout.memory.free()
	if errors.Is(err, backend.ErrLost) {
		err = nil // the steps have said so
	}
	return err
}
