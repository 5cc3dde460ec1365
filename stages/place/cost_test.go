package place

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

var fast = Speeds{Disk: 3e9, Devices: []Speed{{Memory: 30e9, Multiply: 2e12}}}

// planned makes the plan of one model.
func planned(t *testing.T, shape, file string, weights float64) (*ir.Bound, *Model) {
	p := shaped(t, shape, file)
	plan, err := Make([]Ask{{Program: p, Budgets: []int64{int64(weights * gib)}, Sequences: 8}},
		Machine{Memory: []int64{64 * gib}})
	require.NoError(t, err)
	p.Piece = plan.Models[0].Piece
	return p, &plan.Models[0]
}

// TestExpectDense: what is resident is bound by memory, what streams by the disk: exactly by what it reads.
func TestExpectDense(t *testing.T) {
	p, m := planned(t, "llama-3.1-8b", "Q8_0", 0)
	e := m.Expect(p, fast, 1, 0)
	require.Zero(t, e.Streamed)
	require.InDelta(t, 30e9*reachMemory/7.98e9, e.Decode, 0.1)
	require.InDelta(t, 2e12*reachMultiply/(2*6.98e9), e.Prefill, 2)

	p, m = planned(t, "llama-3.1-8b", "Q8_0", 4)
	e = m.Expect(p, fast, 1, 0)
	require.InDelta(t, 3.83*gib, e.Streamed, 0.01*gib)
	require.InDelta(t, 3e9/e.Streamed, e.Decode, 1e-6)
	require.Less(t, e.Prefill, 2e12*reachMultiply/(2*6.98e9), "a chunk's groups are read, too")
	eight := m.Expect(p, fast, 8, 0)
	require.InDelta(t, e.Streamed/8, eight.Streamed, 1, "sequences of a step share what is read")
	require.InDelta(t, 8*e.Decode, eight.Decode, 1e-6)
	require.Less(t, m.Expect(p, fast, 8, 8000).Decode, eight.Decode*1.01)
}

// TestExpectPrefill: a prompt of the 1.7 B shape, by what two cores of one machine were measured to do (VNNI, whose
// share of Multiply in products of weights was 0.5), and how fast it was read at the beginning and behind 8192
// positions: docs/performance.md. By weights alone both were 200 tokens/s.
func TestExpectPrefill(t *testing.T) {
	p, m := planned(t, "smollm2-1.7b", "Q4_K_M", 0)
	processor := Speed{Memory: 30e9, Multiply: 1.29e12, Attend: 280e9, Gate: 5e9}
	s := Speeds{Devices: []Speed{processor}}
	require.InEpsilon(t, 176, m.Expect(p, s, 1, 0).Prefill, 0.15)
	require.InEpsilon(t, 58, m.Expect(p, s, 1, 8192).Prefill, 0.15)

	weights := Speeds{Devices: []Speed{{Memory: processor.Memory, Multiply: processor.Multiply}}}
	require.InDelta(t, 200, m.Expect(p, weights, 1, 8192).Prefill, 10, "what is not known takes no time")
	processor.Gate *= 2
	faster := Speeds{Devices: []Speed{processor}}
	require.Greater(t, m.Expect(p, faster, 1, 0).Prefill, 1.02*m.Expect(p, s, 1, 0).Prefill)
}

// TestExpectWindows: what a window hides is not attended to, and experts cost what a row uses of them.
func TestExpectWindows(t *testing.T) {
	a := ir.AttendArgs{}
	require.EqualValues(t, 8000+256+32, sees(&a, 512, 8000))
	a.Window = 1024
	require.EqualValues(t, 1024, sees(&a, 512, 8000))
	require.EqualValues(t, 288, sees(&a, 512, 0))
	a.Chunked = true
	require.EqualValues(t, 512, sees(&a, 512, 8000))
	require.EqualValues(t, 512, sees(&ir.AttendArgs{Both: true}, 512, 0))

	p, m := planned(t, "qwen3-30b-a3b", "Q4_K_M", 0)
	steps := m.cost(p, 512)
	require.Len(t, steps, 1)
	device := steps[0]
	m.arithmetic(p, steps, 512, 1000)
	require.EqualValues(t, 512*48*32*1288*2*(128+128), device.attend, "48 layers, 32 heads of 128")
	require.Greater(t, device.values, 512*48*8*(2*2048+4*768.0), "eight experts of 768 in each")
	require.Less(t, device.values, 512*48*(16*(2*2048+4*768.0)+32*1288), "and not all 128")
}

