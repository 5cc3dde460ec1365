package backendtest

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Errors checks that a device refuses what it must, with an error and without harm to what comes after.
func Errors(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	t.Run("steps", func(t *testing.T) { badSteps(t, d) })
	t.Run("order", func(t *testing.T) { badOrder(t, d) })
	t.Run("types", func(t *testing.T) { badTypes(t, d) })
	t.Run("uploads", func(t *testing.T) { badUploads(t, d) })
	for _, typ := range matrixTypes {
		if typ.Block() > 1 {
			t.Run("not a number "+typ.String(), func(t *testing.T) { notANumber(t, d, typ) })
		}
	}
}

func tiny(t *testing.T) *Model {
	t.Helper()
	p, err := llamaLike(small{layers: 1, width: 32, ffn: 32, vocab: 20, heads: 2, kvHeads: 1, head: 16})
	require.NoError(t, err)
	m, err := made(judge.Random(p, 16, judge.All(quant.F32)))
	require.NoError(t, err)
	return m
}

// steady returns a small model on a device, and a step with its logits, which must stay the same after anything that is
// refused.
func steady(t *testing.T, d backend.Device) (m *Model, l *loaded, good rows, want []float32) {
	m = tiny(t)
	l = load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 2),
		MaxRows: 8, MaxWanted: 8}})
	good = rows{[]int32{1, 2, 3}, 0, []int32{1}}
	return m, l, good, l.step(t, good)
}

func badSteps(t *testing.T, d backend.Device) {
	m, l, good, want := steady(t, d)
	for name, bad := range map[string]rows{
		"no rows":         {nil, 0, []int32{0}},
		"too many rows":   {make([]int32, 9), 0, []int32{0}},
		"negative token":  {[]int32{-1}, 0, []int32{0}},
		"token too large": {[]int32{20}, 0, []int32{0}},
		"block too large": {[]int32{1}, 0, []int32{2}},
		"negative block":  {[]int32{1}, 0, []int32{-1}},
		"table too short": {[]int32{1, 2}, 63, []int32{0}},
		"negative place":  {[]int32{1}, -1, []int32{0}},
	} {
		_, err := l.try(bad)
		require.Error(t, err, name)
	}
	sameBits(t, "after bad steps", m.Vocab, l.step(t, good), want)
}

// badOrder checks that segments out of the program's order are refused, that their step can be finished, and that the
// next step has its usual bits.
func badOrder(t *testing.T, d backend.Device) {
	m, l, good, want := steady(t, d)
	s, last := l.Steps()[0], len(m.Segments)-1
	for name, order := range map[string][]int{
		"the second first": {1}, "the last first": {last}, "twice": {0, 0}, "twice, further on": {0, 1, 1},
		"backwards": {0, 1, 0}, "one left out": {0, 2},
	} {
		s.Tokens = append(s.Tokens[:0], good.tokens...)
		for i, segment := range order {
			err := backend.Enqueue(l, segment, s)
			require.Equal(t, i == len(order)-1, err != nil, "%s: segment %d: %v", name, segment, err)
		}
		require.NoError(t, finish(l.Model, s), name)
		sameBits(t, "after "+name, m.Vocab, l.step(t, good), want)
	}
}

// badTypes checks that the error names all weights of a type that no device knows at once.
func badTypes(t *testing.T, d backend.Device) {
	m := tiny(t)
	bound := *m.Bound
	bound.Types = append([]quant.Type(nil), m.Types...)
	for _, name := range []string{"blk.0.attn_q.weight", "blk.0.ffn_up.weight"} {
		for r, w := range m.Program.Weights {
			if w.Name == name {
				bound.Types[r] = quant.F64
			}
		}
	}
	_, err := d.Compile(&bound, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1),
		MaxRows: 1, MaxWanted: 1}})
	require.ErrorContains(t, err, "blk.0.attn_q.weight")
	require.ErrorContains(t, err, "blk.0.ffn_up.weight")
}

func badUploads(t *testing.T, d backend.Device) {
	m := tiny(t)
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1),
		MaxRows: 8, MaxWanted: 8}})
	size := m.RowBytes(0)
	require.Error(t, l.Upload(ir.NoRef, 0, make([]byte, size)), "no weight")
	require.Error(t, l.Upload(ir.Ref(len(m.Weights)), 0, make([]byte, size)), "no such weight")
	require.Error(t, l.Upload(0, -l.RowGrain(), make([]byte, size)), "before the first row")
	require.Error(t, l.Upload(0, 0, make([]byte, size+1)), "half a row")
	require.Error(t, l.Upload(0, 0, make([]byte, 21*size)), "past the last row")
}

// notANumber checks that a NaN that reaches an op is an error, whichever row of the step has it, and that the next step
// is right.
func notANumber(t *testing.T, d backend.Device, typ quant.Type) {
	m, err := made(judge.Product(typ, 256, 256))
	require.NoError(t, err)
	const poisoned = 7
	binary.LittleEndian.PutUint32(m.Weights[0][poisoned*m.RowBytes(0)+40:], math.Float32bits(float32(math.NaN())))
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1),
		MaxRows: 3, MaxWanted: 3}})
	good := rows{[]int32{1, 2}, 0, []int32{0}}
	want := l.step(t, good)
	for row := range 3 {
		tokens := []int32{1, 2, 3}
		tokens[row] = poisoned
		_, err = l.try(rows{tokens, 0, []int32{0}})
		require.Error(t, err, "row %d", row)
		sameBits(t, "after NaN", m.Vocab, l.step(t, good), want)
	}
	_, err = l.try(rows{[]int32{poisoned}, 0, []int32{0}})
	require.Error(t, err, "alone")
}
