package actors

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// poison is the token on which a faulty device fails.
const poison = 499

// faulty is a device that fails on steps with the poison in them.
type faulty struct {
	backend.Device
	fail func() error
}

func (d faulty) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return faultyModel{m, d.fail}, err
}

type faultyModel struct {
	backend.Model
	fail func() error
}

func (m faultyModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment == 2 && slices.Contains(s.Tokens, poison) {
		return m.fail()
	}
	return m.Model.Run(w, s)
}

// A request that cannot be computed ends with an error, whether the device reports it or dies of it; the others, which
// shared its steps, get their answers.
func TestPoison(t *testing.T) {
	ways := map[string]func() error{
		"error": func() error { return errors.New("values are not finite") },
		"panic": func() error { panic("index out of range") },
	}
	all := prompts(5)
	for i := range all { // the poison is the last request's alone
		all[i] = slices.DeleteFunc(all[i], func(id int32) bool { return id == poison })
	}
	for name, fail := range ways {
		t.Run(name, func(t *testing.T) {
			want := alone(t, startFixture(t, fixture, nil), all, 20)
			e := startFixture(t, fixture, func(c *Config) { c.Device = faulty{c.Device, fail} })
			var streams []*Stream
			for _, p := range all {
				streams = append(streams, begin(t, e, ask(p, 20)))
			}
			_, err := drain(begin(t, e, ask([]int32{4, poison, 6}, 20)))
			require.ErrorContains(t, err, "this request cannot be computed")
			for i, s := range streams {
				require.Equal(t, want[i], spelled(t, s))
			}
			require.NoError(t, e.Health())
		})
	}
}

// Requests that kill the device wear nobody's patience out but their own.
func TestPoisonDoesNotWearOut(t *testing.T) {
	e := startFixture(t, fixture, func(c *Config) {
		c.Device = faulty{c.Device, func() error { panic("index out of range") }}
	})
	for range run.MaxRestarts + 1 {
		_, err := drain(begin(t, e, ask([]int32{4, poison, 6}, 20)))
		require.ErrorContains(t, err, "this request cannot be computed")
	}
	require.NoError(t, e.Health())
	require.Len(t, collect(t, begin(t, e, plain([]int32{1, 2}, 5))).tokens, 5)
}

// A device that always dies makes the engine unhealthy, and requests end with the reason; nothing hangs.
func TestGivesUp(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := startFixture(t, fixture, nil)
	s := begin(t, e, ask([]int32{1, 2, 3}, 100_000))
	for n := range uint64(run.MaxRestarts) { // one after the other: its mailbox may have no room for all of them at once
		e.crash("kv")
		require.Eventually(t, func() bool { return restarts(e, "kv") == n+1 }, patient, time.Millisecond)
	}
	require.NoError(t, e.Health())
	e.crash("kv")
	// Until it is read, the answer is far from its end.
	require.Eventually(t, func() bool { return e.Health() != nil }, patient, time.Millisecond)
	require.ErrorContains(t, e.Health(), "keeps failing: crashed on demand")
	_, err := drain(s)
	require.ErrorContains(t, err, "keeps failing: crashed on demand")
	_, err = e.Generate(ask([]int32{1}, 1))
	require.ErrorContains(t, err, "keeps failing")
}

// A file that shrinks between opening and loading is an error that names the tensor.
func TestTruncatedWhileLoading(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := gguf.Open(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(len(data)/2)))
	_, err = Start(context.Background(), Config{Model: Model{File: f}, Device: newDevice(t), Log: zerolog.Nop()})
	require.ErrorContains(t, err, `tensor "`)
	require.ErrorContains(t, err, "m.gguf")
}

func TestRequestFaults(t *testing.T) {
	e := startFixture(t, fixture, func(c *Config) { c.Context = 128 })
	tests := []struct {
		name    string
		request Request
		want    string
	}{
		{"empty", plain([]int32{}, 1), "the prompt has no tokens: give it some text"},
		{"unknown token", plain([]int32{1, 512}, 1), "token 1 of the prompt is 512, the vocabulary has 0 to 511"},
		{"too long", plain(make([]int32, 128), 1),
			"the prompt has 128 tokens and the context 128, which leaves no room for an answer: " +
				"shorten it, or start with a larger --ctx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := drain(begin(t, e, test.request))
			var user *refusal.Error
			require.ErrorAs(t, err, &user)
			require.EqualError(t, err, test.want)
		})
	}
	bad := plain([]int32{1}, 1)
	bad.Sampling.TopP = 7
	_, err := e.Generate(bad)
	require.EqualError(t, err, "top_p is 7: want 0 to 1")
	answer := collect(t, begin(t, e, plain([]int32{1}, 1000)))
	require.Equal(t, Length, answer.finish)
	require.Len(t, answer.tokens, 127, "the context is full")
}

// Whatever dies while weights are on their way, they arrive, and are counted once.
func TestSurviveWhileLoading(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	want := alone(t, startFixture(t, fixture, nil), prompts(1), 20)[0]
	for _, victims := range []string{"device/uploader", "device/packer", "device/prefetcher", "reader", "pool",
		"device/prefetcher pool", "device/uploader reader", "device/uploader device/packer",
		"device/prefetcher device/uploader", "reader pool", "device/packer pool"} {
		t.Run(victims, func(t *testing.T) {
			e := startFixture(t, fixture, func(c *Config) { c.Device = slowLoads{c.Device} })
			e.crash("device") // it loads again
			for range 4 {
				time.Sleep(2 * time.Millisecond)
				for _, victim := range strings.Fields(victims) {
					e.crash(victim)
				}
			}
			s := begin(t, e, ask(prompts(1)[0], 20))
			defer time.AfterFunc(patient, s.Close).Stop()
			require.Equal(t, want, spelled(t, s))
			loaded, total := e.Loaded()
			require.Equal(t, total, loaded)
		})
	}
}

// A request that arrives when the sessions are gone is answered, and gives its place back.
func TestOpenWithoutSessions(t *testing.T) {
	e := startFixture(t, fixture, nil)
	_, err := drain(begin(t, e, ask([]int32{1}, 1))) // sessions may still be about to start: now it is there
	require.NoError(t, err)
	require.NoError(t, e.house.system.Stop(e.at("sessions")))
	_, err = drain(begin(t, e, ask([]int32{1}, 1)))
	require.ErrorIs(t, err, ErrClosed)
	left(t, e)
}

// A request that is complete when sessions restarts is not computed again.
func TestCompleteRequestIsNotResumed(t *testing.T) {
	e := startFixture(t, fixture, nil)
	require.NoError(t, e.enter())
	rec := &record{
		id: "done", asked: asked{Request: ask([]int32{1, 2}, 1), opened: now()}, leave: e.exit,
		stream: newStream(streamCapacity), answer: []int32{3},
	}
	rec.end(nil)
	e.wiring.facade.open.Send(&open{rec}) // as sessions does for each of its records
	left(t, e)
	require.Zero(t, e.Steps().Count)
	var ev Event
	require.Equal(t, io.EOF, rec.stream.Next(context.Background(), &ev))
}
