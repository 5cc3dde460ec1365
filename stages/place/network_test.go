package place

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// TestTraffic: what passes the network to another machine for a token, and what it allows. A layer that comes back
// from there would be a turn more.
func TestTraffic(t *testing.T) {
	p := shaped(t, "qwen3-0.6b", "Q4_K_M")
	away := backend.Traits{Flight: 2, Memory: backend.OwnMemory, Away: true, Free: 8 << 30}
	a := Ask{Program: p, Devices: []backend.Traits{{Flight: 1, Memory: backend.HostMemory, Shares: true}, away}, Layers: 1,
		Budgets: []int64{0, 0}}
	plan, err := Make([]Ask{a}, Machine{Memory: []int64{8 << 30, 8 << 30}})
	require.NoError(t, err)
	m := &plan.Models[0]
	speeds := Speeds{Devices: []Speed{{Memory: 1e10}, {Memory: 1e10, Turn: 0.001, Bus: 1e6}}}
	got := m.Traffic(p, speeds, 1)
	require.Len(t, got, 1)
	bytes := 4 * float64(p.Width+p.Vocab)
	require.Equal(t, Traffic{1, 1, bytes, 0.001 + bytes/1e6}, got[0])
	require.LessOrEqual(t, m.Expect(p, speeds, 1, 0).Decode, 1/got[0].Seconds)
	m.Devices[1] = 1
	require.Equal(t, 2.0, m.Traffic(p, speeds, 1)[0].Visits)
}

// TestNothingStreamsAway: what has no room on another machine is refused, with how many layers would have.
func TestNothingStreamsAway(t *testing.T) {
	p := shaped(t, "qwen3-0.6b", "Q4_K_M")
	away := backend.Traits{Flight: 2, Memory: backend.OwnMemory, Away: true, Free: 1 << 20}
	a := Ask{Program: p, Devices: []backend.Traits{{Flight: 1, Memory: backend.HostMemory, Shares: true}, away}}
	own := a.Own(1)
	a.Budgets = []int64{0, own - 1}
	_, err := Make([]Ask{a}, Machine{Memory: []int64{8 << 30, 8 << 30}})
	require.ErrorContains(t, err, "the layers of device 1 need")
	a.Layers = Auto
	a.Settle(Machine{Memory: []int64{8 << 30, 8 << 30}},
		Speeds{Devices: []Speed{{Memory: 1e10}, {Memory: 1e10, Turn: 0.001}}})
	require.Positive(t, a.Layers)
	require.Less(t, a.Layers, LayersOf(p.Program))
}
