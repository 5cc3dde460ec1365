package actors

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/swap"
)

// laid is a device that notes what its last model occupies.
type laid struct {
	backend.Device
	memory backend.Memory
}

func (d *laid) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if err == nil {
		d.memory = m.Memory()
	}
	return m, err
}

// TestBudgetOfCards: of each card a model that is divided takes what it occupies there, and gives it back. What it is
// found to need is counted by card, too, and so is what a second one finds.
func TestBudgetOfCards(t *testing.T) {
	d := &laid{Device: compose.New(devicetest.Processor(t, ""), devicetest.Played(t), devicetest.Played(t))}
	h := emptyHouse(t, d)
	before := h.left()
	require.Len(t, before, 3)
	m := modelOf(t, "lfm2")
	p, err := PlanFor(&m, d)
	require.NoError(t, err)
	const plenty = 1 << 40
	room := swap.Room{Host: plenty, Devices: []int64{plenty, plenty}}
	need := (&housed{room: room}).need(&m, p)
	e, err := h.Enter(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, []int{e.Plan().Devices[0], e.Plan().Devices[len(e.Plan().Devices)-1]})
	left, all := h.left(), d.memory.Devices
	require.Len(t, all, 3)
	for i := 1; i < 3; i++ {
		require.Positive(t, all[i].Weights)
		require.Positive(t, all[i].KV)
		require.Equal(t, before[i]-all[i].Own(), left[i], "card %d", i)
		require.Greater(t, need.On(i-1), all[i].KV, "card %d", i)
	}
	require.Equal(t, d.memory.Own(), all[1].Own()+all[2].Own(), "the processor computes nothing of it")
	second, err := h.Enter(t.Context(), modelOf(t, fixture))
	require.NoError(t, err)
	require.Less(t, h.left()[2], left[2])
	require.NoError(t, second.Leave(t.Context()))
	require.NoError(t, e.Leave(t.Context()))
	require.Equal(t, before, h.left())
}

// lacking is a device that has no kernel for any program.
type lacking struct{ backend.Device }

func (d lacking) Traits() backend.Traits {
	t := d.Device.Traits()
	t.Lacks = func(*ir.Program) error { return errors.ErrUnsupported }
	return t
}

// TestCardLacksAKernel: what a card cannot compute the processor computes whole, with the answers that it gives alone,
// and takes nothing of the card.
func TestCardLacksAKernel(t *testing.T) {
	prompts := prompts(3)
	want := alone(t, startFixture(t, fixture, nil), prompts, 12)
	d := &laid{Device: compose.New(newDevice(t), lacking{devicetest.Played(t)})}
	h := emptyHouse(t, d)
	before := h.left()
	m := modelOf(t, fixture)
	m.KV = backend.KVF32
	p, err := PlanFor(&m, d)
	require.NoError(t, err)
	require.False(t, p.Apart)
	e, err := h.Enter(t.Context(), m)
	require.NoError(t, err)
	for i, prompt := range prompts {
		got, err := trySpelled(begin(t, e, ask(prompt, 12)))
		require.NoError(t, err)
		require.Equal(t, want[i], got)
	}
	require.Equal(t, before[1], h.left()[1])
	require.Less(t, h.left()[0], before[0])
	require.NoError(t, e.Leave(t.Context()))
}
