package actors

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// counted is a device that counts what is compiled on it and not closed.
type counted struct {
	backend.Device
	models atomic.Int64
	bytes  atomic.Int64
}

func (d *counted) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	x := m.Memory()
	n := x.Weights + x.KV + x.Scratch + x.Host
	d.models.Add(1)
	d.bytes.Add(n)
	return &countedModel{m, d, n}, nil
}

type countedModel struct {
	backend.Model
	of    *counted
	bytes int64
}

func (m *countedModel) Close() error {
	defer m.of.models.Add(-1)
	defer m.of.bytes.Add(-m.bytes)
	return m.Model.Close()
}

// TestHere: a model is there when its actors are, so that nobody who sends them something finds them missing. Its actor
// starts them at a time of its own, whatever else has been done for the model.
func TestHere(t *testing.T) {
	s, here, busy := run.NewSystem(zerolog.Nop()), make(chan struct{}), make(chan struct{})
	t.Cleanup(s.Shutdown)
	graph, at := run.NewGraph(s), run.Place{Kind: "child", Address: s.Address("model/child")}
	restarting := make(chan struct{})
	m := &modelActor{system: s, graph: graph, records: newRecords("model/sessions"), here: func() { close(here) }}
	m.children = func() []run.Child {
		<-busy
		select {
		case <-here:
			t.Error("nobody is there")
		default:
		}
		return []run.Child{{At: at, Produce: func(n int) actor.Actor {
			return actor.ReceiveFunc(func(c actor.Context) {
				if _, ok := c.Message().(*actor.Restarting); ok {
					close(restarting)
				}
				s.Lifecycle(c)
			})
		}}}
	}
	gaveUp := func(*actor.PID, any) { t.Error("given up") }
	require.NoError(t, s.Start(run.Spec{Name: "model", Capacity: 9, Children: s.Supervisor(gaveUp),
		Produce: func(int) actor.Actor { return m }}))
	close(busy)
	<-here
	s.Crash(at.Address)
	<-restarting
	require.NoError(t, s.Stop(s.Address("model")))
}

// modelOf is a fixture as a house takes it in.
func modelOf(t testing.TB, name string) Model {
	f, err := gguf.Open(fixturePath(t, name))
	require.NoError(t, err)
	return Model{Name: name, File: f, KV: backend.KVF32, Context: 256, Blocks: 9, Sequences: 4, Rows: 64}
}

// emptyHouse is one that models enter.
func emptyHouse(t *testing.T, d backend.Device) *House {
	t.Helper()
	return opened(t, HouseConfig{Device: d, Log: zerolog.New(zerolog.NewTestWriter(t))})
}

// answers asks an engine for one prompt after another until stopped, and compares each answer with those of an engine
// alone.
type answers struct {
	stop func() // returns when the last answer has come
	n    atomic.Int64
}

func answering(t *testing.T, e *Engine, all [][]int32, want []string) *answers {
	over, ended := make(chan struct{}), make(chan struct{})
	a := &answers{}
	a.stop = sync.OnceFunc(func() {
		close(over)
		<-ended
	})
	t.Cleanup(a.stop)
	go func() {
		defer close(ended)
		for i := 0; ; i = (i + 1) % len(all) {
			select {
			case <-over:
				return
			default:
			}
			s, err := e.Generate(ask(all[i], 30))
			if err != nil {
				t.Errorf("%s: %v", e.Info.Name, err)
				return
			}
			if got, err := trySpelled(s); err != nil || got != want[i] {
				t.Errorf("%s, prompt %d: error %v\n got %s\nwant %s", e.Info.Name, i, err, got, want[i])
				return
			}
			a.n.Add(1)
		}
	}()
	return a
}

// more waits until so many more answers have come.
func (a *answers) more(t *testing.T, n int64) {
	before := a.n.Load()
	require.Eventually(t, func() bool { return t.Failed() || a.n.Load() >= before+n }, patient, time.Millisecond)
}

// Models enter and leave a house that answers: each time the budget, the device and the tree of actors are what they
// were, and the answers of the one that stays are the same to the bit.
func TestEnterAndLeave(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(4)
	want := map[string][]string{}
	for _, name := range tenants {
		want[name] = alone(t, startFixture(t, name, nil), all, 30)
	}
	d := &counted{Device: newDevice(t)}
	h := emptyHouse(t, d)
	require.Empty(t, h.Engines())
	first, err := h.Enter(t.Context(), modelOf(t, tenants[0]))
	require.NoError(t, err)
	a := answering(t, first, all, want[tenants[0]])
	a.more(t, 1)
	left, bytes, status, slabs := h.left(), d.bytes.Load(), lasting(h), 0
	for round := range 20 {
		second, err := h.Enter(t.Context(), modelOf(t, tenants[1]))
		require.NoError(t, err)
		require.Equal(t, tenants[1], second.Info.Name)
		require.Less(t, slices.Compare(h.left(), left), 0, "one device has less, and none has more")
		require.Equal(t, int64(2), d.models.Load())
		i := round % len(all)
		require.Equal(t, want[tenants[1]][i], spelled(t, begin(t, second, ask(all[i], 30))))
		s := begin(t, second, plain(all[0], 200)) // is cut
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, second.Leave(cut), context.Canceled)
		_, err = drain(s)
		require.ErrorIs(t, err, ErrClosed)
		_, err = second.Generate(ask(all[0], 1))
		require.ErrorIs(t, err, ErrClosed)
		require.Equal(t, int64(1), d.models.Load())
		require.Equal(t, bytes, d.bytes.Load())
		require.Equal(t, left, h.left())
		require.Len(t, h.Engines(), 1)
		require.Equal(t, status, lasting(h))
		if round == 1 {
			slabs = len(h.slabs.Memory())
		}
	}
	require.Len(t, h.slabs.Memory(), slabs)
	a.more(t, 1)
	a.stop()
}

