package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/swap"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// metered is a device that several engines compute on, and that counts the memory of their weights.
type metered struct {
	backend.Device
	now, most atomic.Int64
}

func (*metered) Close() error { return nil }

func (d *metered) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	mem, bytes := m.Memory(), int64(0)
	switch {
	case c.Counted && devicetest.OnGPU():
	case devicetest.OnGPU():
		bytes = mem.Weights + mem.KV + mem.Scratch // as the swapper counts them
	default:
		bytes = mem.Weights
	}
	d.took(bytes)
	return &meteredModel{m, d, bytes}, nil
}

func (d *metered) took(bytes int64) {
	now := d.now.Add(bytes)
	for most := d.most.Load(); now > most && !d.most.CompareAndSwap(most, now); most = d.most.Load() {
	}
}

type meteredModel struct {
	backend.Model
	of    *metered
	bytes int64
}

func (m *meteredModel) Close() error {
	defer m.of.now.Add(-m.bytes)
	return m.Model.Close()
}

// fixtures are a swapper's models: those of the reference data, by name.
type fixtures struct {
	t      *testing.T
	names  []string
	device *metered
	house  *House
	loads  atomic.Int64
}

func (s *fixtures) Names() []string { return s.names }

func (s *fixtures) House() (*House, error) { return s.house, s.house.Health() }

func (s *fixtures) Model(name string) (Model, error) {
	f, err := gguf.Open(fixturePath(s.t, name))
	return Model{Name: name, File: f, KV: backend.KVF32, Context: 256, Blocks: 9, Sequences: 4, Rows: 64}, err
}

func (s *fixtures) Enter(ctx context.Context, h *House, name string, edit func(*Model)) (*Engine, error) {
	m, err := s.Model(name)
	if err != nil {
		return nil, err
	}
	edit(&m)
	e, err := h.Enter(ctx, m)
	if err == nil {
		s.loads.Add(1)
	}
	return e, err
}

// TestSurviveSwaps: three models take turns in the memory of two, under load, while all kinds of actors of the first
// one die. No request is lost, every answer is that of an undisturbed engine to the bit, and measured memory keeps
// within the budget.
func TestSurviveSwaps(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	names := []string{fixture, "gemma3", "llama"}
	for _, name := range names {
		fixturePath(t, name) // it may skip, while nothing is open
	}
	seed := chaosSeed()
	inner := newDevice(t)
	defer inner.Close()
	s := &fixtures{t: t, names: names, device: &metered{Device: inner}}
	h, err := Open(t.Context(), HouseConfig{Device: s.device, Log: zerolog.Nop()})
	require.NoError(t, err)
	s.house = h
	all, want := prompts(4), map[string][]string{}
	const plenty = 1 << 40
	room := swap.Room{Host: plenty, Devices: []int64{plenty}}
	lent := &housed{s, room}
	short := func(r *swap.Room) *int64 { // what there is too little of
		if devicetest.OnGPU() {
			return &r.Devices[0]
		}
		return &r.Host
	}
	budget := int64(0)
	for _, name := range s.names {
		need, err := lent.Measure(t.Context(), name)
		require.NoError(t, err)
		budget += *short(&need)
		want[name] = alone(t, startFixture(t, name, nil), all, 30)
	}
	first, err := lent.Measure(t.Context(), s.names[1])
	require.NoError(t, err)
	budget -= *short(&first) / 2 // there is room for two
	*short(&room) = budget
	s.device.most.Store(0)
	f := NewSwapper(s, swap.Limits{Room: room, Queue: 100}, zerolog.Nop())

	const swaps, kills = 9, 12
	var killed atomic.Int64
	deadline := time.Now().Add(5 * time.Minute)
	over := func() bool {
		return s.loads.Load() >= swaps && killed.Load() >= kills || time.Now().After(deadline)
	}
	var wg sync.WaitGroup
	for n := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		wg.Go(func() {
			for !over() {
				name, i := s.names[r.IntN(3)], r.IntN(len(all))
				if err := s.ask(f, name, all[i], want[name][i]); err != nil {
					t.Errorf("seed %d: %s, prompt %d: %v", seed, name, i, err)
				}
			}
		})
	}
	wg.Go(func() { s.kill(f, rand.New(rand.NewPCG(seed, 99)), &killed, over) })
	wg.Wait()
	t.Logf("%d loads, %d deaths, %d of %d KiB", s.loads.Load(), killed.Load(), s.device.most.Load()>>10, budget>>10)
	require.GreaterOrEqual(t, s.loads.Load(), int64(swaps))
	require.Positive(t, s.device.most.Load())
	if devicetest.OnGPU() {
		budget += budget / 20 // law Budget: small matrices end in part of a tile
	}
	most := s.device.most.Load()
	if !devicetest.OnGPU() {
		most += int64(len(h.slabs.Memory()))
	}
	require.LessOrEqual(t, most, budget)
	require.NoError(t, f.Close(t.Context()))
	require.Zero(t, s.device.now.Load(), "all of it was given back")
	require.NoError(t, h.Close(t.Context()))
	dead, unexpected := h.system.Faults()
	require.Zero(t, dead+unexpected, "dead letters, unexpected messages")
}

func (s *fixtures) ask(f *Swapper, name string, prompt []int32, want string) error {
	e, done, err := f.Use(s.t.Context(), name)
	if err != nil {
		return err
	}
	defer done()
	if e.Info.Name != name {
		return fmt.Errorf("it is %s", e.Info.Name)
	}
	stream, err := e.Generate(ask(prompt, 30))
	if err != nil {
		return err
	}
	got, err := trySpelled(stream)
	for _, a := range e.Status() {
		if a.Restarts > 0 && name != s.names[0] {
			err = errors.Join(err, fmt.Errorf("%s restarted", a.ID))
		}
	}
	if err == nil && got != want {
		err = fmt.Errorf("got\n%s\nwant\n%s", got, want)
	}
	return err
}

// kill ends actors of the first model while it is loaded, and of those that all share, each as often as supervision
// forgives.
func (s *fixtures) kill(f *Swapper, r *rand.Rand, killed *atomic.Int64, over func() bool) {
	deaths, shared := map[string]int{}, map[string]int{}
	var of *Engine
	for !over() {
		e, done, err := f.Use(s.t.Context(), s.names[0])
		if err != nil {
			s.t.Error(err)
			return
		}
		if e != of {
			of, deaths = e, map[string]int{}
		}
		victims, counts, most := ofModel, deaths, run.MaxRestarts
		if r.IntN(2) == 0 {
			victims, counts = ofHouse, shared
		}
		victim := victims[r.IntN(len(victims))]
		if victim == "session" {
			victim = fmt.Sprintf("sessions/%d", max(1, int(e.opened.Load())))
		}
		if victim == "model" { // its mailbox has room for one death
			most = 1
		}
		if counts[victim] < most {
			counts[victim]++
			e.crash(victim)
			killed.Add(1)
		}
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		done()
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	}
}
