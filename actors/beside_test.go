package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// beside is a device that works beside the program, as a GPU does: steps are enqueued while others are in flight, their
// ends are told by a thread of its own, and it draws the likeliest tokens itself. Its model is a sum: the token after a
// row depends on every token of the sequence so far, read from the blocks of the cache through the tables.
type beside struct {
	flight int
	draws  bool
	apart  bool          // prompts leave other numbers than answers
	pause  time.Duration // that a step takes
	times  bool          // it says when segments ran: a launch after it was given them, or when it had time
	launch time.Duration
	sight  time.Duration    // how late its ends are seen
	fail   func(n int) bool // whether step n, from 1, fails
	lost   func(n int) bool // whether the device is lost at step n
	hung   func(s *backend.Step) bool
	away   func() bool  // whether it cannot be opened
	most   atomic.Int64 // steps that were in flight at once
}

func (*beside) Name() string { return "beside" }
func (*beside) Close() error { return nil }
func (d *beside) Traits() backend.Traits {
	draws := 0
	if d.draws {
		draws = 1
	}
	return backend.Traits{Flight: d.flight, Draws: draws, Shares: true, Memory: backend.OwnMemory, Clock: d.times,
		Apart: func(*ir.Bound) bool { return d.apart }}
}

func (d *beside) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	if d.away != nil && d.away() {
		return nil, fmt.Errorf("%w: it is away", backend.ErrLost)
	}
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
	m.ended.Add(1)
	go m.serve()
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
	cache [][]int32 // by class, tokens by position in blocks
	drawn []int32   // by the step before
	steps int
	sick  int // steps that are struck by one that failed
	gone  bool
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
	asked := time.Now()
	m.work <- func() {
		time.Sleep(m.device.launch)
		began := time.Now()
		time.Sleep(m.device.pause)
		err := m.compute(s)
		if m.device.times && err == nil {
			m.tell(s, asked, began, time.Now())
		}
		time.Sleep(m.device.sight)
		m.inFlight.Add(-1)
		done(err)
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

func (m *besideModel) serve() {
	defer m.ended.Done()
	for step := range m.work {
		step()
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
			id = 0 // of a step that failed
			if drawn < len(before) {
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

func startBeside(t *testing.T, d *beside, edit func(*Config)) *Engine {
	f, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	cfg := Config{Model: Model{File: f, Context: 1024, Blocks: 400, Sequences: 6, Rows: 32}, Device: d, Log: zerolog.Nop()}
	if edit != nil {
		edit(&cfg)
	}
	e, err := Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close(context.Background()))
		dead, unexpected := e.house.system.Faults()
		require.Zero(t, dead+unexpected)
	})
	return e
}

// expected is what beside answers, by plain arithmetic.
func expected(prompt []int32, n, vocab int) []int32 {
	tokens := slices.Clone(prompt)
	for range n {
		sum := uint32(2166136261)
		for _, id := range tokens {
			sum = (sum ^ uint32(id)) * 16777619
		}
		tokens = append(tokens, int32(sum>>8)%int32(vocab))
	}
	return tokens[len(prompt):]
}

// mixed are requests of which some can be drawn by a device and others cannot.
func mixed(i int, tokens []int32, most int) Request {
	r := plain(tokens, most)
	if i%3 == 1 {
		r.Sampling.Bias = []sample.Bias{{ID: 1, Add: 0}} // nothing changes, but the host has to see the logits
	}
	return r
}

// A device with three steps in flight gives the answers of one with one, whether or not it draws, and so does one whose
// steps fail now and then, or whose actors die.
func TestStepsInFlight(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(8)
	for _, c := range []struct {
		name   string
		device *beside
		most   int64
		kill   []string
	}{
		{"one", &beside{flight: 1}, 1, nil},
		{"three, drawn by the host", &beside{flight: 3, pause: 200 * time.Microsecond}, 3, nil},
		{"three", &beside{flight: 3, draws: true}, 3, nil},
		{"slow", &beside{flight: 3, draws: true, pause: 300 * time.Microsecond}, 3, nil},
		{"failing", &beside{flight: 3, draws: true, fail: func(n int) bool { return n%37 == 0 }}, 3, nil},
		{"lost twice", &beside{flight: 3, draws: true, pause: 100 * time.Microsecond, lost: lostTimes(2)}, 3, nil},
		{"dying", &beside{flight: 3, draws: true, pause: 200 * time.Microsecond}, 3,
			[]string{"device", "scheduler", "kv", "sampler", "model", "sessions"}},
		{"failing and dying", &beside{flight: 3, draws: true, pause: time.Millisecond,
			fail: func(n int) bool { return n == 12 }}, 3, []string{"kv", "scheduler", "sampler", "kv", "kv"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := startBeside(t, c.device, nil)
			var wg sync.WaitGroup
			for i, p := range all {
				wg.Go(func() {
					want := expected(p, 100, e.Info.Vocab)
					s := begin(t, e, mixed(i, p, 100))
					defer s.Close()
					var ev Event
					for n, id := range want {
						if err := s.Next(context.Background(), &ev); err != nil || ev.Token != id {
							t.Errorf("prompt %d, token %d: %d, want %d; error %v", i, n, ev.Token, id, err)
							return
						}
					}
				})
			}
			for _, victim := range c.kill {
				time.Sleep(15 * time.Millisecond)
				e.crash(victim)
			}
			wg.Wait()
			require.Equal(t, c.most, c.device.most.Load(), "steps in flight")
			require.Eventually(t, func() bool { s := e.Snapshot(); return s.Open == 0 && s.KV.Used == 0 },
				patient, time.Millisecond)
		})
	}
}

// lostTimes has a device lost at its 20th step, so often.
func lostTimes(times int) func(n int) bool {
	return func(n int) bool {
		if n != 20 || times == 0 {
			return false
		}
		times--
		return true
	}
}

// A device that is lost whenever it is opened is given up, with an error that says why.
func TestLostForGood(t *testing.T) {
	e := startBeside(t, &beside{flight: 2, draws: true, lost: func(int) bool { return true }}, nil)
	_, err := drain(begin(t, e, plain([]int32{1, 2}, 10)))
	require.Error(t, err)
	require.Eventually(t, func() bool { return e.Health() != nil }, patient, time.Millisecond)
	require.ErrorContains(t, e.Health(), "given up, for the 6th time within 10m0s: the device is lost: unplugged")
}

// One request that is cancelled with steps in flight gives its blocks back when these have ended, and not before.
func TestCancelInFlight(t *testing.T) {
	d := &beside{flight: 3, draws: true, pause: 20 * time.Millisecond}
	e := startBeside(t, d, nil)
	for range 5 {
		s := begin(t, e, plain([]int32{1, 2, 3}, 500))
		var ev Event
		require.NoError(t, s.Next(context.Background(), &ev))
		s.Close()
		require.Eventually(t, func() bool { n := e.Snapshot(); return n.Open == 0 && n.Running == 0 && n.KV.Used == 0 },
			patient, time.Millisecond)
	}
	got := collect(t, begin(t, e, plain([]int32{4, 5}, 50)))
	require.Equal(t, expected([]int32{4, 5}, 50, e.Info.Vocab), got.tokens)
}

// Steps that nobody wants any more come back behind those before them, which the host may still draw from: else the
// next step would be formed in one of these.
func TestAbandonedInFlight(t *testing.T) {
	e := startBeside(t, &beside{flight: 2}, func(c *Config) { c.Context, c.Blocks, c.Sequences, c.Rows = 256, 60, 4, 64 })
	all := prompts(8)
	over := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	for n := range all {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for time.Now().Before(over) {
				i := r.IntN(len(all))
				s, err := e.Generate(plain(all[i], 60))
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), patient)
				var ev Event
				for at, id := range expected(all[i], 60, e.Info.Vocab)[:r.IntN(30)] {
					if err := s.Next(ctx, &ev); err != nil || ev.Token != id {
						t.Errorf("prompt %d, token %d: %d, want %d; error %v", i, at, ev.Token, id, err)
						break
					}
				}
				cancel()
				s.Close()
			}
		})
	}
	wg.Wait()
}

