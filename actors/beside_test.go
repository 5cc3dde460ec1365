package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// beside is a device that works beside the program, as a GPU does: steps are run while others are in flight, their
// ends are told by a thread of its own, and it draws the likeliest tokens itself. Its model is a sum: the token after a
// row depends on every token of the sequence so far, read from the blocks of the cache through the tables.
type beside struct {
	flight        int
	draws         bool
	apart         bool             // prompts leave other numbers than answers
	pause         time.Duration    // that a step takes
	times         bool             // it says when segments ran: a launch after it was given them, or when it had time
	launch, sight time.Duration    // until it has time; until its end is seen
	fail          func(n int) bool // whether step n, from 1, fails
	lost          func(n int) bool // whether the device is lost at step n
	hung          func(s *backend.Step) bool
	away          func() bool  // whether it cannot be opened
	most          atomic.Int64 // steps that were in flight at once
	queue         *oneQueue    // of all models; nil: each has one
}

func (*beside) Name() string { return "beside" }
func (*beside) Close() error { return nil }
func (d *beside) Traits() backend.Traits {
	return backend.Traits{Flight: d.flight, Draws: map[bool]int{true: 1}[d.draws], Shares: true,
		Memory: backend.OwnMemory, Clock: d.times, Apart: func(*ir.Bound) bool { return d.apart }}
}

func (d *beside) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	if d.away != nil && d.away() {
		return nil, fmt.Errorf("%w: it is away", backend.ErrLost)
	}
	d.queue.open()
	m := &besideModel{device: d, program: p.Program, config: c, work: make(chan func(), c.Ring())}
	for range c.Ring() {
		m.ring = append(m.ring, &backend.Step{Logits: make([]float32, c.MaxWanted*p.Vocab)})
	}
	for _, n := range c.Blocks {
		tokens := make([]int32, n*backend.BlockSize)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&tokens[0])), 4*len(tokens))
		m.cache = append(m.cache, tokens)
		m.Areas = append(m.Areas, []backend.Area{{Memory: bytes, Each: 4 * backend.BlockSize}})
	}
	m.ended.Go(func() {
		for step := range m.work {
			step()
		}
	})
	return m, nil
}

type besideModel struct {
	backend.Areas // of its cache
	backend.Blind
	device   *beside
	program  *ir.Program
	config   backend.Config
	ring     []*backend.Step
	work     chan func()
	ended    sync.WaitGroup
	inFlight atomic.Int64
	// Of the thread.
	cache       [][]int32 // by class, tokens by position in blocks
	drawn       []int32   // by the step before
	steps, sick int       // sick: those that are struck by one that failed
	gone        bool
}

func (*besideModel) Slot(int) []byte                              { return nil }
func (*besideModel) Place(int, int, [][]byte) error               { return nil }
func (*besideModel) Upload(ir.Ref, int, []byte) error             { return nil }
func (*besideModel) RowGrain() int                                { return 1 }
func (*besideModel) Memory() backend.Memory                       { return backend.Memory{} }
func (m *besideModel) Steps() []*backend.Step                     { return m.ring }
func (*besideModel) In(ir.Value, *backend.Step, []float32) error  { return nil }
func (*besideModel) Out(ir.Value, *backend.Step, []float32) error { return nil }

func (m *besideModel) Close() error {
	close(m.work)
	m.ended.Wait()
	return nil
}

// Run only looks at the step: the thread computes it whole.
func (m *besideModel) Run(w backend.Work, s *backend.Step) error {
	if w.Release(); w.Segment > 0 || !w.Ends() {
		return nil
	}
	return s.Check(m.program, &m.config.Limits, m.config.MaxWanted)
}

func (m *besideModel) Finish(s *backend.Step, done func(error)) {
	n := m.inFlight.Add(1)
	for most := m.device.most.Load(); n > most && !m.device.most.CompareAndSwap(most, n); most = m.device.most.Load() {
	}
	asked, turn := time.Now(), m.device.queue.enter()
	m.work <- func() {
		time.Sleep(m.device.launch)
		began := time.Now()
		time.Sleep(m.device.pause)
		err := turn(func() error { return m.compute(s) })
		if m.device.times && err == nil {
			m.tell(s, asked, began, time.Now())
		}
		time.Sleep(m.device.sight)
		m.inFlight.Add(-1)
		done(err)
		m.device.queue.told()
	}
}

// tell divides the time evenly among segments.
func (m *besideModel) tell(s *backend.Step, asked, began, ended time.Time) {
	n := len(m.program.Segments)
	border := func(i int) time.Time { return began.Add(time.Duration(int(ended.Sub(began)) * i / n)) }
	for i := range n {
		m.config.Ran(backend.Ran{Step: s, Segment: i, Group: -1, Asked: asked, Began: border(i), Ended: border(i + 1)})
	}
}

func (m *besideModel) compute(s *backend.Step) error {
	m.steps++
	if m.gone = m.gone || m.device.lost != nil && m.device.lost(m.steps); m.gone {
		return fmt.Errorf("%w: unplugged", backend.ErrLost)
	}
	if m.gone = m.device.hung != nil && m.device.hung(s); m.gone {
		return fmt.Errorf("%w: %w", backend.ErrLost, backend.ErrHung)
	}
	if m.device.fail != nil && m.device.fail(m.steps) {
		m.sick = int(m.inFlight.Load()) - 1
		return errors.New("the device has failed")
	}
	if m.sick > 0 {
		m.sick--
		return errors.New("the device failed at a step before")
	}
	before := m.drawn
	m.drawn = nil
	clear(s.Logits)
	for i := range s.Spans {
		if err := m.span(s, &s.Spans[i], before); err != nil {
			return err
		}
	}
	s.Drawn = append(s.Drawn[:0], m.drawn...)
	return nil
}

// span stores the rows' tokens and gives what is wanted of them.
func (m *besideModel) span(s *backend.Step, p *backend.Span, before []int32) error {
	for row := p.Row; row < p.Row+p.Rows; row++ {
		id, pos := s.Tokens[row], p.Pos+row-p.Row
		if drawn := int(-1 - id); id < 0 {
			if id = 0; drawn < len(before) { // else it is of a step that failed
				id = before[drawn]
			}
		}
		if s.Prompt {
			id = -id
		}
		for class := range m.cache {
			m.cache[class][int(p.Tables[class].At(pos/backend.BlockSize))*backend.BlockSize+pos%backend.BlockSize] = id
		}
		i, wanted := slices.BinarySearch(s.Wanted, int32(row))
		if !wanted {
			continue
		}
		if i < len(s.Draws) && !s.Draws[i].Host && s.Draws[i].Position != uint64(pos+1) {
			return fmt.Errorf("row at %d is drawn as for %d", pos, s.Draws[i].Position)
		}
		next := m.after(p, pos)
		s.Logits[i*m.program.Vocab+int(next)] = 1
		if len(s.Draws) > 0 {
			m.drawn = append(m.drawn, next)
		}
	}
	return nil
}

// after is the token that follows the positions up to pos.
func (m *besideModel) after(p *backend.Span, pos int) int32 {
	sum := uint32(2166136261)
	for at := range pos + 1 {
		sum = (sum ^ uint32(m.cache[0][int(p.Tables[0].At(at/backend.BlockSize))*backend.BlockSize+at%backend.BlockSize])) *
			16777619
	}
	return int32(sum>>8) % int32(m.program.Vocab)
}
