package place

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// cards are a processor and so many cards of some memory.
func cards(free ...int64) (devices []backend.Traits, m Machine) {
	devices, m = both()[:1], Machine{Memory: []int64{64 * gib}, Flight: 2}
	for _, bytes := range free {
		d := card
		d.Free = bytes
		devices, m.Memory = append(devices, d), append(m.Memory, bytes)
	}
	return devices, m
}

// TestCards: layers go to cards in runs, as much to each as it has of their memory, weights and caches with them; a
// host computes what comes before, if it is to.
func TestCards(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	devices, machine := cards(24*gib, 8*gib)
	for layers, want := range map[int][]int{0: {0, 24, 8}, 16: {16, 12, 4}} {
		a := Ask{Program: p, Devices: devices, Layers: layers, Sequences: 1, Context: 4096}
		plan, err := Make([]Ask{a}, machine)
		require.NoError(t, err)
		m, of := &plan.Models[0], make([]int, 3)
		require.True(t, slices.IsSorted(m.Devices), "each hands on to the next: %v", m.Devices)
		require.Equal(t, 2, m.Devices[len(m.Devices)-1])
		for s, d := range m.Devices {
			if p.Segments[s].Kind == ir.SegFFN {
				of[d]++
			}
		}
		require.Equal(t, want, of)
		require.Equal(t, m.Devices, m.Layout.Devices)
		bytes := make([]int64, 3)
		for _, h := range m.Homes {
			require.Equal(t, m.Devices[h.Group.Segment], h.Device)
			if h.Slot >= 0 {
				bytes[h.Device] += a.traits(h.Device).RoomFor(p, &h.Group, false)
			}
		}
		for d := range bytes {
			require.Equal(t, bytes[d], m.Takes[d].Weights, "device %d", d)
			require.Equal(t, int64(want[d])*m.Takes[2].KV/int64(want[2]), m.Takes[d].KV, "device %d", d)
		}
	}
}

// TestCardsAreTooSmall: what has no room on a card is refused, with its number.
func TestCardsAreTooSmall(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	devices, machine := cards(24*gib, 8*gib)
	_, err := Make([]Ask{{Program: p, Devices: devices, Budgets: []int64{0, 2 * gib, 8 * gib}, Sequences: 1}}, machine)
	require.EqualError(t, err, "the layers of device 1 need 2091 MiB of VRAM for their weights, 2048 MiB are available: have "+
		"the host compute some")
}

// TestFitCards: cards of which each has room for its part get no budgets; one that has none gets what there is.
func TestFitCards(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	devices, machine := cards(8*gib, 8*gib)
	asks := []Ask{{Program: p, Devices: devices, Sequences: 1}}
	Fit(asks, machine)
	require.Equal(t, []int64{0, 0, 0}, asks[0].Budgets)
	require.Greater(t, asks[0].Own(1)+asks[0].Own(2), int64(8*gib), "more than one has room for")
	machine.Memory[2] = 2 * gib
	Fit(asks, machine)
	require.InDelta(t, ownShare*2*gib, asks[0].Budgets[2], 1)
}

// TestExpectCards: cards compute one after the other, each with its own memory, and a value that crosses costs a turn
// on both; of a long prompt they compute chunks at the same time.
func TestExpectCards(t *testing.T) {
	p := shaped(t, "llama-3.1-8b", "Q8_0")
	devices, machine := cards(24*gib, 24*gib)
	plan, err := Make([]Ask{{Program: p, Devices: devices, Sequences: 1}}, machine)
	require.NoError(t, err)
	m, turn := &plan.Models[0], 1e-3
	s := Speeds{Disk: 3e9, Devices: []Speed{{Memory: 50e9}, {Memory: 1000e9, Multiply: 100e12},
		{Memory: 500e9, Multiply: 100e12}}}
	bytes := make([]float64, 3)
	for _, h := range m.Homes {
		if h.Group.Use != ir.Table {
			bytes[h.Device] += float64(h.Group.Bytes)
		}
	}
	seconds := bytes[1]/(1000e9*reachMemory) + bytes[2]/(500e9*reachMemory)
	e := m.Expect(p, s, 1, 0)
	require.InEpsilon(t, 1/seconds, e.Decode, 1e-3)
	require.Zero(t, e.Copied+e.Streamed)
	require.InEpsilon(t, 100e12*reachMultiply/(2*6.98e9/2), e.Prefill, 0.02)
	crossings := len(backend.Crossings(p, m.Devices))
	require.Positive(t, crossings)
	s.Devices[1].Turn, s.Devices[2].Turn = turn, turn
	require.InEpsilon(t, 1/(seconds+float64(2*crossings)*turns*turn), m.Expect(p, s, 1, 0).Decode, 1e-3)
	whole := float64(m.Rows)
	require.InEpsilon(t, whole/e.Prefill+turns*turn*float64(crossings), whole/m.Expect(p, s, 1, 0).Prefill, 1e-3)

	s.Devices[1].Turn, s.Devices[2].Turn = 0, 0
	s.Devices[2].Bus = 1e9 // a slow link
	bytes[0] = 0
	for _, c := range backend.Crossings(p, m.Devices) {
		bytes[0] += 4 * float64(p.Widths[c.Value])
	}
	require.InEpsilon(t, 1/(seconds+bytes[0]/1e9), m.Expect(p, s, 1, 0).Decode, 1e-3)
	require.InEpsilon(t, whole/e.Prefill+whole*bytes[0]/1e9, whole/m.Expect(p, s, 1, 0).Prefill, 0.02)
}

// TestDeal: whatever the program and the devices, each segment has a device that there is, the end the last one, and no
// cache is torn.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		var free []int64
		for range rapid.IntRange(1, 4).Draw(t, "cards") {
			free = append(free, rapid.Int64Range(1, 64*gib).Draw(t, "free"))
		}
		devices, _ := cards(free...)
		a := Ask{Program: p, Devices: devices, Layers: rapid.IntRange(0, LayersOf(p.Program)).Draw(t, "layers")}
		dealt := a.deal()
		require.Len(t, dealt, len(p.Segments))
		require.True(t, slices.IsSorted(dealt), "%v", dealt)
		require.Equal(t, len(devices)-1, dealt[len(dealt)-1])
		require.Equal(t, a.divided(), dealt[0] == 0)
	})
}

// TestDealKeepsCaches: layers that attend to what another one stores are on its device.
func TestDealKeepsCaches(t *testing.T) {
	attend := func(layer, cache int, in ...ir.Value) ir.Segment {
		return ir.Segment{Kind: ir.SegMix, Layer: layer, Nodes: []ir.Node{{Op: ir.Attend, In: in, W: ir.NoRef, B: ir.NoRef,
			Attend: &ir.AttendArgs{KV: cache}}}}
	}
	p := &ir.Bound{Program: &ir.Program{KV: make([]ir.KVLayer, 2)}}
	p.Segments = []ir.Segment{attend(0, 0, 0, 1, 2), attend(1, 1, 0, 1, 2), attend(2, 1, 0), attend(3, 1, 0),
		{Kind: ir.SegHead, Layer: -1}}
	devices, _ := cards(gib, gib)
	require.Equal(t, []int{1, 2, 2, 2, 2}, (&Ask{Program: p, Devices: devices}).deal())
}