func TestExpectExperts(t *testing.T) {
	p, m := planned(t, "qwen3-30b-a3b", "Q4_K_M", 6)
	e := m.Expect(p, fast, 1, 0)
	require.InDelta(t, 40.0/128, e.Hits, 0.01)
	shelf := m.Shelves[0]
	bytes := float64(m.Homes[shelf.Groups[0]].Group.Bytes)
	require.InDelta(t, 48*8*bytes*(1-e.Hits), e.Streamed, 0.15*e.Streamed, "eight experts of each layer, less hits")
	require.Less(t, e.Decode, 3e9/e.Streamed, "experts are not read before they are chosen")
	require.Greater(t, e.Decode, 0.8*3e9/e.Streamed)
	eight := m.Expect(p, fast, 8, 0)
	require.Less(t, eight.Streamed, e.Streamed, "some experts are shared")
	require.Greater(t, eight.Streamed, e.Streamed/8)
	more, n := planned(t, "qwen3-30b-a3b", "Q4_K_M", 12)
	require.Greater(t, n.Expect(more, fast, 1, 0).Decode, e.Decode)
}

// TestExpectUnknown: without measurements nothing is expected, but what is read is known.
func TestExpectUnknown(t *testing.T) {
	p, m := planned(t, "llama-3.1-8b", "Q8_0", 4)
	e := m.Expect(p, Speeds{}, 1, 0)
	require.Zero(t, e.Decode)
	require.Zero(t, e.Prefill)
	require.Positive(t, e.Streamed)
}

// h100 is what one was measured to do, with a disk of 1.5 GB/s.
var h100 = Speeds{Disk: 1.5e9, Devices: []Speed{{Memory: 136e9},
	{Bus: h100Bus, Memory: 3.0e12, Copy: 11e-6, Launch: 2.5e-6, Turn: 34e-6}}}

const h100Bus = 43.1e9

// onCard plans a model for a card, whose layout takes hardly more than the file's.
func onCard(t *testing.T, shape, file string, vram, ram float64) (*ir.Bound, *Model) {
	p := shaped(t, shape, file)
	ask := Ask{Program: p, Devices: []backend.Traits{{}, card}, Sequences: 1,
		Budgets: []int64{int64(ram * gib), int64(vram * gib)}}
	ask.Devices[1].Bytes = func(_ *ir.Bound, g *ir.Group) int64 { return g.Bytes * 65 / 64 }
	plan, err := Make([]Ask{ask}, Machine{Memory: []int64{64 * gib, 64 * gib}, Flight: 2})
	require.NoError(t, err)
	p.Piece = plan.Models[0].Piece
	return p, &plan.Models[0]
}

// TestExpectOnCard: what has been measured on an H100 (docs/gpu-figures.md), within 15 %. What a model takes that stays
// there is its bytes, and launches that wait for one another; what streams takes what its copies take.
func TestExpectOnCard(t *testing.T) {
	for _, c := range []struct {
		shape, file string
		vram        float64
		want        float64
	}{
		{"llama-3.1-8b", "Q4_0", 0, 350}, {"llama-3.1-8b", "Q4_K_M", 0, 316}, {"llama-3.1-8b", "Q8_0", 0, 257},
		{"llama-3.1-8b", "F16", 0, 161}, {"smollm2-1.7b", "Q4_K_M", 0, 802}, {"qwen3-30b-a3b", "Q4_K_M", 0, 215},
		{"llama-3.1-8b", "F16", 6, 4.53},
	} {
		p, m := onCard(t, c.shape, c.file, c.vram, 0)
		e := m.Expect(p, h100, 1, 512)
		t.Logf("%s %s: expected %.4g, measured %.4g", c.shape, c.file, e.Decode, c.want)
		require.InEpsilon(t, c.want, e.Decode, 0.15, "%s %s", c.shape, c.file)
		require.Zero(t, e.First+e.Fill)
	}
}

