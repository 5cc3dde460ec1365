package actors

import (
	"context"
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
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// tenants are the fixtures of a house of two models of different architectures.
var tenants = []string{fixture, "gemma3"}

// openHouse runs fixtures together.
func openHouse(t *testing.T, d backend.Device, names []string, edit func(*Model)) *House {
	t.Helper()
	c := HouseConfig{Device: d, Log: zerolog.New(zerolog.NewTestWriter(t))}
	for _, name := range names {
		f, err := gguf.Open(fixturePath(t, name))
		require.NoError(t, err)
		m := Model{File: f, KV: backend.KVF32}
		if edit != nil {
			edit(&m)
		}
		c.Models = append(c.Models, m)
	}
	return opened(t, c)
}

// opened is a house that is closed when the test ends, and checked: nothing went astray while it ran.
func opened(t *testing.T, c HouseConfig) *House {
	t.Helper()
	h, err := Open(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, h.Close(ctx))
		dead, unexpected := h.system.Faults()
		require.Zero(t, dead, "dead letters")
		require.Zero(t, unexpected, "unexpected messages")
		for _, a := range h.system.Status() {
			require.Zero(t, a.Refused, "%s refused messages", a.ID)
		}
	})
	return h
}

// TestLittleMemory: where hardly any memory is free, that is said, since no budget helps.
func TestLittleMemory(t *testing.T) {
	h := opened(t, HouseConfig{Device: devicetest.Processor(t, ""), Memory: 1 << 10})
	f, err := gguf.Open(fixturePath(t, tenants[0]))
	require.NoError(t, err)
	_, err = h.Enter(t.Context(), Model{File: f, KV: backend.KVF32})
	require.ErrorContains(t, err, "too few")
	require.ErrorContains(t, err, "only 0.0 MiB of this machine's memory are free for models")
}

// Law RowAlone, for models: two that share a device answer as each does alone, whatever dies of either.
func TestSurviveTwoModels(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(5)
	var want [][]string
	for _, name := range tenants {
		want = append(want, alone(t, startFixture(t, name, nil), all, 40))
	}
	victims := append([]string{"nobody"}, append(ofModel, ofHouse...)...)
	for _, victim := range victims {
		t.Run(victim, func(t *testing.T) {
			h := openHouse(t, newDevice(t), tenants, nil)
			var wg sync.WaitGroup
			for m, e := range h.Engines() {
				for i, p := range all {
					s := begin(t, e, ask(p, 40))
					wg.Go(func() {
						if got, err := trySpelled(s); err != nil || got != want[m][i] {
							t.Errorf("%s, prompt %d: error %v\n got %s\nwant %s", e.Info.Name, i, err, got, want[m][i])
						}
					})
				}
			}
			for range 3 {
				time.Sleep(10 * time.Millisecond) // a moment, whichever
				switch victim {
				case "nobody":
				case "session":
					h.Engines()[0].crash("sessions/2")
				default:
					h.Engines()[0].crash(victim)
				}
			}
			wg.Wait()
		})
	}
}

// Law Survive, over two models with everything at once.
func TestSurviveChaosOfTwo(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	seed := chaosSeed()
	over, done := context.WithCancel(context.Background())
	defer done()
	both := make([]*chaos, len(tenants))
	for m, name := range tenants {
		both[m] = &chaos{seed: seed, prompts: prompts(6), t: t, over: over}
		both[m].learn(t, name)
	}
	h := openHouse(t, slowLoads{newDevice(t)}, tenants, func(m *Model) {
		m.Context, m.Blocks, m.Sequences, m.Rows = 256, 9, 4, 64
	})
	time.AfterFunc(chaosTime(), done)
	var wg sync.WaitGroup
	for m, x := range both {
		x.Engine = h.Engines()[m]
		wg.Go(func() { x.killer(rand.New(rand.NewPCG(seed, uint64(100*m))), ofModel) })
		for n := range 4 {
			wg.Go(func() { x.client(rand.New(rand.NewPCG(seed, uint64(100*m+n+1)))) })
		}
	}
	wg.Go(func() { both[0].killer(rand.New(rand.NewPCG(seed, 999)), ofHouse) })
	wg.Wait()
	for _, x := range both {
		x.idle(t)
		t.Logf("%s: %d requests, %d steps failed", x.Info.Name, x.opened.Load(), x.Snapshot().FailedSteps)
	}
}

// Models of the same name are told apart by a number, and keep the names they are given.
func TestNames(t *testing.T) {
	var specs []*spec
	for _, name := range []string{"a", "a", "b", "a-2", "a"} {
		specs = append(specs, &spec{info: Info{Name: name}})
	}
	distinguish(specs, map[string]bool{})
	got := ""
	for _, s := range specs {
		got += s.info.Name + " "
	}
	require.Equal(t, "a a-2 b a-2-2 a-3 ", got)
	paths := map[string]bool{}
	for _, name := range []string{"a b", "a_b", "a/b", "a%20b", "a%2Fb"} {
		require.NotContains(t, pathOf(name), "/")
		paths[pathOf(name)] = true
	}
	require.Len(t, paths, 5, "different names have different paths")
}

