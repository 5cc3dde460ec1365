package backend

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

func TestKVFormats(t *testing.T) {
	l := ir.KVLayer{KVHeads: 2, KDim: 80, VDim: 64}
	for name, bytes := range map[string]int{"f32": 4 * 144, "f16": 2 * 144, "q8": 144 + 4*(3+1)} {
		kv, err := ParseKV(name)
		require.NoError(t, err)
		require.Equal(t, name, kv.String())
		require.NoError(t, kv.Check())
		require.Equal(t, 64*2*bytes, kv.Format.BlockBytes(l))
		require.False(t, kv.Seals())
	}
	kv, err := ParseKV("q8_0")
	require.NoError(t, err)
	require.Equal(t, KVQ8, kv)
	require.Equal(t, []string{"f32", "f16", "q8", "q5", "q4", "tq4", "tq3", "q4_0", "q5_0", "q8_0"}, KVNames())
	for _, name := range []string{"", "Q8", "f8"} {
		_, err := ParseKV(name)
		require.EqualError(t, err, `KV type "`+name+`": want f32, f16, q8, q5, q4, tq4 or tq3`)
	}
	half := KVF16
	half.Windowed = Format{Name: "odd", K: Side{Open: Half{}}}
	require.EqualError(t, half.Check(), `cache format "odd" has no form for K or V: want f32, f16, q8, q5, q4, tq4 or tq3`)
	require.EqualError(t, KV{}.Check(), `cache format "" has no form for K or V: want f32, f16, q8, q5, q4, tq4 or tq3`)
	require.Equal(t, "no cache format", KV{}.String())
}

// TestMixKV: K and V have types of their own, by any of their names.
func TestMixKV(t *testing.T) {
	for _, c := range []struct{ k, v, name string }{
		{"f16", "f16", "f16"}, {"q8", "q8_0", "q8"}, {"f16", "q8_0", "f16/q8"}, {"q8", "f32", "q8/f32"},
		{"q8", "q4_0", "q8/q4"}, {"q4_0", "q4", "q4"}, {"q5_0", "tq3", "q5/tq3"},
	} {
		kv, err := MixKV(c.k, c.v)
		require.NoError(t, err)
		require.Equal(t, c.name, kv.String())
		require.NoError(t, kv.Check())
		k, err := ParseKV(c.k)
		require.NoError(t, err)
		v, err := ParseKV(c.v)
		require.NoError(t, err)
		require.Equal(t, Format{Name: c.name, K: k.K, V: v.V}, kv.Format)
	}
	_, err := MixKV("q3", "f16")
	require.EqualError(t, err, `KV type "q3" for K: want f32, f16, q8, q5, q4, tq4 or tq3`)
	_, err = MixKV("f16", "")
	require.EqualError(t, err, `KV type "" for V: want f32, f16, q8, q5, q4, tq4, tq3 or tq2`)
	_, err = ParseKV("tq2")
	require.ErrorContains(t, err, `KV type "tq2": want f32`)
	_, err = MixKV("tq2", "f16")
	require.ErrorContains(t, err, `KV type "tq2" for K: want f32`)
	kv, err := MixKV("q8", "tq2")
	require.NoError(t, err)
	require.True(t, kv.Seals())
	require.Contains(t, KVNamesOfV(), "tq2")
	require.NotContains(t, KVNames(), "tq2")
}

// TestKVShares: K and V together are the blocks, and of a cache in a type each value takes the type's bits.
func TestKVShares(t *testing.T) {
	p := &ir.Program{Classes: []ir.Class{{}, {Window: 70}}, KV: []ir.KVLayer{{KVHeads: 2, KDim: 128, VDim: 64},
		{KVHeads: 1, KDim: 128, VDim: 64, Class: 1}}}
	for _, name := range KVNamesOfV() {
		kv, err := MixKV("f16", name)
		require.NoError(t, err)
		k, v := kv.Shares(p)
		require.InDelta(t, kv.BlockBytes(p), BlockSize*(k.Bytes+v.Bytes), 1e-6)
		require.Equal(t, []int{3 * 128, 3 * 64}, []int{k.Values, v.Values})
		require.InDelta(t, 16, k.Bits(), 1e-9)
	}
	k, v := KVQ8.Shares(p)
	require.InDelta(t, 9, k.Bits(), 1e-9, "a scale of 4 bytes for 32")
	require.InDelta(t, 8.5, v.Bits(), 1e-9, "one for 64")
	kv := KVF32
	kv.Windowed = KVF16.Format
	k, _ = kv.Shares(p)
	require.InDelta(t, (2*32.0+16)/3, k.Bits(), 1e-9)
	require.Zero(t, KVShare{}.Bits())
}

// TestKVByClass: classes with a window may have a format of their own, and count by it.
func TestKVByClass(t *testing.T) {
	p := &ir.Program{Classes: []ir.Class{{Window: 70}, {}}, KV: []ir.KVLayer{{KVHeads: 1, KDim: 2, VDim: 3},
		{KVHeads: 1, KDim: 2, VDim: 3, Class: 1}}}
	kv := KVF32
	require.EqualValues(t, 2*64*4*5, kv.BlockBytes(p))
	kv.Windowed = KVF16.Format
	require.EqualValues(t, 64*4*5+64*2*5, kv.BlockBytes(p))
	require.Equal(t, "f16", kv.Of(0, p.Classes[0]).String())
	require.Equal(t, "f32", kv.Of(1, p.Classes[1]).String())
	require.Equal(t, "f32", kv.Of(2, ir.Class{State: true}).String())
}