// lasting are the actors of a house that are no request's.
func lasting(h *House) (all []string) {
	for _, a := range h.system.Status() {
		if !strings.Contains(a.ID, "/sessions/") {
			all = append(all, a.ID)
		}
	}
	return all
}

// Law Survive, of a house: whatever of a model dies, the answers of another one are the same to the bit, and nothing of
// it restarts. What dies too often ends that model alone.
func TestSurviveOthers(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(4)
	want := map[string][]string{}
	for _, name := range tenants {
		want[name] = alone(t, startFixture(t, name, nil), all, 30)
	}
	d := &counted{Device: slowLoads{newDevice(t)}}
	h := emptyHouse(t, d)
	first, err := h.Enter(t.Context(), modelOf(t, tenants[0]))
	require.NoError(t, err)
	a := answering(t, first, all, want[tenants[0]])
	r := rand.New(rand.NewPCG(chaosSeed(), 7))
	for _, victim := range ofModel {
		t.Run(victim, func(t *testing.T) {
			second, err := h.Enter(t.Context(), modelOf(t, tenants[1]))
			require.NoError(t, err)
			i := r.IntN(len(all))
			s := begin(t, second, ask(all[i], 30))
			if victim == "session" {
				victim = "sessions/1"
			}
			second.crash(victim)
			require.Equal(t, want[tenants[1]][i], spelled(t, s))
			if victim != "sessions/1" {
				for range run.MaxRestarts {
					second.crash(victim)
					if victim == "model" { // its mailbox has room for one death
						require.Eventually(t, func() bool { return second.Health() != nil || depth(second, victim) == 0 },
							patient, time.Millisecond)
					}
				}
				require.Eventually(t, func() bool { return second.Health() != nil }, patient, time.Millisecond)
			}
			require.NoError(t, first.Health())
			require.NoError(t, h.Health())
			require.NoError(t, second.Leave(t.Context()))
			a.more(t, 1)
		})
	}
	for _, x := range first.Status() {
		require.Zero(t, x.Restarts, x.ID)
	}
	require.Equal(t, int64(1), d.models.Load())
}

// depth is how many messages wait for an actor.
func depth(e *Engine, name string) int64 {
	for _, a := range e.house.system.Status() {
		if a.ID == e.at(name).Id {
			return a.Depth
		}
	}
	return 0
}

// slowCloses is a device whose models take until goOn to close, once it is armed.
type slowCloses struct {
	backend.Device
	armed       atomic.Bool
	begun, goOn chan struct{}
}

func (d *slowCloses) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	return &slowClose{m, d}, nil
}

type slowClose struct {
	backend.Model
	of *slowCloses
}

func (m *slowClose) Close() error {
	if m.of.armed.CompareAndSwap(true, false) {
		close(m.of.begun)
		<-m.of.goOn
	}
	return m.Model.Close()
}

// A device that dies while a model is being closed restarts once: the model is gone, and the other one answers.
func TestSurviveWhileLeaving(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	want := alone(t, startFixture(t, tenants[0], nil), prompts(1), 30)
	d := &slowCloses{Device: newDevice(t), begun: make(chan struct{}), goOn: make(chan struct{})}
	h := emptyHouse(t, d)
	first, err := h.Enter(t.Context(), modelOf(t, tenants[0]))
	require.NoError(t, err)
	second, err := h.Enter(t.Context(), modelOf(t, tenants[1]))
	require.NoError(t, err)
	d.armed.Store(true)
	left := make(chan error, 1)
	go func() { left <- second.Leave(t.Context()) }()
	<-d.begun
	first.crash("device")
	close(d.goOn)
	require.NoError(t, <-left)
	require.Equal(t, want[0], spelled(t, begin(t, first, ask(prompts(1)[0], 30))))
	require.EqualValues(t, 1, restarts(first, "device"))
	require.Len(t, h.Engines(), 1)
}

// What dies while a model is on its way in, or out, and is not its own, brings it all the same.
func TestSurviveWhileEntering(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(2)
	want := map[string][]string{}
	for _, name := range tenants {
		want[name] = alone(t, startFixture(t, name, nil), all, 30)
	}
	h := emptyHouse(t, &counted{Device: slowLoads{newDevice(t)}})
	first, err := h.Enter(t.Context(), modelOf(t, tenants[0]))
	require.NoError(t, err)
	a := answering(t, first, all, want[tenants[0]])
	for _, victim := range ofHouse {
		t.Run(victim, func(t *testing.T) {
			over := make(chan struct{})
			var killing sync.WaitGroup
			killing.Go(func() {
				for range 4 {
					first.crash(victim)
					select {
					case <-over:
						return
					case <-time.After(3 * time.Millisecond): // a moment, whichever
					}
				}
			})
			second, err := h.Enter(t.Context(), modelOf(t, tenants[1]))
			close(over)
			killing.Wait()
			require.NoError(t, err)
			require.Equal(t, want[tenants[1]][0], spelled(t, begin(t, second, ask(all[0], 30))))
			first.crash(victim)
			require.NoError(t, second.Leave(t.Context()))
			a.more(t, 1)
		})
	}
}

// TestOverOfNobody: a step that flew when the device died may end when its model has left, since what closes a model
// waits for its steps, and their ends come after the device has started again.
func TestOverOfNobody(t *testing.T) {
	d, m := &device{kept: &deviceMemory{guests: make([]*guest, 1)}}, &step{}
	d.kept.working.Store(m)
	require.NotPanics(t, func() { d.over(m) })
	require.Nil(t, d.kept.working.Load())
	require.True(t, m.over)
}
