package answer

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/storage/answerfiles"
)

// inTurns has functions, each of which takes a lock, have it in their order, and whoever takes it twice come last with
// the second: who has waited for a millisecond makes a mutex go round in the order in which it is asked for.
func inTurns(mu *sync.Mutex, functions ...func()) {
	const wait = 2 * time.Millisecond
	var all sync.WaitGroup
	defer all.Wait()
	touch := func() {
		mu.Lock()
		defer mu.Unlock()
	}
	mu.Lock()
	all.Go(touch)
	time.Sleep(wait)
	mu.Unlock()
	mu.Lock() // sooner than who waits, and whose patience ends by it
	for _, f := range append(functions, touch) {
		time.Sleep(wait)
		all.Go(f)
	}
	time.Sleep(wait)
	mu.Unlock()
}

// Whoever goes on with an answer for nobody ends no run of a client, also not of one that comes after a look for it.
// A client that comes ends the run that is there.
func TestNobodyEndsNoClient(t *testing.T) {
	folder, err := answerfiles.OpenFolder(filepath.Join(t.TempDir(), "answers"), 1<<20, time.Now())
	require.NoError(t, err)
	defer folder.Close()
	s := &Service{lasting: lasting{runs: map[answerKey]*run{}, past: map[*exchange.Exchange]*past{}}}
	s.Last(actors.KeepAnswers(folder, zerolog.Nop()), nil)
	defer s.lasting.answers.Close()
	begun := func() *exchange.Exchange {
		base, end := context.WithCancel(t.Context())
		t.Cleanup(end)
		x := exchange.Begin(base, &fasthttp.RequestCtx{}, "id", time.Minute, zerolog.Nop(), func(*exchange.Exchange, int) {})
		x.Client = "a client"
		return x
	}
	for range 5 {
		client := begun()
		r := &run{in: &s.lasting, x: client, key: answerKey{client.Client, client.ID}, done: make(chan struct{})}
		context.AfterFunc(client.Context, func() { close(r.done) })
		inTurns(&s.lasting.mu, func() { s.Again(begun(), client.ID, nil) }, func() { s.lasting.enter(r) })
		require.NoError(t, context.Cause(client.Context), "its own connection is there")
		require.Empty(t, s.Again(begun(), client.ID, nil))
		require.NoError(t, context.Cause(client.Context))
		s.Again(begun(), client.ID, []int{3})
		require.ErrorIs(t, context.Cause(client.Context), exchange.ErrTaken)
		delete(s.lasting.runs, r.key)
	}
}
