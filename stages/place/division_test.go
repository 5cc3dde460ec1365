package place

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// both are the traits of a device with memory of its own and a processor beside it.
func both() []backend.Traits {
	host := backend.Traits{Flight: 1, Shares: true, Memory: backend.HostMemory}
	return []backend.Traits{host, {Flight: 2, Shares: true, Memory: backend.OwnMemory, Free: 24 * gib}}
}

// TestLayers: the last layers and the head are the device's, all groups have a home on the side that computes them, and
// caches are counted there.
func TestLayers(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	make := func(a Ask) (*Model, error) {
		a.Program, a.Devices, a.Sequences, a.Context = p, both(), 1, 4096
		plan, err := Make([]Ask{a}, Machine{Memory: []int64{64 * gib, 16 * gib}, Flight: 2})
		if err != nil {
			return nil, err
		}
		return &plan.Models[0], nil
	}
	all, err := make(Ask{})
	require.NoError(t, err)
	require.False(t, all.Divided())
	m, err := make(Ask{Layers: 8})
	require.NoError(t, err)
	require.Equal(t, 24, m.HostLayers(p.Program))
	require.Equal(t, all.Beyond().KV, m.Beyond().KV+m.Host().KV)
	require.Equal(t, m.Host().KV, 3*m.Beyond().KV)
	for _, h := range m.Homes {
		s, want := p.Segments[h.Group.Segment], Host
		switch {
		case s.Kind.Ends() || s.Layer >= 24:
			want = Device
		case h.Group.Use == ir.Table:
			want = Disk
		}
		require.Equal(t, want, h.Tier, "%v", h.Group)
		require.Equal(t, want != Disk, h.Slot >= 0)
	}
	require.Equal(t, m.Beyond().Weights, m.ByTier()[Device])
	require.Equal(t, m.Host().Weights, m.ByTier()[Host])

	few, err := make(Ask{Layers: 8, Budgets: []int64{3 * gib}})
	require.NoError(t, err)
	require.Equal(t, m.Beyond().Weights, few.Beyond().Weights, "what the device has stays")
	require.LessOrEqual(t, few.Host().Weights, int64(3*gib))
	require.Positive(t, few.ByTier()[Disk])
	for _, g := range few.Ring.Groups {
		require.Less(t, p.Segments[few.Homes[g].Group.Segment].Layer, 24, "the host streams")
	}

	_, err = make(Ask{Layers: 8, Budgets: []int64{0, 2 * gib}})
	require.EqualError(t, err, "8 layers on the device need 2301 MiB of VRAM for their weights, 2048 MiB are available: ask "+
		"for at most 6 layers")
	_, err = make(Ask{Layers: 8, Budgets: []int64{0, 1 << 20}})
	require.ErrorContains(t, err, "compute on the processor alone")
	whole, err := make(Ask{Layers: 32})
	require.NoError(t, err)
	require.Equal(t, all.Homes, whole.Homes, "all of them: nothing is divided")
}

// TestExpectDivided: one side computes after the other; of a long prompt they compute chunks at the same time.
func TestExpectDivided(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	ask := Ask{Program: p, Devices: both(), Layers: 8, Sequences: 1}
	plan, err := Make([]Ask{ask}, Machine{Memory: []int64{64 * gib, 16 * gib}, Flight: 2})
	require.NoError(t, err)
	m := &plan.Models[0]
	s := Speeds{Disk: 3e9, Devices: []Speed{{Memory: 50e9, Multiply: 2e12}, {Bus: 20e9, Memory: 1000e9}}}
	e := m.Expect(p, s, 1, 0)
	seconds := float64(m.Beyond().Weights)/(1000e9*reachMemory) + float64(m.Host().Weights)/(50e9*reachMemory)
	require.InEpsilon(t, 1/seconds, e.Decode, 1e-3)
	require.Zero(t, e.Copied+e.Streamed)
	require.InEpsilon(t, 2e12*reachMultiply/(2*6.98e9*24/32), e.Prefill, 0.01)
}

// TestExperts: the experts of the first layers that have any are the host's, all else is the device's; nothing of a
// cache is on the host.
func TestExperts(t *testing.T) {
	p := shaped(t, "qwen3-30b-a3b", "Q4_K_M")
	make := func(a Ask) (*Model, error) {
		a.Program, a.Devices, a.Sequences, a.Context = p, both(), 1, 4096
		plan, err := Make([]Ask{a}, Machine{Memory: []int64{64 * gib, 24 * gib}, Flight: 2})
		if err != nil {
			return nil, err
		}
		return &plan.Models[0], nil
	}
	all, err := make(Ask{})
	require.NoError(t, err)
	m, err := make(Ask{Experts: 10})
	require.NoError(t, err)
	require.Equal(t, 10, m.HostExperts(p.Program))
	require.Zero(t, m.HostLayers(p.Program))
	require.Zero(t, m.Host().KV)
	require.Equal(t, all.Beyond().KV, m.Beyond().KV)
	require.False(t, m.Streams())
	onHost := int64(0)
	for _, h := range m.Homes {
		s, want := p.Segments[h.Group.Segment], Device
		if s.Kind == ir.SegExperts && s.Layer < 10 {
			want = Host
			onHost += h.Group.Bytes
		}
		require.Equal(t, want, h.Tier, "%v", h.Group)
		require.GreaterOrEqual(t, h.Slot, 0)
	}
	require.Equal(t, onHost, m.Host().Weights)
	require.Equal(t, all.Beyond().Weights, m.Beyond().Weights+m.Host().Weights)
	require.Len(t, backend.Crossings(p, m.Devices), 40,
		"the stream, its norm and the choice go there, and the sum comes back")

	whole, err := make(Ask{Experts: 99})
	require.NoError(t, err)
	require.Equal(t, 48, whole.HostExperts(p.Program), "all of them")
	_, err = make(Ask{Experts: 10, Budgets: []int64{0, 12 * gib}})
	require.ErrorContains(t, err, "have the host compute those of at least 16 layers")
	_, err = make(Ask{Experts: 10, Budgets: []int64{0, 1 << 20}})
	require.ErrorContains(t, err, "all but the experts need 9")
	_, err = make(Ask{Experts: 10, Budgets: []int64{2 * gib}})
	require.ErrorContains(t, err, "have the host compute fewer")
}

