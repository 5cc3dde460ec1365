package arch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// firstRoPE is the first rotation of a program.
func firstRoPE(t *testing.T, m *meta.Map, o Options) (*ir.RoPEArgs, string) {
	t.Helper()
	has := func(name string) bool {
		return name == "rope_factors_long.weight" || name == "rope_factors_short.weight"
	}
	p, err := Record(m, has, o)
	require.NoError(t, err)
	for _, s := range p.Segments {
		for _, n := range s.Nodes {
			if n.Op == ir.RoPE && n.W != ir.NoRef {
				return n.RoPE, p.Weights[n.W].Name
			}
			if n.Op == ir.RoPE {
				return n.RoPE, ""
			}
		}
	}
	t.Fatal("no RoPE")
	return nil, ""
}

func scaled(kind string, factor float32) *meta.Map {
	m := llamaMeta()
	m.Set("llama.rope.scaling.type", kind)
	m.Set("llama.rope.scaling.factor", factor)
	return m
}

func TestLinearScaling(t *testing.T) {
	plain, _ := firstRoPE(t, llamaMeta(), Options{})
	require.InDelta(t, math.Pow(10000, -2.0/16), plain.Freq[1], 1e-15)

	untyped := llamaMeta()
	untyped.Set("llama.rope.scaling.factor", float32(4))
	old := llamaMeta()
	old.Set("llama.rope.scale_linear", float32(4))
	for _, m := range []*meta.Map{scaled("linear", 4), untyped, old} {
		a, _ := firstRoPE(t, m, Options{})
		for i := range a.Freq {
			require.Equal(t, plain.Freq[i]/4, a.Freq[i])
		}
		require.EqualValues(t, 1, a.Mscale)
	}
	a, _ := firstRoPE(t, scaled("none", 4), Options{})
	require.Equal(t, plain, a)
}

// TestYaRN has the numbers of transformers' formula worked out by hand: head size 16, base 10000, 64 positions
// originally. Pairs below ⌊16·ln(64/(32·2π))/(2·ln 10⁴)⌋ < 0 → 0 keep their frequency; from
// ⌈16·ln(64/2π)/(2·ln 10⁴)⌉ = ⌈2.016⌉ = 3 on they are interpolated.
func TestYaRN(t *testing.T) {
	plain, _ := firstRoPE(t, llamaMeta(), Options{})
	m := scaled("yarn", 8)
	m.Set("llama.rope.scaling.original_context_length", uint32(64))
	a, _ := firstRoPE(t, m, Options{})
	for i, keep := range []float64{1, 2.0 / 3, 1.0 / 3, 0, 0, 0, 0, 0} {
		require.InDelta(t, plain.Freq[i]*(keep+(1-keep)/8), a.Freq[i], 1e-12, "pair %d", i)
	}
	require.InDelta(t, 0.1*math.Log(8)+1, a.Mscale, 1e-7)

	m.Set("llama.rope.scaling.yarn_log_multiplier", float32(1))
	a, _ = firstRoPE(t, m, Options{})
	require.EqualValues(t, 1, a.Mscale)

	m.Set("llama.rope.scaling.yarn_attn_factor", float32(1.5))
	a, _ = firstRoPE(t, m, Options{})
	require.EqualValues(t, 1.5, a.Mscale)
}

func TestLongRoPEByContext(t *testing.T) {
	f := open(t, "phi3")
	f.Meta.Set("phi3.rope.scaling.original_context_length", uint32(100))
	f.Meta.Set("phi3.rope.scaling.attn_factor", float32(1.19))
	f.Meta.Set("phi3.rope.dimension_count", uint32(12))
	for context, want := range map[int]string{
		0: "rope_factors_long.weight", 101: "rope_factors_long.weight", 100: "rope_factors_short.weight",
	} {
		a, factors := firstRoPE(t, &f.Meta, Options{Context: context})
		require.Equal(t, want, factors, "context %d", context)
		require.EqualValues(t, float32(1.19), a.Mscale)
		require.Equal(t, 12, a.Dims)
	}
}

// windows lists the windows of a program's layers.
func windows(t *testing.T, m *meta.Map, has func(string) bool) (w []int) {
	t.Helper()
	p, err := Record(m, has, Options{})
	require.NoError(t, err)
	for _, kv := range p.KV {
		w = append(w, p.Classes[kv.Class].Window)
	}
	return w
}

func TestWindows(t *testing.T) {
	m := llamaMeta()
	m.Set("llama.attention.sliding_window", uint32(9))
	require.Equal(t, []int{9, 9}, windows(t, m, nil), "Mistral 7B v0.1")

	f := open(t, "gemma3")
	require.Equal(t, []int{24, 24, 24, 24, 24, 0}, windows(t, &f.Meta, holds(f)))
	f.Meta.Set("gemma3.attention.sliding_window_pattern", uint32(2))
	require.Equal(t, []int{24, 0, 24, 0, 24, 0}, windows(t, &f.Meta, holds(f)))
	f.Meta.Set("gemma3.attention.sliding_window_pattern", []bool{false, true, false, true, true, false})
	require.Equal(t, []int{0, 24, 0, 24, 24, 0}, windows(t, &f.Meta, holds(f)))

	// OLMo 3: scaling holds where there is no window.
	f = open(t, "olmo2")
	require.Equal(t, []int{0, 0}, windows(t, &f.Meta, holds(f)))
	f.Meta.Set("olmo2.attention.sliding_window", uint32(16))
	f.Meta.Set("olmo2.attention.sliding_window_pattern", []bool{true, false})
	f.Meta.Set("olmo2.rope.scaling.factor", float32(2))
	require.Equal(t, []int{16, 0}, windows(t, &f.Meta, holds(f)))
	p, err := Record(&f.Meta, holds(f), Options{})
	require.NoError(t, err)
	var first []float64
	for _, s := range p.Segments {
		for _, n := range s.Nodes {
			if n.Op == ir.RoPE {
				first = append(first, n.RoPE.Freq[0])
			}
		}
	}
	require.Equal(t, []float64{1, 1, 0.5, 0.5}, first)
}
