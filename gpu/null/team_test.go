package null_test

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// team is cards that compute each layer together.
func team(t testing.TB, cards int, o null.Options) *exec.Team {
	t.Helper()
	var all []*exec.Device
	for range cards {
		d, err := exec.New(func() (driver.Device, error) { return null.Open(o), nil })
		require.NoError(t, err)
		all = append(all, d)
	}
	d, err := exec.NewTeam(all...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestTeams: dense models on teams are near the oracle, and keep laws RowAlone, ChunkFree and Recompute by bits.
func TestTeams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cards int
		null.Options
	}{
		{"two", 2, null.Options{Order: 1, Fused: true, Integers: true}},
		{"three that have nothing", 3, null.Options{Order: 2, Scarce: true}},
	} {
		if c.cards > 2 && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			backendtest.Teamed(t, team(t, c.cards, c.Options), ref.New(), []quant.Type{quant.Q8_0, quant.F32})
		})
	}
}

// TestExchangeOrder: cards have the sum of their parts in the order of their numbers, and then what that is added to.
func TestExchangeOrder(t *testing.T) {
	parts := [][]float32{{1e8, 3, 1, 0}, {-1e8, 1e8, 1e-8, 1}, {0.5, -1e8, 1e-8, 2}}
	residual := []float32{0.25, 1, -1, 3}
	var want []float32
	for i, r := range residual {
		sum := parts[0][i]
		for _, p := range parts[1:] {
			sum += p[i]
		}
		want = append(want, sum+r)
	}
	for card, got := range exchanged(t, parts, residual) {
		require.Equal(t, want, got, "card %d", card)
	}
}

// exchanged is what each card has after an exchange of their parts.
func exchanged(t *testing.T, parts [][]float32, residual []float32) (all [][]float32) {
	t.Helper()
	n, count := len(residual), len(parts)
	cards, boxes, lines := make([]*null.Device, count), make([]*driver.Buffer, count), make([]driver.Timeline, count)
	var memory []*driver.Buffer
	for i := range parts {
		var err error
		cards[i] = null.Open(null.Options{})
		t.Cleanup(func() { require.NoError(t, cards[i].Close(true)) })
		lines[i], err = cards[i].Timeline()
		require.NoError(t, err)
		boxes[i], err = cards[i].Allocate(driver.Staging, (&kernel.Box{Room: 4 * n, At: make([]uint64, len(parts))}).Bytes())
		require.NoError(t, err)
		b, err := cards[i].Allocate(driver.Staging, uint64(4*(3*n+4)))
		require.NoError(t, err)
		clear(b.Bytes)
		copy(floats(b), append(append([]float32(nil), parts[i]...), residual...))
		b.Bytes[4*3*n], b.Bytes[4*(3*n+1)] = 1, 1 // the exchange's number, and one row
		memory = append(memory, b)
	}
	for i, c := range cards {
		box := &kernel.Box{Member: i, Room: 4 * n, At: make([]uint64, len(parts))}
		for j := range cards {
			b := boxes[j]
			if i != j {
				var err error
				b, err = c.Reach(cards[j], b)
				require.NoError(t, err)
			}
			box.At[j] = b.Address
		}
		at := memory[i].Address
		r, err := c.Record(driver.Compute, 0)
		require.NoError(t, err)
		require.NoError(t, c.Kernels().Launch(r, &kernel.Exchange{Box: box, First: at + uint64(4*3*n), Part: at,
			PartStride: n, Residual: at + uint64(4*n), Y: at + uint64(4*2*n), YStride: n, Width: n, Rows: 1, Count: at + uint64(4*(3*n+1)),
			Status: at + uint64(4*(3*n+2))}))
		require.NoError(t, r.End())
		require.NoError(t, c.Submit([]driver.Recording{r}, nil, driver.Point{Timeline: lines[i], Value: 1}))
	}
	for i := range cards {
		require.NoError(t, lines[i].Wait(1, time.Minute))
		all = append(all, floats(memory[i])[2*n:3*n])
	}
	return all
}

func floats(b *driver.Buffer) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b.Bytes[0])), len(b.Bytes)/4)
}

