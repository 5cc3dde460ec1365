package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// apart is a processor that works as a GPU does: with memory of its own, beside the program, two steps in flight. Its
// bits are a processor's, so those of a model on both are, too.
type apart struct {
	backend.Device
	lost  func(n int) bool // whether it is lost at step n
	pause time.Duration    // that a step takes
	steps atomic.Int64
	most  atomic.Int64 // steps in flight
}

func (d *apart) Traits() backend.Traits {
	t := d.Device.Traits()
	t.Flight, t.Draws, t.Memory, t.Free, t.Threads = 2, 1, backend.OwnMemory, 3<<30, 0
	return t
}

func (d *apart) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	flight := c.Ring()
	c.Flight = 1
	inner, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	m := &apartModel{Model: inner, device: d, width: p.OutputWidth(), work: make(chan func(), 256)}
	for range flight {
		m.ring = append(m.ring, &apartStep{out: &backend.Step{Logits: make([]float32, c.MaxWanted*p.OutputWidth())}})
	}
	m.ended.Go(func() {
		for f := range m.work {
			f()
		}
	})
	return m, nil
}

// apartModel has a thread that does one thing after another.
type apartModel struct {
	backend.Model
	device *apart
	width  int // of logits
	ring   []*apartStep
	work   chan func()
	ended  sync.WaitGroup
	flying atomic.Int64
	gone   bool // of the thread
}

type apartStep struct {
	out   *backend.Step
	begun bool
	err   error // of the thread
}

func (m *apartModel) Steps() (all []*backend.Step) {
	for _, s := range m.ring {
		all = append(all, s.out)
	}
	return all
}

func (m *apartModel) of(s *backend.Step) *apartStep {
	return m.ring[slices.IndexFunc(m.ring, func(x *apartStep) bool { return x.out == s })]
}

// begin has the thread's step be this one.
func (m *apartModel) begin(x *apartStep) {
	if x.begun {
		return
	}
	x.begun = true
	m.work <- func() {
		in := m.Model.Steps()[0]
		in.Tokens, in.Spans, in.Wanted = x.out.Tokens, x.out.Spans, x.out.Wanted
		m.gone = m.gone || m.device.lost != nil && m.device.lost(int(m.device.steps.Add(1)))
		if x.err = nil; m.gone {
			x.err = fmt.Errorf("%w: unplugged", backend.ErrLost)
		}
	}
}

func (m *apartModel) Run(w backend.Work, s *backend.Step) error {
	x := m.of(s)
	m.begin(x)
	m.work <- func() {
		if x.err == nil {
			x.err = m.Model.Run(w, m.Model.Steps()[0])
		}
	}
	return nil
}

func (*apartModel) Foresees(int) (route int, ok bool) { return 0, false }

func (m *apartModel) In(v ir.Value, s *backend.Step, rows []float32) error {
	m.begin(m.of(s))
	x, rows := m.of(s), slices.Clone(rows)
	m.work <- func() {
		if x.err == nil {
			x.err = m.Model.In(v, m.Model.Steps()[0], rows)
		}
	}
	return nil
}

// Out waits for the thread.
func (m *apartModel) Out(v ir.Value, s *backend.Step, rows []float32) error {
	m.begin(m.of(s))
	x, told := m.of(s), make(chan error)
	m.work <- func() {
		err := x.err
		if err == nil {
			err = m.Model.Out(v, m.Model.Steps()[0], rows)
		}
		told <- err
	}
	return <-told
}

func (m *apartModel) Finish(s *backend.Step, done func(error)) {
	x := m.of(s)
	if !x.begun {
		done(nil)
		return
	}
	n := m.flying.Add(1)
	for most := m.device.most.Load(); n > most && !m.device.most.CompareAndSwap(most, n); most = m.device.most.Load() {
	}
	x.begun = false
	m.work <- func() {
		time.Sleep(m.device.pause)
		err := x.err
		m.Model.Finish(m.Model.Steps()[0], func(e error) { err = errors.Join(err, e) })
		copy(x.out.Logits, m.Model.Steps()[0].Logits[:len(x.out.Wanted)*m.width])
		m.flying.Add(-1)
		done(err)
	}
}

func (m *apartModel) Close() error {
	close(m.work)
	m.ended.Wait()
	return m.Model.Close()
}

