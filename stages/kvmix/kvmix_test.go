package kvmix

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// profile has layers of the given divergences of K and V, with errors as they are.
func profile(layers ...[2]float64) *Profile {
	p := &Profile{Version: Version}
	var errors []float64
	for _, t := range theirErrors {
		p.Types, errors = append(p.Types, t.name), append(errors, t.error)
	}
	for _, kl := range layers {
		p.Layers = append(p.Layers, Layer{2, 128, 128, Side{KL: kl[0], Coarse: .116, Errors: errors},
			Side{KL: kl[1], Coarse: .116, Errors: errors}})
	}
	return p
}

func caches(p *Profile) (all []ir.KVLayer) {
	for _, l := range p.Layers {
		all = append(all, ir.KVLayer{KVHeads: l.KVHeads, KDim: l.KDim, VDim: l.VDim})
	}
	return all
}

// TestChoose: bits go where the model is sensitive, and the mix of all is the same type where nothing else fits.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		bits float64
		of   *Profile
		want [][2]string
	}{
		{16, profile([2]float64{1, 1}, [2]float64{1, 1}), [][2]string{{"f16", "f16"}, {"f16", "f16"}}},
		{4.5, profile([2]float64{1, 1}, [2]float64{1, 1}), [][2]string{{"q4", "q4"}, {"q4", "q4"}}},
		{5, profile([2]float64{1, .01}), [][2]string{{"q5", "q4"}}},
		{5, profile([2]float64{.01, 1}), [][2]string{{"q4", "q5"}}},
		{4.5, profile([2]float64{1, 1}, [2]float64{.001, .001}), [][2]string{{"q5", "q5"}, {"tq3", "tq3"}}},
		{3.125, profile([2]float64{0, 0}, [2]float64{1, 0}), [][2]string{{"tq3", "tq2"}, {"q4", "tq2"}}},
	} {
		got, err := c.of.Choose(c.bits)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v bits", c.bits)
	}
	_, err := profile([2]float64{1, 1}).Choose(2.5)
	require.EqualError(t, err, "2.5 bits of a value: the least are 2.62")
	_, err = (&Profile{Types: []string{"q3"}, Layers: make([]Layer, 1)}).Choose(4)
	require.ErrorContains(t, err, `KV type "q3" for V`)
	_, err = (&Profile{Types: []string{"tq2"}, Layers: []Layer{{V: Side{Errors: []float64{1}}}}}).Choose(4)
	require.ErrorContains(t, err, "without types of K")
}

// TestChooseKeepsBits: a mix takes no more bits than it may, costs no more than one type for all layers that fits, and
// with more bits it costs no more.
func TestChooseKeepsBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var layers [][2]float64
		for range rapid.IntRange(1, 9).Draw(t, "layers") {
			layers = append(layers, [2]float64{rapid.Float64Range(0, 1).Draw(t, "k"), rapid.Float64Range(0, 1).Draw(t, "v")})
		}
		p := profile(layers...)
		for i := range p.Layers {
			p.Layers[i].KVHeads = rapid.IntRange(1, 8).Draw(t, "heads")
			p.Layers[i].KDim = 16 * rapid.IntRange(1, 12).Draw(t, "features")
		}
		bits := rapid.Float64Range(4.5, 16).Draw(t, "bits")
		types, err := p.Choose(bits)
		if err != nil {
			require.ErrorContains(t, err, "the least are")
			return
		}
		kv, err := backend.LayersKV("mix", types)
		require.NoError(t, err)
		require.LessOrEqual(t, Bits(kv, caches(p)), bits+1e-9)
		again, err := p.Choose(bits)
		require.NoError(t, err)
		require.Equal(t, types, again)
		if rule, err := Rule(caches(p), bits); err == nil {
			uniform := make([][2]string, len(types))
			for i := range uniform {
				uniform[i] = rule
			}
			require.LessOrEqual(t, total(p, types), total(p, uniform)+1e-12)
		}
		more, err := p.Choose(bits + 1)
		require.NoError(t, err)
		require.LessOrEqual(t, total(p, more), total(p, types)+1e-12)
	})
}

func total(p *Profile, types [][2]string) (sum float64) {
	for i, pair := range types {
		for t, name := range p.Types {
			if name == pair[0] {
				sum += p.Layers[i].K.cost(t)
			}
			if name == pair[1] {
				sum += p.Layers[i].V.cost(t)
			}
		}
	}
	return sum
}

// TestKnapsackOfOddSizes: sizes without a common divisor are rounded up where the table would be too large.
func TestKnapsackOfOddSizes(t *testing.T) {
	items := [][]option{{{"a", 1_000_003, 1}, {"b", 500_009, 2}}, {{"a", 700_001, 1}, {"b", 3, 5}}}
	require.Equal(t, []int{0, 0}, knapsack(items, 1_710_000))
	require.Equal(t, []int{1, 0}, knapsack(items, 1_210_000))
	require.Equal(t, []int{1, 1}, knapsack(items, 600_000))
	require.Nil(t, knapsack(items, 400_000))
	require.Nil(t, knapsack(items, -1))
}

// TestRule: without a profile keys get more bits than values, as far as they go.
func TestRule(t *testing.T) {
	l := []ir.KVLayer{{KVHeads: 2, KDim: 128, VDim: 128}}
	for bits, want := range map[float64][2]string{16: {"f16", "f16"}, 8.7: {"q8", "q8"}, 5.5: {"q5", "q5"},
		5: {"q5", "q4"}, 4.5: {"q4", "q4"}, 4.2: {"tq4", "tq4"}, 3.7: {"tq4", "tq3"}, 2.7: {"tq3", "tq2"}} {
		got, err := Rule(l, bits)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v bits", bits)
	}
	long, err := Rule([]ir.KVLayer{{KVHeads: 1, KDim: 384, VDim: 128}}, 5.45)
	require.NoError(t, err)
	require.Equal(t, [2]string{"q5", "q4"}, long, "though q4/q8 would have less error in all")
	_, err = Rule(l, 2)
	require.EqualError(t, err, "2 bits of a value: the least are 2.62")
}

// TestFits: a profile is of caches of one shape, in one version.
func TestFits(t *testing.T) {
	p := profile([2]float64{1, 1})
	require.True(t, p.Fits(caches(p)))
	require.False(t, p.Fits(nil))
	require.False(t, p.Fits([]ir.KVLayer{{KVHeads: 2, KDim: 128, VDim: 64}}))
	require.False(t, p.Fits(append(caches(p), caches(p)...)))
	p.Layers[0].K.Errors = p.Layers[0].K.Errors[1:]
	require.False(t, p.Fits(caches(p)))
	p = profile([2]float64{1, 1})
	p.Version++
	require.False(t, p.Fits(caches(p)))
}