// TestTeamLosesACard: a step in flight fails as lost, whichever card it was, and the other card does not wait for ever;
// once the model is closed, the team computes again.
func TestTeamLosesACard(t *testing.T) {
	m, err := backendtest.Divisible(quant.Q8_0)
	require.NoError(t, err)
	for lost := range 2 {
		var opened [2]*null.Device
		var all []*exec.Device
		for i := range opened {
			d, err := exec.New(func() (driver.Device, error) {
				opened[i] = null.Open(null.Options{})
				return opened[i], nil
			})
			require.NoError(t, err)
			all = append(all, d)
		}
		d, err := exec.NewTeam(all...)
		require.NoError(t, err)
		want, err := logits(d, m)
		require.NoError(t, err)
		x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
			Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 32, MaxWanted: 8, Flight: 1}})
		require.NoError(t, err)
		for r := range m.Weights {
			require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
		}
		require.NoError(t, step(x, m))
		opened[lost].Lose(errors.New("unplugged"))
		require.ErrorIs(t, step(x, m), backend.ErrLost)
		require.NoError(t, x.Close())
		got, err := logits(d, m)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, d.Close())
	}
}

// step runs one row.
func step(x backend.Model, m *backendtest.Model) error {
	s := x.Steps()[0]
	s.Tokens, s.Wanted, s.Draws = append(s.Tokens[:0], 1), append(s.Wanted[:0], 0), s.Draws[:0]
	s.Spans = []backend.Span{{Rows: 1, Tables: backendtest.Tables(m.Program, []int32{0})}}
	var failed error
	for i := range m.Segments {
		if failed == nil {
			failed = backend.Enqueue(x, i, s)
		}
	}
	ended := make(chan error, 1)
	x.Finish(s, func(err error) { ended <- err })
	return errors.Join(failed, <-ended)
}

// TestTeamDrops: a step that was given up half-way does not harm the next one, which exchanges anew.
func TestTeamDrops(t *testing.T) {
	m, err := backendtest.Divisible(quant.Q8_0)
	require.NoError(t, err)
	d := team(t, 2, null.Options{Order: 3})
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 32, MaxWanted: 8, Flight: 1}})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	require.NoError(t, step(x, m))
	want := append([]float32(nil), x.Steps()[0].Logits[:m.Vocab]...)
	s := x.Steps()[0]
	v := m.Segments[1].Carries[0]
	for _, out := range []bool{false, true, false} { // an odd number of exchanges of it were made, or none
		require.NoError(t, backend.Enqueue(x, 0, s))
		require.NoError(t, backend.Enqueue(x, 1, s))
		if out {
			require.NoError(t, x.Out(v, s, make([]float32, m.Width)))
		}
		ended := make(chan error, 1)
		x.Finish(s, func(err error) { ended <- err })
		require.NoError(t, <-ended)
		require.NoError(t, step(x, m))
		require.Equal(t, want, x.Steps()[0].Logits[:m.Vocab])
	}
}

// far is a card whose driver does not say that it reaches others.
type far struct{ driver.Device }

// TestNoTeam: a team has several cards, of one kind, which reach each other.
func TestNoTeam(t *testing.T) {
	open := func(of func() driver.Device) *exec.Device {
		d, err := exec.New(func() (driver.Device, error) { return of(), nil })
		require.NoError(t, err)
		return d
	}
	card := func() driver.Device { return null.Open(null.Options{}) }
	_, err := exec.NewTeam(open(card))
	require.ErrorContains(t, err, "1 cards: a team has 2 to 8")
	other := open(func() driver.Device {
		d := null.Open(null.Options{})
		d.Facts().Name = "other"
		return d
	})
	_, err = exec.NewTeam(open(card), other)
	require.ErrorContains(t, err, "card and other: cards of a team are alike")
	d, err := exec.NewTeam(open(func() driver.Device { return far{card()} }), open(card))
	require.NoError(t, err)
	m, err := backendtest.Divisible(quant.Q8_0)
	require.NoError(t, err)
	_, err = logits(d, m)
	require.ErrorContains(t, err, "its driver gives kernels no memory of another card: have cards compute layers")
	require.NoError(t, d.Close())
}