// divided has the last layers computed by a device with a host. Without d, both compute while a step is enqueued.
func divided(t testing.TB, layers int, d *apart) func(*Config) {
	devicetest.OnProcessor(t, "two processors compute what one does")
	return func(c *Config) {
		main := c.Device
		if d != nil {
			d.Device, main = c.Device, d
		}
		c.Device, c.Layers = compose.New(devicetest.Processor(t, ""), main), layers
	}
}

// expertsBeside has the host compute the experts of the first layers, and the device all else.
func expertsBeside(t testing.TB, n int, d *apart) func(*Config) {
	edit := divided(t, 0, d)
	return func(c *Config) {
		edit(c)
		c.Experts = n
	}
}

// TestExpertsBeside: laws RowAlone and Recompute, for mixtures of which the host computes experts: answers are those of
// one device.
func TestExpertsBeside(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for name, experts := range map[string]int{"qwen3moe": 1, "gptoss": 99, "qwen3next": 2, "deepseek2": 99} {
		t.Run(name, func(t *testing.T) {
			all := prompts(6)
			want := alone(t, startFixture(t, name, nil), all, 20)
			e := startFixture(t, name, expertsBeside(t, experts, &apart{}))
			require.Equal(t, min(experts, place.Mixtures(e.spec.bound.Program)), e.Plan().HostExperts(e.spec.bound.Program))
			require.Equal(t, want[:1], alone(t, e, all[:1], 20), "alone")
			together(t, e, all, want)
		})
	}
	f, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	_, err = Start(context.Background(), Config{Model: Model{File: f, Experts: 1},
		Device: compose.New(newDevice(t), newDevice(t)), Log: zerolog.Nop()})
	require.EqualError(t, err, "experts for the host of a device: this model has none, leave it out")
}

// TestSurviveExpertsBeside: law Survive, likewise.
func TestSurviveExpertsBeside(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	survive(t, "qwen3moe", slices.Concat(ofModel, ofHouse), expertsBeside(t, 1, &apart{}))
}

// Laws RowAlone and Recompute, for models on two devices of the same kernels: answers are those of one.
func TestHybrid(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, c := range []struct {
		name   string
		layers int
		few    // slots of the host; none: all stays
	}{
		{fixture, 1, few{}}, {"gemma2", 1, few{}}, {"qwen3moe", 1, few{}}, {"qwen3next", 2, few{}}, {"lfm2", 3, few{}},
		{"smollm3", 1, few{Ring: 2}}, {"qwen3moe", 1, few{Ring: 2, Shelf: 3}}, {"qwen3next", 1, few{Shelf: 2}},
		{"lfm2", 1, few{Ring: 3, Piece: 16 << 10}},
	} {
		t.Run(fmt.Sprintf("%s, %d layers, slots %v", c.name, c.layers, c.few), func(t *testing.T) {
			all := prompts(8)
			want := alone(t, startFixture(t, c.name, nil), all, 24)
			d := &apart{}
			e := startFixture(t, c.name, func(cfg *Config) {
				if divided(t, c.layers, d)(cfg); c.few != (few{}) {
					streamed(c.few)(cfg)
				}
			})
			require.True(t, e.Plan().Divided())
			require.Positive(t, e.Plan().ByTier()[place.Device])
			require.Equal(t, c.few != few{}, e.spec.streams())
			require.Equal(t, want[:2], alone(t, e, all[:2], 24), "alone")
			together(t, e, all, want)
		})
	}
}

// TestHybridOfThree: laws RowAlone and Recompute, for a host and two devices beside it with layers each: answers are
// those of one device, and steps are in flight on both.
func TestHybridOfThree(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(6)
	for _, layers := range []int{0, 2} {
		want := alone(t, startFixture(t, "lfm2", nil), all, 24)
		first, second := &apart{}, &apart{}
		e := startFixture(t, "lfm2", func(c *Config) {
			divided(t, layers, second)(c)
			first.Device = devicetest.Processor(t, "")
			c.Device = compose.New(devicetest.Processor(t, ""), first, c.Device.(*compose.Device).Device)
		})
		computes := e.Plan().Devices
		require.Equal(t, layers == 0, !slices.Contains(computes, 0), "%v", computes)
		require.Contains(t, computes, 1)
		require.Equal(t, 2, computes[len(computes)-1])
		require.Equal(t, want[:1], alone(t, e, all[:1], 24), "alone")
		together(t, e, all, want)
		require.Positive(t, first.most.Load())
	}
}