// A model that dies for good takes nobody with it.
func TestOneModelGivesUp(t *testing.T) {
	h := openHouse(t, newDevice(t), tenants, nil)
	first, second := h.Engines()[0], h.Engines()[1]
	want := spelled(t, begin(t, second, ask([]int32{5, 6, 7}, 20)))
	require.Eventually(t, func() bool {
		if first.Health() == nil {
			first.crash("kv")
		}
		return first.Health() != nil
	}, time.Minute, 20*time.Millisecond)
	_, err := first.Generate(ask([]int32{1}, 1))
	require.ErrorContains(t, err, "keeps failing")
	require.NoError(t, second.Health())
	require.NoError(t, h.Health())
	require.Equal(t, want, spelled(t, begin(t, second, ask([]int32{5, 6, 7}, 20))))
}

// What was asked for too much is refused before anything starts, and every file is closed.
func TestHouseRefuses(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var models []Model
	for range 2 {
		f, err := gguf.Open(fixturePath(t, fixture))
		require.NoError(t, err)
		models = append(models, Model{File: f})
	}
	models[1].Context = 1 << 40
	_, err := Open(context.Background(), HouseConfig{Models: models, Device: newDevice(t), Log: zerolog.Nop()})
	require.ErrorContains(t, err, fmt.Sprintf("a context of %d tokens needs a KV cache of", 1<<40))
}

// Two models that always have work get about the same time of the device, however long their steps are.
func TestTurnsByCost(t *testing.T) {
	pauses := []time.Duration{8 * time.Millisecond, 2 * time.Millisecond}
	h := openHouse(t, &uneven{pauses: pauses}, []string{fixture, fixture}, func(m *Model) {
		m.Context, m.Blocks = 1<<20, 1<<12
	})
	for _, e := range h.Engines() {
		s := begin(t, e, plain([]int32{5, 6, 7}, 1<<17))
		defer s.Close()
		go func() {
			var ev Event
			for s.Next(context.Background(), &ev) == nil {
			}
		}()
	}
	slow, fast := h.Engines()[0], h.Engines()[1]
	share := 0.0
	for range 5 { // a busy machine may keep a client from reading, whose model has no work then
		slowBefore, fastBefore := slow.Steps(), fast.Steps()
		require.Eventually(t, func() bool { return slow.Steps().Count >= slowBefore.Count+80 }, patient, time.Millisecond)
		slowHad, fastHad := slow.Steps().Sub(slowBefore), fast.Steps().Sub(fastBefore)
		t.Logf("%d steps of %v, %d of %v, each and more: %v, %v", slowHad.Count, pauses[0], fastHad.Count, pauses[1],
			slowHad.Compute, fastHad.Compute)
		if share = slowHad.Compute.Seconds() / fastHad.Compute.Seconds(); 0.5 < share && share < 2 {
			break
		}
	}
	require.Greater(t, share, 0.5)
	require.Less(t, share, 2.0, "in turns it would be 4, by cost it is 1")
}

// uneven compiles models whose steps take different times, in order. Models enter a house side by side.
type uneven struct {
	nullDevice
	pauses   []time.Duration
	compiled atomic.Int32
}

func (d *uneven) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.nullDevice.Compile(p, c)
	return unevenModel{m, d.pauses[d.compiled.Add(1)-1]}, err
}

type unevenModel struct {
	backend.Model
	pause time.Duration
}

func (m unevenModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment == 0 {
		time.Sleep(m.pause)
	}
	return m.Model.Run(w, s)
}

// A request that finds no sessions is refused, unless these only stop to be started again: it is among the records
// then.
func TestOpenRefused(t *testing.T) {
	rec := &record{stream: newStream(1), leave: func() {}}
	all := newRecords("sessions")
	all.put(rec)
	all.moving.Store(true)
	(&open{rec}).Refused()
	require.False(t, rec.life.past(lifeEnded))
	all.moving.Store(false)
	all.restarting.Store(true) // the model does: whatever sessions has said meanwhile
	(&open{rec}).Refused()
	require.False(t, rec.life.past(lifeEnded))
	all.restarting.Store(false)
	(&open{rec}).Refused()
	require.True(t, rec.life.past(lifeEnded))
}

// What comes after all were told to hang up is refused, also by sessions that started again since.
func TestNothingOpensAfterHangUp(t *testing.T) {
	e := startFixture(t, fixture, nil)
	e.wiring.hangUpAll.Send(&hangUpAll{ErrClosed})
	_, err := drain(begin(t, e, ask([]int32{1}, 1)))
	require.ErrorIs(t, err, ErrClosed)
	e.crash("model")
	_, err = drain(begin(t, e, ask([]int32{1}, 1)))
	require.ErrorIs(t, err, ErrClosed)
	left(t, e)
}
