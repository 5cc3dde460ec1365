package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// keeper is attention alone: q, K and V are parts of the embedding, so that the values which go into the cache are
// known. Token 1 has the value in one feature of K (32) or of V (63); all else is small. The logits are what attention
// returns.
func keeper(t *testing.T, feature int, value float32) *backendtest.Model {
	t.Helper()
	const width = 64
	b := ir.NewBuilder("keeper", func(string) bool { return false })
	x := b.Embed("token_embd", width, width)
	b.Layer(0)
	a := ir.AttendArgs{Heads: 4, KVHeads: 1, KDim: 16, VDim: 16, Scale: 1e-9}
	x = b.Attend(x, b.Slice(x, 32, 16), b.Slice(x, 48, 16), a)
	b.FFN()
	x = b.Scale(x, 0.5)
	b.Logits(b.Scale(b.Rows(x), 2))
	p, err := b.Program(1 << 10)
	require.NoError(t, err)
	m := random(t, p, quant.F32)
	table := make([]float32, width*width)
	for i := range table {
		table[i] = float32(i%7) / 8
	}
	table[width+feature] = value
	require.NoError(t, quant.Quantize(quant.F32, m.Weights[0], table))
	return m
}

// TestLargestHalf: 65504 is the largest half, and what lies below 65520 is rounded to it. What lies above would be
// infinite, and is an error that says what to do; in a cache of another type it is a value like others. K and V, by
// attention itself (few rows) and before it (many), with every set of kernels.
func TestLargestHalf(t *testing.T) {
	below := math.Nextafter32(65520, 0)
	for _, c := range []struct{ value, kept float32 }{
		{65000, 64992}, {65504, 65504}, {65519, 65504}, {below, 65504}, {-below, -65504},
		{value: 65520}, {value: -65520}, {value: 65535}, {value: 65536}, {value: 65600}, {value: 1e6},
	} {
		for name, feature := range map[string]int{"K": 32, "V": 63} {
			for _, set := range kernels.Sets() {
				for _, rows := range []int{1, 40} {
					t.Run(fmt.Sprintf("%s %v %s %d rows", name, c.value, set.Name, rows), func(t *testing.T) {
						for _, kv := range []backend.KV{backend.KVF16, backend.KVF32, backend.KVQ8} {
							m := keeper(t, feature, c.value)
							halfCase(t, device(t, 1, set.Name), m, kv, rows, feature == 63, c.value, c.kept)
						}
					})
				}
			}
		}
	}
}

// halfCase runs rows of token 1.
func halfCase(t *testing.T, d backend.Device, m *backendtest.Model, kv backend.KV, rows int, v bool,
	value, kept float32) {
	t.Helper()
	r := start(t, d, m, kv, 64, 64)
	defer r.Close()
	r.at(0, rows, rows)
	for i := range r.step.Tokens {
		r.step.Tokens[i] = 1
	}
	err := r.run()
	if kv.Format == backend.KVF16.Format && kept == 0 {
		name := map[bool]string{true: "V", false: "K"}[v]
		require.ErrorContains(t, err, fmt.Sprintf("a value of %s is as large as %v, a half holds at most 65504: keep the cache "+
			"in f32 or q8", name, float32(math.Abs(float64(value)))))
		return
	}
	require.NoError(t, err)
	if !v {
		return
	}
	if kv.Format != backend.KVF16.Format {
		kept = value
	}
	require.InEpsilon(t, kept, r.step.Logits[15], 1e-6, "of a head, V's last feature")
}