// TestExpectExpertsBeside: the host computes from memory what would else come through the bus; values cross for it.
func TestExpectExpertsBeside(t *testing.T) {
	p := shaped(t, "qwen3-30b-a3b", "Q4_K_M")
	expect := func(a Ask, s Speeds) Expected {
		a.Program, a.Devices, a.Sequences = p, both(), 1
		plan, err := Make([]Ask{a}, Machine{Memory: []int64{64 * gib, 24 * gib}, Flight: 2})
		require.NoError(t, err)
		return plan.Models[0].Expect(p, s, 1, 0)
	}
	desk := Speeds{Disk: 3e9, Devices: []Speed{{Memory: 60e9, Multiply: 2e12},
		{Bus: 25e9, Memory: 0.9e12, Copy: 11e-6, Launch: 4e-6, Turn: 40e-6}}}
	for _, s := range []Speeds{h100, desk} {
		for _, vram := range []int64{4, 8, 12} {
			a := Ask{Budgets: []int64{0, vram * gib}}
			streams := expect(a, s)
			for a.Experts = 1; ; a.Experts++ {
				some := a
				some.Program, some.Devices = p, both()
				if some.fits() {
					break
				}
			}
			x := expect(a, s)
			t.Logf("%d GB of VRAM, bus %.0f GB/s, memory %.0f: %.1f tokens/s streaming, %.1f with the experts of %d layers beside",
				vram, s.of(1).Bus/1e9, s.of(0).Memory/1e9, streams.Decode, x.Decode, a.Experts)
			none := Speeds{Disk: s.Disk, Devices: slices.Clone(s.Devices)}
			none.Devices[1].Turn = 0
			require.Greater(t, expect(a, none).Decode, x.Decode)
		}
	}
}

// TestSettle: what has no room is computed where memory is fast, or goes through a fast bus.
func TestSettle(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	for _, c := range []struct {
		name      string
		vram      int64
		bus, host float64
		layers    int
	}{
		{"all has room", 0, 20e9, 50e9, 0},
		{"a slow bus", 4 * gib, 10e9, 50e9, 16},
		{"a fast bus", 4 * gib, 50e9, 20e9, 0},
		{"not even a layer has room", 1 << 29, 10e9, 50e9, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Ask{Program: p, Devices: both(), Layers: Auto, Budgets: []int64{0, c.vram}, Sequences: 1}
			a.Settle(Machine{Memory: []int64{64 * gib, 16 * gib}, Flight: 2},
				Speeds{Disk: 3e9, Devices: []Speed{{Memory: c.host, Multiply: 20e12}, {Bus: c.bus, Memory: 1000e9}}})
			require.Equal(t, c.layers, a.Layers)
		})
	}
	m := shaped(t, "qwen3-30b-a3b", "Q4_K_M")
	for _, c := range []struct {
		turn, host      float64
		layers, experts int
	}{{40e-6, 60e9, 21, 0}, {5e-6, 60e9, 0, 28}, {5e-6, 5e9, 0, 0}} {
		a := Ask{Program: m, Devices: both(), Layers: Auto, Budgets: []int64{0, 8 * gib}, Sequences: 1}
		a.Settle(Machine{Memory: []int64{64 * gib, 16 * gib}, Flight: 2},
			Speeds{Disk: 3e9, Devices: []Speed{{Memory: c.host, Multiply: 20e12}, {Bus: 25e9, Memory: 900e9, Turn: c.turn}}})
		require.Equal(t, [2]int{c.layers, c.experts}, [2]int{a.Layers, a.Experts}, "%+v", c)
	}
	a := Ask{Program: p, Devices: both(), Layers: Auto, Budgets: []int64{0, 4 * gib}, Sequences: 1}
	a.Settle(Machine{Memory: []int64{64 * gib, 16 * gib}, Flight: 2},
		Speeds{Disk: 3e9, Devices: []Speed{{Memory: 25e9, Multiply: 0.1e12}, {Bus: 20e9, Memory: 1000e9}}})
	require.Zero(t, a.Layers, "a processor that is too slow for prompts")
}
