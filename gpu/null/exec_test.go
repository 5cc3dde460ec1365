package null_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// device is gpu/exec on a card that is played.
func device(t testing.TB, o null.Options) (*exec.Device, *null.Device) {
	t.Helper()
	card := null.Open(o)
	d, err := exec.New(func() (driver.Device, error) { return card, nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, card
}

// cards have all that plans make use of, or nothing, or some of it.
var cards = []struct {
	name string
	null.Options
}{
	{"all", null.Options{Order: 1, Fused: true, Integers: true, Gathers: kernel.GroupedColumns}},
	{"nothing", null.Options{Order: 2, Scarce: true}},
	{"floats, with timestamps", null.Options{Order: 3, Fused: true, Stamps: 64}},
}

// TestConformance: the card that has all in several types, the others in one; where it is to be short, that card in
// one.
func TestConformance(t *testing.T) {
	t.Parallel()
	all := cards
	if testing.Short() {
		all = cards[:1]
	}
	for i, c := range all {
		types := []quant.Type{quant.Q8_0}
		if i == 0 && !testing.Short() {
			types = append(types, quant.F32, quant.Q4_K)
		}
		t.Run(c.name, func(t *testing.T) {
			d, _ := device(t, c.Options)
			backendtest.Conformance(t, d, ref.New(), types)
		})
	}
}

// TestHybrid: a card and the processor that share a program are near the oracle, whichever of them computes what.
func TestHybrid(t *testing.T) {
	t.Parallel()
	card, _ := device(t, cards[0].Options)
	host, err := cpu.New(1, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	backendtest.Divided(t, compose.New(host, card), ref.New(), []quant.Type{quant.Q8_0})
}

// TestPrompts: what is computed in half precision keeps the laws.
func TestPrompts(t *testing.T) {
	t.Parallel()
	d, _ := device(t, null.Options{Order: 5, Fused: true, Halves: true})
	backendtest.PromptLaws(t, d, []quant.Type{quant.F16, quant.Q8_0}, 0.01)
}

// TestFixtures: models of other implementations, and their logits.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	d, _ := device(t, cards[2].Options)
	backendtest.Fixtures(t, d, archtest.Open, 10)
}

// TestEmbeddings: as TestFixtures, of encoders and the models that are used like them.
func TestEmbeddings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	d, _ := device(t, cards[2].Options)
	backendtest.Embeddings(t, d, archtest.Open, 10)
	backendtest.BothWays(t, d, ref.New(), 2, 3, 64, 150)
}

// logits are a small model's: of the last rows of a prompt, of one that goes on, and of some that do. All but the last
// are drawn, too. Powers of two leave no row that is not there.
func logits(d backend.Device, m *backendtest.Model) (all []float32, err error) {
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 32, MaxWanted: 8, Flight: 1}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := x.Close(); err == nil {
			err = e
		}
	}()
	for r := range m.Weights {
		if err := x.Upload(ir.Ref(r), 0, m.Weights[r]); err != nil {
			return nil, err
		}
	}
	pos, encodes := 0, m.Segments[len(m.Segments)-1].Kind == ir.SegPool
	for _, n := range []int{32, 1, 8} {
		s := x.Steps()[0]
		s.Tokens, s.Wanted, s.Draws = s.Tokens[:0], s.Wanted[:0], s.Draws[:0]
		for i := range n {
			s.Tokens = append(s.Tokens, int32((pos+i)*7%50))
			if i < n-8 {
				continue
			}
			s.Wanted = append(s.Wanted, int32(i))
			if !encodes {
				s.Draws = append(s.Draws, backend.Draw{Temp: 0.5, TopK: 20, TopP: 0.9, Seed: uint64(i), Host: i == n-1})
			}
		}
		s.Spans = []backend.Span{{Rows: n, Pos: pos, Tables: backendtest.Tables(m.Program, []int32{0})}}
		if encodes {
			s.Spans[0].Pos = 0 // its texts do not go on
		}
		for i := range m.Segments {
			if err := backend.Enqueue(x, i, s); err != nil {
				return nil, err
			}
		}
		done := make(chan error, 1)
		x.Finish(s, func(err error) { done <- err })
		if err := <-done; err != nil {
			return nil, err
		}
		all = append(all, s.Logits[:len(s.Wanted)*m.OutputWidth()]...)
		for _, id := range s.Drawn {
			all = append(all, float32(id))
		}
		pos += n
	}
	return all, nil
}