// Law Survive for a scheduler that dies while a step waits for the drive, and the next one for that: what was queued is
// taken back, while the device is still at what it has of the first.
func TestQueuedStepIsTakenBack(t *testing.T) {
	f := &faults{r: rand.New(rand.NewPCG(1, 2))}
	e := startBeside(t, &beside{flight: 2, draws: true, pause: time.Millisecond}, func(c *Config) {
		c.hooks.plan, c.hooks.disk = few{Ring: 2}.Plan, f.open
	})
	s := begin(t, e, plain([]int32{1, 2, 3}, 900))
	defer s.Close()
	var ev Event
	tokens := expected([]int32{1, 2, 3}, 900, e.Info.Vocab)
	for n, id := range tokens[:200] {
		require.NoError(t, s.Next(context.Background(), &ev))
		require.Equal(t, id, ev.Token)
		if n%50 != 20 {
			continue
		}
		gate := make(chan struct{})
		f.hang.Store(&gate)
		time.Sleep(20 * time.Millisecond) // a step waits, and the next one for that
		e.crash("scheduler")
		time.Sleep(5 * time.Millisecond)
		f.hang.Store(nil)
		close(gate)
	}
	for _, a := range e.Snapshot().Actors {
		require.True(t, a.ID != "house/device" || a.Restarts == 0, "the device restarted")
	}
}

// Two models on a device that works beside the program answer as each does alone.
func TestTwoModelsInFlight(t *testing.T) {
	d := &beside{flight: 3, draws: true, pause: 100 * time.Microsecond}
	h := openHouse(t, d, []string{fixture, fixture}, func(m *Model) {
		m.Context, m.Blocks, m.Sequences, m.Rows = 1024, 400, 6, 32
	})
	var wg sync.WaitGroup
	for _, e := range h.Engines() {
		for i, p := range prompts(5) {
			s := begin(t, e, mixed(i, p, 60))
			wg.Go(func() {
				defer s.Close()
				var ev Event
				for n, id := range expected(p, 60, e.Info.Vocab) {
					if err := s.Next(context.Background(), &ev); err != nil || ev.Token != id {
						t.Errorf("%s, prompt %d, token %d: %d, want %d; error %v", e.Info.Name, i, n, ev.Token, id, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for _, e := range h.Engines() {
		require.Zero(t, e.Snapshot().FailedSteps)
	}
}