// TestExpectThreeTiers: where slots and memory hold all experts together, nothing is read in the long run. At first it
// is, at most as fast as the disk gives it, and each byte once.
func TestExpectThreeTiers(t *testing.T) {
	p, m := onCard(t, "qwen3-30b-a3b", "Q4_K_M", 8, 12)
	e := m.Expect(p, h100, 1, 0)
	t.Logf("%.3g tokens/s, %.3g of the first %d, %.2f GB copied, %.1f GB read once", e.Decode, e.First, FirstTokens,
		e.Copied/1e9, e.Fill/1e9)
	require.Zero(t, e.Streamed)
	require.Less(t, e.Decode, h100Bus/e.Copied)
	require.InDelta(t, float64(m.ByTier()[Disk]), e.Fill, 0.4e9, "what is on disk, but for the table")
	require.Less(t, e.First, e.Decode/2)
	require.Greater(t, e.First*e.Fill/h100.Disk, 0.5*FirstTokens, "some tokens are drawn while slots are filled")

	less, n := onCard(t, "qwen3-30b-a3b", "Q4_K_M", 8, 6)
	few := n.Expect(less, h100, 1, 0)
	require.Positive(t, few.Streamed)
	require.Less(t, few.Decode, e.Decode)
	require.Less(t, few.First, few.Decode)
	more := h100
	more.Disk *= 4
	require.Greater(t, m.Expect(p, more, 1, 0).First, e.First)
	require.Equal(t, e.Decode, m.Expect(p, more, 1, 0).Decode)
}

// TestExpectNoMoreThanSlots: no more experts of a layer are expected on the card than it has slots for, whichever of
// those on disk stay there; all others are copied or read.
func TestExpectNoMoreThanSlots(t *testing.T) {
	p, m := onCard(t, "qwen3-30b-a3b", "Q4_K_M", 8, 12)
	device := m.cost(p, 1)[1]
	require.Len(t, device.layers, len(m.Shelves))
	for i, l := range device.layers {
		shelf := &m.Shelves[i]
		each := (l.there + l.kept + l.missing) / float64(len(shelf.Groups)) // bytes, by how likely it is to be used
		require.Positive(t, l.stays)
		require.Positive(t, l.kept)
		require.InEpsilon(t, float64(len(shelf.Slots)), l.there/each, 1e-9, "layer %d", i)
	}
}

// TestExpectLarge: 70 B of F16 comes through the bus at its speed, whatever the card could compute. A model of fewer
// layers of the same shape tells what each costs.
func TestExpectLarge(t *testing.T) {
	config, err := synth.Find("llama-3.1-70b")
	require.NoError(t, err)
	for _, c := range []struct {
		layers     int
		vram, want float64
	}{{8, 6, 3.53}, {80, 70, 0.65}} {
		config.Layers = c.layers
		p := boundOf(t, config, "F16")
		ask := Ask{Program: p, Devices: []backend.Traits{{}, card}, Budgets: []int64{0, int64(c.vram * gib)},
			Sequences: 1}
		ask.Devices[1].Bytes = func(_ *ir.Bound, g *ir.Group) int64 { return g.Bytes }
		plan, err := Make([]Ask{ask}, Machine{Memory: []int64{256 * gib, 64 * gib}, Flight: 2})
		require.NoError(t, err)
		p.Piece = plan.Models[0].Piece
		e := plan.Models[0].Expect(p, h100, 1, 0)
		t.Logf("%d layers: %.3g tokens/s, %.1f GB copied for each", c.layers, e.Decode, e.Copied/1e9)
		require.InEpsilon(t, h100Bus/e.Copied, e.Decode, 0.01)
		require.InEpsilon(t, c.want, e.Decode, 0.05)
	}
}