// TestForms: rows are read back, alone and together, wherever in a block they are, and harm no other row.
func TestForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		form  Form
		apart float64 // of values up to 1
	}{{Float32{}, 0}, {Half{}, 0x1p-12}, {Scaled{}, 0.5 / 127}, {Scaled{Each: 32}, 0.5 / 127}} {
		for _, features := range []int{1, 32, 40, 96} {
			rows, got := make([]float32, BlockSize*features), make([]float32, BlockSize*features)
			for i := range rows {
				rows[i] = 2*rng.Float32() - 1
			}
			block := make([]byte, c.form.Bytes(features))
			for _, at := range rng.Perm(BlockSize) {
				c.form.Put(block, features, at, rows[at*features:][:features])
			}
			c.form.Get(got, block, features, 0)
			require.InDeltaSlice(t, rows, got, c.apart+1e-7)
			c.form.Get(got[:3*features], block, features, 7)
			require.InDeltaSlice(t, rows[7*features:10*features], got[:3*features], c.apart+1e-7)
			whole := make([]byte, len(block))
			c.form.Put(whole, features, 0, rows)
			require.Equal(t, block, whole)
		}
	}
}

func TestScaled(t *testing.T) {
	block, got := make([]byte, Scaled{}.Bytes(3)), make([]float32, 3)
	for _, c := range []struct{ rows, want []float32 }{
		{[]float32{254, 1, -3}, []float32{254, 0, -4}}, // ties to even
		{[]float32{0x1p-101, 0, -0x1p-102}, []float32{0, 0, 0}},
		{[]float32{0, 0, 0}, []float32{0, 0, 0}},
	} {
		Scaled{}.Put(block, 3, 63, c.rows)
		Scaled{}.Get(got, block, 3, 63)
		require.Equal(t, c.want, got)
	}
	Scaled{}.Put(block, 3, 0, []float32{float32(math.NaN()), 0, 0})
	Scaled{}.Get(got, block, 3, 0)
	require.True(t, math.IsNaN(float64(got[0])), "what is broken is seen to be")
}

// TestSealing: a class whose format seals has one for recent blocks, and no device takes a program without it.
func TestSealing(t *testing.T) {
	p := &ir.Program{Classes: []ir.Class{{Window: 70}, {}, {State: true}}, KV: []ir.KVLayer{{KVHeads: 1, KDim: 2, VDim: 3},
		{KVHeads: 1, KDim: 2, VDim: 3, Class: 1}}}
	require.Same(t, p, KVF16.Sealing(p))
	kv := KVF16
	kv.Format = Format{Name: "sealed", K: Side{Open: Half{}, Sealed: Scaled{}}, V: Side{Open: Half{}}}
	kv.Windowed = KVF32.Format
	s := kv.Sealing(p)
	require.Equal(t, append(p.Classes[:3:3], ir.Class{Window: 64, Chunked: true}), s.Classes)
	require.Equal(t, []int{0, 3}, []int{s.KV[0].Recent, s.KV[1].Recent})
	require.Zero(t, p.KV[1].Recent, "the program stays as it was")
	require.NoError(t, kv.checkFor(s))
	require.ErrorContains(t, kv.checkFor(p), "cache 1 in sealed: it seals blocks: true, has a class of recent ones: false")
	require.ErrorContains(t, KVF16.checkFor(s), "cache 1 in f16: it seals blocks: false, has a class of recent ones: true")
	require.Equal(t, 64*(2+4+2*3), kv.Format.BlockBytes(p.KV[1]))
	require.Equal(t, 64*2*5, kv.Format.RecentBytes(p.KV[1]))
	s.Whole = true
	require.ErrorContains(t, kv.checkFor(s), "sealed seals blocks, but rows of the model see those after them")
}

// TestLayersKV: each cache of a program may have a format of its own, whatever its class, and counts by it. A class has
// one of recent blocks if any of its caches seals.
func TestLayersKV(t *testing.T) {
	l := ir.KVLayer{KVHeads: 1, KDim: 128, VDim: 128}
	windowed := l
	windowed.Class = 1
	p := &ir.Program{Classes: []ir.Class{{}, {Window: 70}}, KV: []ir.KVLayer{l, windowed, l}}
	kv, err := LayersKV("mix", [][2]string{{"q4", "q4"}, {"q8", "f16"}, {"f16", "f16"}})
	require.NoError(t, err)
	require.Equal(t, "mix", kv.String())
	require.True(t, kv.Seals())
	for i, want := range []string{"q4", "q8/f16", "f16"} {
		require.Equal(t, want, kv.Of(i, p.Classes[p.KV[i].Class]).String())
	}
	s := kv.Sealing(p)
	require.Equal(t, append(p.Classes[:2:2], ir.Class{Window: 64, Chunked: true}), s.Classes, "the window's class seals none")
	require.Equal(t, []int{2, 0, 0}, []int{s.KV[0].Recent, s.KV[1].Recent, s.KV[2].Recent})
	require.NoError(t, kv.checkFor(s))
	k, v := kv.Shares(s)
	require.InDelta(t, (4.5+9+16)/3, k.Bits(), 1e-9)
	require.InDelta(t, (4.5+16+16)/3, v.Bits(), 1e-9)
	require.EqualValues(t, kv.BlockBytes(s), BlockSize*(k.Bytes+v.Bytes))

	p.KV = p.KV[:2]
	require.ErrorContains(t, kv.checkFor(p), "formats of 3 caches: the program has 2")
	kv.Layers[2].V.Open = nil
	require.ErrorContains(t, kv.Check(), `cache format "f16" has no form for K or V`)
	_, err = LayersKV("mix", [][2]string{{"f16", "f16"}, {"tq2", "f16"}})
	require.ErrorContains(t, err, `mix: cache 1: KV type "tq2" for K: want f32`)
	_, err = LayersKV("mix", nil)
	require.ErrorContains(t, err, "mix: no caches")
}