// Two steps of a prompt are in flight: the host computes one while the device computes the one before.
func TestHybridOverlaps(t *testing.T) {
	d := &apart{pause: 5 * time.Millisecond}
	e := startFixture(t, fixture, func(c *Config) {
		c.Rows, c.Sequences = 8, 1
		divided(t, 1, d)(c)
	})
	tokens := prompts(12)[7]
	requireSameBits(t, score(t, startFixture(t, fixture, nil), tokens), score(t, e, tokens), "score")
	collect(t, begin(t, e, plain(slices.Repeat(tokens, 3), 4)))
	require.Equal(t, int64(2), d.most.Load())
}

// Law ChunkFree, for a model on two devices.
func TestChunkFreeHybrid(t *testing.T) {
	tokens := prompts(12)[7]
	want := score(t, startFixture(t, fixture, nil), tokens)
	for _, rows := range []int{1, 7, 64} {
		e := startFixture(t, fixture, func(c *Config) {
			c.Rows, c.Sequences = rows, 1
			divided(t, 1, &apart{})(c)
		})
		requireSameBits(t, want, score(t, e, tokens), fmt.Sprintf("%d rows a step", rows))
	}
}

// Law Survive: whoever dies, answers are what they were.
func TestSurviveHybrid(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	survive(t, fixture, slices.Concat(ofModel, ofHouse), divided(t, 1, &apart{}))
}

// A device that is lost in the middle of answers is opened again, and the answers go on: the host's part with it.
func TestHybridIsLost(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(8)
	want := alone(t, startFixture(t, fixture, nil), all, 60)
	d := &apart{lost: func(n int) bool { return n == 40 || n == 90 }}
	e := startFixture(t, fixture, divided(t, 1, d))
	together(t, e, all, want)
	require.Greater(t, d.steps.Load(), int64(90))
}

// Laws RowAlone, Recompute and Survive, on a GPU and the processor: answers are those that were given alone, whoever
// runs beside them, and if the device dies.
func TestHybridOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("a CPU takes a while to compile kernels")
	}
	if list, err := vulkan.List(); err != nil || len(list) == 0 {
		testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
	}
	all := prompts(6)
	e := startFixture(t, fixture, func(c *Config) {
		gpu, err := vulkan.Open(0, vulkan.Options{Cache: t.TempDir()})
		require.NoError(t, err)
		require.NoError(t, c.Device.Close())
		c.Device, c.Layers = compose.New(devicetest.Processor(t, ""), gpu), 1
	})
	require.True(t, e.Plan().Divided())
	want := alone(t, e, all, 40)
	wg := readers(t, e, all, want)
	time.Sleep(10 * time.Millisecond)
	e.crash("device")
	wg.Wait()
}

// TestTraceOfHybrid: law Overlap for layers on a GPU and on the processor. Segments of both are in the trace, each
// where it is computed, and what the device waits for has causes.
func TestTraceOfHybrid(t *testing.T) {
	on := onGPU(t, vulkan.Options{Cache: t.TempDir()})
	e := startFixture(t, fixture, func(c *Config) {
		on(c)
		c.Device, c.Layers = compose.New(devicetest.Processor(t, ""), c.Device), 1
	})
	if !e.house.device.Traits().Clock {
		t.Skip("the device has no clock")
	}
	r := plain([]int32{5, 6}, 20)
	collect(t, begin(t, e, r)) // kernels are there
	a, _, spans := idle(t, e, func() { collect(t, begin(t, e, r)) })
	require.GreaterOrEqual(t, a.Explained(), 0.99, "%v", a.Idle)
	require.Positive(t, a.Idle[trace.Launch], "the GPU says when it began")
	times := map[int]int{}
	for _, s := range spans {
		if s.Track == "house/device/compute" && s.Segment >= 0 && s.Kind != trace.Idle {
			times[s.Segment]++
			require.Positive(t, s.Step)
		}
	}
	require.True(t, e.Plan().Divided())
	for i := range e.spec.bound.Segments {
		require.Equal(t, times[0], times[i], "segment %d", i)
	}
	require.GreaterOrEqual(t, times[0], 20)
}

// Layers that share a cache are computed by one side: what can be asked for instead is said.
func TestHybridSharesCaches(t *testing.T) {
	f, err := gguf.Open(fixturePath(t, "gemma4"))
	require.NoError(t, err)
	d := compose.New(newDevice(t), newDevice(t))
	_, err = Start(context.Background(), Config{Model: Model{File: f, Layers: 1}, Device: d, Log: zerolog.Nop()})
	require.EqualError(t, err, "1 layers on the device: some of them attend to what others store: ask for 0 or 4")
}