// few are families with most of what plans have.
var few = []string{backendtest.Encoder, "mixture", "hybrid"}

// TestRandomOrders: kernels between two barriers may run in any order.
func TestRandomOrders(t *testing.T) {
	t.Parallel()
	families := backendtest.Families()
	if testing.Short() {
		families = few
	}
	for i, family := range families {
		t.Run(family, func(t *testing.T) {
			m, err := backendtest.Small(family, quant.Q8_0)
			require.NoError(t, err)
			o := cards[i%2].Options
			o.Order = 0
			d, _ := device(t, o)
			want, err := logits(d, m)
			require.NoError(t, err)
			for seed := range uint64(20) {
				o.Order = seed + 1
				d, _ := device(t, o)
				got, err := logits(d, m)
				require.NoError(t, err)
				require.Equal(t, want, got, "order %d", seed+1)
			}
		})
	}
}

// TestDroppedBarriers: each barrier between kernels that a plan has is missed by somebody.
func TestDroppedBarriers(t *testing.T) {
	t.Parallel()
	families := backendtest.Families()
	if testing.Short() {
		families = few[:2]
	}
	for i, family := range families {
		t.Run(family, func(t *testing.T) {
			m, err := backendtest.Small(family, quant.Q8_0)
			require.NoError(t, err)
			o := cards[i%2].Options
			d, card := device(t, o)
			_, err = logits(d, m)
			require.NoError(t, err)
			n := card.Barriers()
			require.Positive(t, n)
			unseen := ""
			for o.Drop = 1; o.Drop <= n; o.Drop++ {
				d, _ := device(t, o)
				if _, err := logits(d, m); err == nil {
					unseen += fmt.Sprint(" ", o.Drop)
				} else {
					require.ErrorContains(t, err, "have the byte")
				}
			}
			require.Empty(t, unseen, "barriers that nobody missed, of %d", n)
		})
	}
}

// TestOpensAgainWithoutModels: a card that was lost is opened again when none of its models is left, and not before.
func TestOpensAgainWithoutModels(t *testing.T) {
	opened := 0
	var card *null.Device
	d, err := exec.New(func() (driver.Device, error) {
		opened++
		card = null.Open(null.Options{})
		return card, nil
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	m, err := backendtest.Small("mixture", quant.Q8_0)
	require.NoError(t, err)
	compile := func() (backend.Model, error) {
		return d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
			Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 32, MaxWanted: 8, Flight: 1}})
	}
	first, err := compile()
	require.NoError(t, err)
	card.Lose(driver.ErrLost)
	require.Eventually(t, func() bool { // it may be a moment until the loss is seen
		x, err := compile()
		if err == nil {
			err = x.Close()
		}
		return errors.Is(err, backend.ErrLost)
	}, time.Minute, time.Millisecond)
	require.Equal(t, 1, opened)
	require.NoError(t, first.Close())
	second, err := compile()
	require.NoError(t, err)
	require.Equal(t, 2, opened)
	require.NoError(t, second.Close())
}

// TestCounted: a model is counted while others have all of the card's memory.
func TestCounted(t *testing.T) {
	t.Parallel()
	m, err := backendtest.Small("mixture", quant.Q8_0)
	require.NoError(t, err)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 32,
		MaxWanted: 8, Flight: 1}, Counted: true}
	memory := func(d *exec.Device) (backend.Memory, error) {
		x, err := d.Compile(m.Bound, c)
		if err != nil {
			return backend.Memory{}, err
		}
		t.Cleanup(func() { require.NoError(t, x.Close()) })
		return x.Memory(), nil
	}
	d, _ := device(t, null.Options{Free: 1})
	counted, err := memory(d)
	require.NoError(t, err)
	c.Counted = false
	_, err = memory(d)
	require.ErrorIs(t, err, driver.ErrScarce)
	d, _ = device(t, null.Options{})
	taken, err := memory(d)
	require.NoError(t, err)
	require.Equal(t, taken, counted)
}
