package null_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// composition is several cards, with a processor as the host if that is to compute.
func composition(t testing.TB, cards int, host bool) *compose.Device {
	t.Helper()
	var all []backend.Device
	if host {
		d, err := cpu.New(1, "")
		require.NoError(t, err)
		all = append(all, d)
	}
	for range cards {
		d, _ := device(t, null.Options{Order: 1, Fused: true, Integers: true})
		all = append(all, d)
	}
	d := compose.New(all...)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// layersOn deals layers in runs, the embedding with the first and the end with the last.
func layersOn(devices int) func(p *ir.Bound) []int {
	return func(p *ir.Bound) []int {
		last := 0
		for s := range p.Segments {
			last = max(last, p.Segments[s].Layer)
		}
		return dealt(p, func(s int) int {
			if p.Segments[s].Kind.Ends() {
				return devices - 1
			}
			return max(p.Segments[s].Layer, 0) * devices / (last + 1)
		})
	}
}

// dealt gives each segment a device, as far as segments that attend to one cache stay together.
func dealt(p *ir.Bound, to func(segment int) int) []int {
	devices := make([]int, len(p.Segments))
	for s := range devices {
		devices[s] = to(s)
	}
	backendtest.Together(p.Program, devices)
	return devices
}

// divisions are ways in which programs are dealt to cards.
var divisions = []struct {
	name  string
	cards int
	host  bool
	deal  func(p *ir.Bound) []int
}{
	{"all on one", 1, false, layersOn(1)},
	{"layers on two", 2, false, layersOn(2)},
	{"layers on three", 3, false, layersOn(3)},
	{"experts apart", 2, false, func(p *ir.Bound) []int {
		return dealt(p, func(s int) int {
			if p.Segments[s].Kind == ir.SegExperts {
				return 0
			}
			return 1
		})
	}},
	{"to and fro between three", 3, false, func(p *ir.Bound) []int { return dealt(p, func(s int) int { return s % 3 }) }},
	{"to and fro between a processor and two", 2, true, func(p *ir.Bound) []int {
		return dealt(p, func(s int) int { return (s + 1) % 3 })
	}},
}

// TestCompositions: programs on several cards, which compute beside the program, are near the oracle and keep laws
// RowAlone, ChunkFree and Recompute, however they are dealt.
func TestCompositions(t *testing.T) {
	t.Parallel()
	all := divisions
	if testing.Short() {
		all = divisions[4:]
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			d := backendtest.Dealt(composition(t, c.cards, c.host), c.deal)
			backendtest.Divided(t, d, ref.New(), []quant.Type{quant.Q8_0})
		})
	}
}

// TestPicturesDealt: inputs of rows come to every card that takes them, and outputs from wherever they are computed.
func TestPicturesDealt(t *testing.T) {
	t.Parallel()
	for _, c := range divisions {
		t.Run(c.name, func(t *testing.T) {
			d := backendtest.Dealt(composition(t, c.cards, c.host), c.deal)
			backendtest.Pictures(t, d, ref.New())
			backendtest.Heads(t, d, ref.New())
		})
	}
}

// TestDealtBits: cards of one kind compute the bits of one of them, whatever is where.
func TestDealtBits(t *testing.T) {
	t.Parallel()
	for _, family := range few {
		m, err := backendtest.Small(family, quant.Q8_0)
		require.NoError(t, err)
		want, err := logits(composition(t, 1, false), m)
		require.NoError(t, err)
		for _, c := range divisions {
			if c.host {
				continue
			}
			got, err := logits(backendtest.Dealt(composition(t, c.cards, false), c.deal), m)
			require.NoError(t, err, "%s, %s", family, c.name)
			require.Equal(t, want, got, "%s, %s", family, c.name)
		}
	}
}

// TestCrossingsWithoutCopies: likewise, where rows are as wide as the card's, so that it copies to and from the memory
// that they cross in.
func TestCrossingsWithoutCopies(t *testing.T) {
	t.Parallel()
	m, err := backendtest.Sized(few[0], quant.Q8_0, 256)
	require.NoError(t, err)
	want, err := logits(composition(t, 1, false), m)
	require.NoError(t, err)
	for _, c := range divisions[1:3] {
		got, err := logits(backendtest.Dealt(composition(t, c.cards, false), c.deal), m)
		require.NoError(t, err)
		require.Equal(t, want, got, c.name)
	}
}

// TestAnyDivision: likewise, for any segments on any of three cards.
func TestAnyDivision(t *testing.T) {
	t.Parallel()
	d := composition(t, 3, false)
	for _, family := range few {
		t.Run(family, func(t *testing.T) {
			m, err := backendtest.Small(family, quant.Q8_0)
			require.NoError(t, err)
			want, err := logits(d, m)
			require.NoError(t, err)
			times := 0
			rapid.Check(t, func(r *rapid.T) {
				if times++; testing.Short() && times > 20 {
					return
				}
				devices := rapid.SliceOfN(rapid.IntRange(0, 2), len(m.Segments), len(m.Segments)).Draw(r, "devices")
				got, err := logits(backendtest.Dealt(d, func(p *ir.Bound) []int {
					return dealt(p, func(s int) int { return devices[s] })
				}), m)
				require.NoError(r, err)
				require.Equal(r, want, got)
			})
		})
	}
}
