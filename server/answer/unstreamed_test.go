package answer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/stages/sample"
)

// account opens one in a stock, for a client; end is the end of its exchange.
func account(t *testing.T, s *stock, client string) (k *unstreamed, end context.CancelFunc) {
	base, end := context.WithCancel(t.Context())
	x := exchange.Begin(base, &fasthttp.RequestCtx{}, "id", time.Minute, zerolog.Nop(), func(*exchange.Exchange, int) {})
	x.Client = client
	return keep(s, x), end
}

// TestKept: little costs nothing, much is paid for in slabs, and all comes back with the end.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(4*keptSlab, 10)
		a, end := account(t, s, "a")
		for range keptFree {
			require.NoError(t, a.add(t.Context(), 1))
		}
		require.Zero(t, s.pool.Used())
		require.NoError(t, a.add(t.Context(), 1))
		require.EqualValues(t, keptSlab, s.pool.Used())
		require.NoError(t, a.add(t.Context(), keptSlab))
		require.EqualValues(t, 2*keptSlab, s.pool.Used())
		require.NoError(t, a.add(t.Context(), 3*keptSlab-1))
		require.EqualValues(t, 4*keptSlab, s.pool.Used())
		require.ErrorIs(t, a.add(t.Context(), 1), errTooMuch, "it has all there is")

		b, endB := account(t, s, "b")
		require.NoError(t, b.add(t.Context(), keptFree), "what is little is free")
		began := time.Now()
		require.ErrorIs(t, b.add(t.Context(), 1), errKept)
		require.Equal(t, keptWait, time.Since(began))
		time.AfterFunc(time.Second, end)
		began = time.Now()
		require.NoError(t, b.add(t.Context(), 1))
		require.Equal(t, time.Second, time.Since(began), "it gets what another one gave back")
		require.EqualValues(t, keptSlab, s.pool.Used())
		require.Error(t, a.add(t.Context(), 1<<20), "it has ended")
		endB()
		synctest.Wait()
		require.Zero(t, s.pool.Used())
		require.Empty(t, s.holders)
		time.Sleep(2 * look)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.False(t, s.watching)
	})
}

// TestKeptEndsWhileItWaits: who leaves while it waits has nothing.
func TestKeptEndsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(keptSlab, 10)
		a, endA := account(t, s, "a")
		require.NoError(t, a.add(t.Context(), keptSlab))
		b, endB := account(t, s, "b")
		failed := make(chan error, 1)
		go func() { failed <- b.add(b.x.Context, keptSlab) }()
		synctest.Wait()
		require.Equal(t, 1, s.pool.Waiting())
		endB()
		require.Error(t, <-failed)
		endA()
		synctest.Wait()
		require.Zero(t, s.pool.Used())
		require.Zero(t, s.pool.Waiting())
		time.Sleep(2 * look)
	})
}

// TestWeight: what an event leaves in memory is paid for.
func TestWeight(t *testing.T) {
	v := miniVocab(t)
	for _, probs := range []bool{false, true} {
		c := &Choice{vocab: v, Probs: probs}
		paid := int64(0)
		for i := range 5000 {
			c.event = actors.Event{HasToken: true, Token: 100, Text: []byte(" word"), Top: make([]sample.TokenProb, i%21)}
			c.add(&c.event)
			paid += weight(&c.event, c.Probs)
		}
		kept := int64(cap(c.New.Parts[0].Text)) + int64(cap(c.New.Probs))*int64(unsafe.Sizeof(Prob{}))
		for _, p := range c.New.Probs {
			kept += int64(cap(p.Top)) * int64(unsafe.Sizeof(sample.TokenProb{}))
		}
		require.LessOrEqual(t, kept, paid)
		require.Greater(t, 2*kept, paid)
	}
}

// begun is an encoder that begins.
type begun struct{ Encoder }

func (begun) Begin(dst []byte, _ *Choice) []byte { return dst }

// TestRepeatedStreamsArePaid: what the end of a stream repeats is paid for as it comes, like an answer that is none.
func TestRepeatedStreamsArePaid(t *testing.T) {
	k, end := account(t, newStock(keptSlab, 10), "a")
	defer end()
	c := &Choice{Finish: actors.Stopped}
	c.event.Text = make([]byte, keptSlab)
	require.ErrorIs(t, follow(t.Context(), nil, begun{}, c, k), errTooMuch)
}
