package measure

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kvmix"
)

// TestTap: what is kept is what the other form gives back, from the next block on.
func TestTap(t *testing.T) {
	const features = 32
	kv, err := backend.ParseKV("tq3")
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	rows, got, want := make([]float32, 64*features), make([]float32, 64*features), make([]float32, 64*features)
	for i := range rows {
		rows[i] = float32(r.NormFloat64())
	}
	x := new(tap)
	block := make([]byte, x.Bytes(features))
	x.Put(block, features, 0, rows)
	x.Get(got, block, features, 0)
	require.Equal(t, rows, got, "nothing is lost unless it is said")
	form := kv.K.Sealed
	x.as.Store(&form)
	x.Put(block, features, 0, rows)
	x.Get(got, block, features, 0)
	coded := make([]byte, form.Bytes(features))
	form.Put(coded, features, 0, rows)
	form.Get(want, coded, features, 0)
	require.Equal(t, want, got)
	require.NotEqual(t, rows, got)
	x.Get(got[:features], block, features, 9)
	require.Equal(t, want[9*features:10*features], got[:features])
}

// TestKVErrors: of random rows, errors are those of the theory; what all rows of K have in common counts for nothing,
// and is no weight either; the order of rows does not matter.
func TestKVErrors(t *testing.T) {
	const rows = 4000
	r := rand.New(rand.NewPCG(3, 4))
	var keys, values [][]float32
	for range rows {
		k, v := make([]float32, 128), make([]float32, 128)
		for i := range k {
			k[i], v[i] = float32(r.NormFloat64())+float32(i%2), float32(r.NormFloat64())
		}
		keys, values = append(keys, k), append(values, v)
	}
	sides := func(order []int) (k, v kvmix.Side) {
		e := newKVErrors([]ir.KVLayer{{KVHeads: 2, KDim: 128, VDim: 128}})
		for _, i := range order {
			e.add(0, 1, keys[i], values[i])
		}
		e.paused.Store(true)
		e.add(0, 1, keys[0], keys[0])
		return e.side(0, 0), e.side(0, 1)
	}
	k, v := sides(r.Perm(rows))
	again, alike := sides(r.Perm(rows))
	require.Equal(t, [2]kvmix.Side{k, v}, [2]kvmix.Side{again, alike})
	tq3, tq2 := len(errorTypes)-2, len(errorTypes)-1
	require.InEpsilon(t, .034, v.Errors[tq3], .05)
	require.InEpsilon(t, .116, v.Coarse, .08)
	require.InEpsilon(t, 1.5, k.Errors[tq3]/v.Errors[tq3], .1, "a square of 1.5, of which 1 differs between rows")
	require.Equal(t, k.Errors[tq2], k.Coarse)
	require.Equal(t, v.Errors, v.Heads[1])
	require.Len(t, v.Heads, 2)
	require.Zero(t, v.Heads[0][tq2], "no row of this head")
}

// TestDrawProfile: a row for each layer, with the mix's types, and shades by the logarithm.
func TestDrawProfile(t *testing.T) {
	side := func(kl float64, heads ...float64) (s kvmix.Side) {
		s.KL = kl
		for _, h := range heads {
			s.Heads = append(s.Heads, []float64{h})
		}
		return s
	}
	p := &kvmix.Profile{Types: []string{shown}, Layers: []kvmix.Layer{
		{KVHeads: 2, K: side(.001, .01, .1), V: side(0, .03, .06)}, {KVHeads: 2, K: side(.1, .1, .1), V: side(.01, .01, .01)},
	}, Mix: kvmix.Measured{KV: [][2]string{{"q5", "tq4"}, {"q8", "q8"}}}}
	var b bytes.Buffer
	drawHeat(env.Pane{W: &b}, p)
	require.Equal(t, `layer  K heads  V heads  KL of K    KL of V    mix
    0  ·█       ▒▓       · 0.001000 · 0.000000  q5/tq4
    1  ██       ··       █ 0.100000 ▒ 0.010000  q8

heads: error in tq3, of squares, from · 0.01 to █ 0.1; KL: what 2 bits add there, from 0.001 to 0.1
`, b.String())
	b.Reset()
	drawHeat(env.Pane{W: &b, ANSI: true}, p)
	require.Contains(t, b.String(), "\x1b[38;5;196m█\x1b[39m")
}

// TestDrawLosses: a row for each type and one for the mix, and nothing that moves a cursor.
func TestDrawLosses(t *testing.T) {
	e := envtest.NewEnv("")
	drawProfile(e, &kvmix.Profile{Model: "a\x1bmodel", Tokens: 9, Types: []string{shown},
		Uniform: []kvmix.Measured{{KV: [][2]string{{"q8", "tq2"}}, BitsK: 9, BitsV: 2.125, KLMean: .5, KLMedian: .25, KLP999: 2, SameTop: .5}},
		Mix:     kvmix.Measured{Bits: 4.471, BitsK: 5, BitsV: 4, SameTop: 1}})
	text := fmt.Sprint(e.Stdout)
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, `
type         bits of K, V  KL mean  median   99.9 %  same first token
q8/tq2       9, 2.12       0.50000  0.25000  2.0000  50.00 %
mix of 4.47  5, 4          0.00000  0.00000  0.0000  100.00 %
`)
}
