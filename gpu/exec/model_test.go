package exec

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// played is a card that is played, and the kinds of kernels that it was given.
type played struct {
	*null.Device
	mu    sync.Mutex
	kinds map[string]bool
}

func (p *played) Kernels() driver.Kernels { return noting{p.Device.Kernels(), p} }

// noting notes kinds of kernels.
type noting struct {
	driver.Kernels
	of *played
}

func (n noting) Launch(r driver.Recording, l kernel.Launch) error {
	n.of.mu.Lock()
	n.of.kinds[fmt.Sprintf("%T", l)] = true
	n.of.mu.Unlock()
	return n.Kernels.Launch(r, l)
}

// onCard is a small model on a card that is played; ahead compiles its kernels before they are needed.
func onCard(t *testing.T, ahead bool) (*model, *played, *backendtest.Model) {
	t.Helper()
	p := &played{Device: null.Open(null.Options{}), kinds: map[string]bool{}}
	d, err := New(func() (driver.Device, error) { return p, nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	d.ahead = ahead
	m, err := backendtest.Small("llama", quant.Q8_0)
	require.NoError(t, err)
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 2, MaxWanted: 2, Flight: 2}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	return x.(*model), p, m
}

// step computes two rows of a sequence, and returns their logits.
func step(t *testing.T, x *model, m *backendtest.Model, draws ...backend.Draw) []float32 {
	t.Helper()
	s := x.Steps()[0]
	s.Tokens, s.Wanted, s.Draws = []int32{1, 97}, []int32{0, 1}, draws
	s.Spans = []backend.Span{{Rows: 2, Tables: backendtest.Tables(m.Program, []int32{2, 0, 1})}}
	for i := range m.Segments {
		require.NoError(t, backend.Enqueue(x, i, s))
	}
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	require.NoError(t, <-done)
	return append([]float32(nil), s.Logits[:2*m.OutputWidth()]...)
}

// TestSubmissions: however many submissions a step is, the bits are the same; how many there are follows from how fast
// the device was seen to be.
func TestSubmissions(t *testing.T) {
	x, _, m := onCard(t, false)
	d, segments := x.device, len(m.Segments)
	want := step(t, x, m)
	submits := func() uint64 {
		before := d.queue.last
		require.Equal(t, want, step(t, x, m))
		return d.queue.last - before
	}
	require.Equal(t, uint64(1), submits(), "a device without a bound")
	require.Zero(t, d.speed.few.Load())

	d.longest = longestSubmission
	require.Equal(t, uint64(segments), submits(), "one that was not seen at work")
	require.Positive(t, math.Float64frombits(d.speed.few.Load()))
	require.Zero(t, d.speed.many.Load(), "steps of many rows are others")

	s := x.ring.entries[0]
	s.step.Spans = []backend.Span{{Rows: 2, Pos: 10}}
	s.countSeen()
	require.Equal(t, 11+12.0, s.clock.sees, "each row sees itself, and what is before")
	s.step.Spans = []backend.Span{{Rows: 2}}
	s.countSeen()
	_, all := x.submissions(s, 0, segments-1)
	for _, c := range []struct {
		takes       time.Duration
		least, most uint64 // a large segment may be as much as two submissions
	}{
		{longestSubmission / 100, 1, 1}, {longestSubmission, 1, 1}, {3 * longestSubmission / 2, 2, 2},
		{3 * longestSubmission, 3, 4}, {time.Hour, uint64(segments), uint64(segments)},
	} {
		d.speed.few.Store(math.Float64bits(all / c.takes.Seconds()))
		n := submits()
		require.True(t, c.least <= n && n <= c.most, "%d submissions for %s", n, c.takes)
		require.NotEqual(t, all/c.takes.Seconds(), math.Float64frombits(d.speed.few.Load()), "what was seen last counts")
	}
	require.Equal(t, &d.speed.few, d.speed.of(fewRows-1))
	require.Equal(t, &d.speed.many, d.speed.of(fewRows))
}

// TestAhead: the kernels of a usual step are compiled before it comes.
func TestAhead(t *testing.T) {
	x, p, m := onCard(t, true)
	x.ahead.Wait()
	p.mu.Lock()
	before := len(p.kinds)
	p.mu.Unlock()
	require.Greater(t, before, 5)
	step(t, x, m, backend.Draw{TopP: 1}, backend.Draw{TopP: 1})
	require.Len(t, p.kinds, before)
}
