package null_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// counted is a card that counts its own memory, and may refuse more.
type counted struct {
	*null.Device
	bytes, most uint64
	taken       int // how often
}

func (c *counted) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	if m != driver.Local {
		return c.Device.Allocate(m, size)
	}
	if c.most > 0 && c.bytes+size > c.most {
		return nil, driver.ErrScarce
	}
	c.bytes, c.taken = c.bytes+size, c.taken+1
	return c.Device.Allocate(m, size)
}

func (c *counted) Free(all ...*driver.Buffer) {
	for _, b := range all {
		if b != nil && b.Bytes == nil {
			c.bytes -= b.Size
		}
	}
	c.Device.Free(all...)
}

// adapted is a model that takes adapters, on a counted card.
type adapted struct {
	t    *testing.T
	card *counted
	m    *backendtest.Model
	x    backend.Model
}

// newAdapted compiles one whose adapters have a bound.
func newAdapted(t *testing.T, most int64) *adapted {
	m, err := backendtest.Adaptable("llama")
	require.NoError(t, err)
	card := &counted{Device: null.Open(null.Options{Order: 4})}
	d, err := exec.New(func() (driver.Device, error) { return card, nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Adapters: most,
		Blocks: backendtest.Blocks(m.Program, 4), MaxRows: 8, MaxWanted: 8, Flight: 2}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	return &adapted{t, card, m, x}
}

// random is an adapter of a seed.
func (a *adapted) random(seed uint64, rank int) *ir.Adapter {
	return backendtest.RandomAdapter(rand.New(rand.NewPCG(seed, 1)), a.m.Program, rank, 1)
}

// fill has a step of the ring have a row for each adapter.
func (a *adapted) fill(s *backend.Step, all ...*ir.Adapter) {
	s.Tokens, s.Spans, s.Wanted = nil, nil, nil
	for i, x := range all {
		s.Tokens, s.Wanted = append(s.Tokens, 7), append(s.Wanted, int32(i))
		s.Spans = append(s.Spans, backend.Span{Row: i, Rows: 1, Tables: backendtest.Tables(a.m.Program, []int32{int32(i)}),
			Adapters: []ir.Applied{{Adapter: x, Scale: 1}}})
	}
}

// run computes a step, with others between its beginning and its end.
func (a *adapted) run(s *backend.Step, between func()) ([]float32, error) {
	var err error
	for i := range a.m.Segments {
		if err = backend.Enqueue(a.x, i, s); err != nil {
			break
		}
		if i == 0 && between != nil {
			between()
		}
	}
	done := make(chan error, 1)
	a.x.Finish(s, func(err error) { done <- err })
	if end := <-done; err == nil {
		err = end
	}
	return append([]float32(nil), s.Logits[:len(s.Wanted)*a.m.OutputWidth()]...), err
}

// logits are those of rows with adapters.
func (a *adapted) logits(all ...*ir.Adapter) []float32 {
	a.t.Helper()
	s := a.x.Steps()[0]
	a.fill(s, all...)
	got, err := a.run(s, nil)
	require.NoError(a.t, err)
	return got
}

// TestAdaptersLeave: a card holds as many adapters as it may, brings each once as long as it stays, and those of a step
// stay whatever the bound is. One that left has the same bits when it is back.
func TestAdaptersLeave(t *testing.T) {
	free := newAdapted(t, 0)
	var all []*ir.Adapter
	var want [][]float32
	before := free.card.bytes
	for seed := range uint64(4) {
		all = append(all, free.random(seed, 8))
		want = append(want, free.logits(all[seed]))
	}
	each := (free.card.bytes - before) / 4
	require.Positive(t, each)
	require.NotEqual(t, want[0], want[1])

	a := newAdapted(t, int64(2*each))
	before, bring := a.card.bytes, a.card.taken
	for _, i := range []int{0, 1, 1, 0, 2, 0, 3, 0} { // 1 leaves for 2, 2 for 3
		require.Equal(t, want[i], a.logits(all[i]), i)
		require.LessOrEqual(t, a.card.bytes-before, 2*each)
	}
	require.Equal(t, 4, a.card.taken-bring, "each was brought once")
	n := a.m.OutputWidth()
	got := a.logits(all...)
	for i := range all {
		require.Equal(t, want[i], got[i*n:(i+1)*n], i)
	}
	require.Equal(t, 4*each, a.card.bytes-before, "those of a step stay")
	a.logits(a.random(9, 8))
	require.LessOrEqual(t, a.card.bytes-before, 2*each)
}

// TestAdaptersForgotten: what the program has forgotten leaves for the next adapter, and scarce memory is made by those
// that no step needs.
func TestAdaptersForgotten(t *testing.T) {
	a := newAdapted(t, 0)
	before := a.card.bytes
	kept := a.random(1, 8)
	want := a.logits(kept, a.random(2, 8))
	each := (a.card.bytes - before) / 2
	a.fill(a.x.Steps()[0], kept) // no step names it any more
	runtime.GC()
	a.logits(a.random(3, 8))
	require.Equal(t, 2*each, a.card.bytes-before)
	a.card.most = a.card.bytes
	require.Equal(t, want[:a.m.OutputWidth()], a.logits(kept)[:a.m.OutputWidth()])
	a.logits(a.random(4, 8))
	require.LessOrEqual(t, a.card.bytes, a.card.most)
}

// TestAdaptersStayUnderway: an adapter does not leave while a step that has begun may still submit.
func TestAdaptersStayUnderway(t *testing.T) {
	one := newAdapted(t, 1)
	x, y := one.random(1, 8), one.random(2, 8)
	want := one.logits(x)
	steps := one.x.Steps()
	one.fill(steps[0], x)
	before := one.card.bytes
	got, err := one.run(steps[0], func() {
		one.fill(steps[1], y)
		require.NoError(t, backend.Enqueue(one.x, 0, steps[1]))
		require.Greater(t, one.card.bytes, before, "both are there")
		done := make(chan error, 1)
		one.x.Finish(steps[1], func(err error) { done <- err })
		<-done
	})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestAdaptersOfManyRanks: a sequence whose adapters have more ranks than kernels have room for is refused, and the
// next step is computed.
func TestAdaptersOfManyRanks(t *testing.T) {
	a := newAdapted(t, 0)
	s, wide := a.x.Steps()[0], a.random(1, 600)
	a.fill(s, wide)
	s.Spans[0].Adapters = append(s.Spans[0].Adapters, ir.Applied{Adapter: a.random(2, 500), Scale: 1})
	_, err := a.run(s, nil)
	require.ErrorContains(t, err, "ranks of 1120 in all, a card takes 1024")
	a.logits(wide)
}

// TestAdaptersOfWantedRows: the head adds what adapters of the wanted rows make, whichever rows they are.
func TestAdaptersOfWantedRows(t *testing.T) {
	a := newAdapted(t, 0)
	x, y := a.random(1, 8), a.random(2, 8)
	want, s := a.logits(x, y), a.x.Steps()[0]
	a.fill(s, x, y)
	s.Wanted = []int32{1}
	got, err := a.run(s, nil)
	require.NoError(t, err)
	require.Equal(t, want[a.m.OutputWidth():], got)
}
