package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/kvcode"
	"github.com/sluice-ai/sluice/internal/quant"
)

// kinds are codes of all sorts, with the largest levels that there may be.
func kinds() []Codes {
	book := func(bits int) Codes {
		var levels [16]byte
		for i := range 1 << bits {
			levels[i] = byte(i * 128 / (1<<bits - 1))
		}
		return Codes{Bits: bits, Levels: &levels, Offset: 64}
	}
	return []Codes{{Bits: 4, Offset: 8}, {Bits: 5, Offset: 16}, book(4), book(3), book(2)}
}

func drawCodes(t *rapid.T, r *rand.Rand, features int) (c Codes, codes []byte, scales []uint16) {
	c = rapid.SampledFrom(kinds()).Draw(t, "codes")
	codes, scales = make([]byte, Block*features), make([]uint16, Block*c.scales(features))
	most := r.IntN(2) == 0 // all codes the largest: sums are as large as may be
	for i := range codes {
		if codes[i] = byte(r.IntN(1 << c.Bits)); most {
			codes[i] = 1<<c.Bits - 1
		}
	}
	size := math.Ldexp(1, -r.IntN(24)) // some are subnormal
	for i := range scales {
		scales[i] = quant.F32ToF16(float32(r.NormFloat64() * size))
	}
	return c, codes, scales
}

// TestCodesArePacked: codes and scales come back, and their bytes are those of the bits, but where a head has a few
// features more than a part has.
func TestCodesArePacked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		features := rapid.OneOf(rapid.IntRange(1, 140), rapid.SampledFrom([]int{192, 256, 576})).Draw(rt, "features")
		c, codes, scales := drawCodes(rt, r, features)
		got, halves := make([]byte, len(codes)), make([]uint16, len(scales))
		k, v := CodedKeys{c, features}, CodedValues{c, features}
		block := make([]byte, max(k.Bytes(), v.Bytes()))
		for i := range block {
			block[i] = 0xff // of what was there before
		}
		k.Pack(block, codes, scales)
		k.Unpack(got, halves, block)
		require.Equal(rt, codes, got)
		require.Equal(rt, scales, halves)
		v.Pack(block, codes, scales)
		clear(got)
		v.Unpack(got, halves, block)
		require.Equal(rt, codes, got)
		require.Equal(rt, scales, halves)
		if features%32 == 0 {
			want := Block*features*c.Bits/8 + 2*len(scales)
			require.Equal(rt, []int{want, want + 8*c.scales(features)}, []int{k.Bytes(), v.Bytes()})
		}
	})
}

// TestTwinCoded: scores and sums by codes are those of the twin, whatever is computed together.
func TestTwinCoded(t *testing.T) {
	for _, isa := range isas() {
		rapid.Check(t, func(rt *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			rows := rapid.IntRange(1, 11).Draw(rt, "rows")
			features := rapid.OneOf(rapid.IntRange(1, 140), rapid.SampledFrom([]int{192, 256, 576, 1024})).Draw(rt, "features")
			c, codes, scales := drawCodes(rt, r, features)
			codedKeysAreTwins(rt, t, isa, r, &CodedKeys{c, features}, rows, codes, scales)
			codedValuesAreTwins(rt, t, isa, r, &CodedValues{c, features}, rows, codes, scales)
		})
	}
}

func codedKeysAreTwins(rt *rapid.T, t *testing.T, isa ISA, r *rand.Rand, k *CodedKeys, rows int, codes []byte,
	scales []uint16) {
	block, queries := make([]byte, k.Bytes()), make([]byte, rows*k.QueryBytes())
	k.Pack(block, codes, scales)
	same, row := r.IntN(2) == 0, make([]float32, k.Features)
	for i := range rows {
		for j := range row {
			if row[j] = float32(r.NormFloat64()); same {
				row[j] = 1
			}
		}
		k.Query(Generic, queries[i*k.QueryBytes():], row)
		again := make([]byte, k.QueryBytes())
		k.Query(isa, again, row)
		require.Equal(rt, queries[i*k.QueryBytes():][:len(again)], again)
	}
	want, got := make([]float32, rows*Block), guarded(t, make([]float32, rows*Block))
	k.Multiply(Generic, want, queries, rows, block, nil)
	k.Multiply(isa, got, guarded(t, queries), rows, guarded(t, block), block)
	require.Equal(rt, bits(want), bits(got), "%+v", k)
	k.Multiply(isa, got, queries[(rows-1)*k.QueryBytes():], 1, block, nil)
	require.Equal(rt, bits(want[(rows-1)*Block:]), bits(got[:Block]), "alone")
}

func codedValuesAreTwins(rt *rapid.T, t *testing.T, isa ISA, r *rand.Rand, v *CodedValues, rows int, codes []byte,
	scales []uint16) {
	block, weights := make([]byte, v.Bytes()), make([]float32, rows*Block)
	v.Pack(block, codes, scales)
	for i := range weights { // the largest is 1 in a row that is not masked
		switch r.IntN(3) {
		case 0:
			weights[i] = float32(math.Exp(-10 * r.Float64()))
		case 1:
			weights[i] = 1
		}
	}
	some := make([]byte, rows*v.WeightBytes())
	ours := guarded(t, some)
	v.Weigh(Generic, some, weights, block)
	v.Weigh(isa, ours, guarded(t, weights), guarded(t, block))
	for i := 0; i < len(some); i += weightBytes {
		require.Equal(rt, some[i:i+2*Block+numberSize], ours[i:i+2*Block+numberSize], "%+v %v", v, weights)
	}
	stride := v.chunks()*Lanes + r.IntN(2)*Lanes
	want := make([]float32, (rows-1)*stride+v.chunks()*Lanes)
	got := guarded(t, want)
	v.Multiply(Generic, want, stride, some, rows, block, nil)
	v.Multiply(isa, got, stride, guarded(t, some), rows, guarded(t, block), block)
	require.Equal(rt, bits(want), bits(got), "%+v", v)
}

// TestCodedIsAttention: products of codes are those of the floats that they stand for, as near as bytes of queries and
// words of weights are.
func TestCodedIsAttention(t *testing.T) {
	isa, r := Best(), rand.New(rand.NewPCG(3, 5))
	for i, code := range []kvcode.Code{
		{Bits: 4}, {Bits: 5}, {Bits: 4, Book: true}, {Bits: 3, Book: true}, {Bits: 2, Book: true},
	} {
		for _, features := range []int{64, 80, 128} {
			c := CodesOf(code, features)
			require.Equal(t, kinds()[i].Bits, c.Bits)
			codes, scales := make([]byte, Block*features), make([]uint16, Block*c.scales(features))
			row, rows := make([]float32, features), make([]float32, Block*features)
			for p := range Block {
				for j := range row {
					row[j] = float32(r.NormFloat64())
				}
				code.Encode(codes[p*features:][:features], scales[p*c.scales(features):][:c.scales(features)], row)
				code.Decode(rows[p*features:][:features], codes[p*features:][:features],
					scales[p*c.scales(features):][:c.scales(features)])
			}
			k, v := CodedKeys{c, features}, CodedValues{c, features}
			block, query := make([]byte, max(k.Bytes(), v.Bytes())), make([]byte, k.QueryBytes())
			k.Pack(block, codes, scales)
			k.Query(isa, query, row)
			scores := make([]float32, Block)
			k.Multiply(isa, scores, query, 1, block, nil)
			for p, got := range scores {
				want := 0.0
				for j, x := range row {
					want += float64(x * rows[p*features+j])
				}
				require.InDelta(t, want, got, 0.06*math.Sqrt(float64(features)), fmt.Sprint(code, features))
			}
			v.Pack(block, codes, scales)
			weights, prepared := make([]float32, Block), make([]byte, v.WeightBytes())
			for p := range weights {
				weights[p] = r.Float32()
			}
			v.Weigh(isa, prepared, weights, block)
			sums := make([]float32, 128)
			v.Multiply(isa, sums, 128, prepared, 1, block, nil)
			for j := range features {
				want := 0.0
				for p, x := range weights {
					want += float64(x * rows[p*features+j])
				}
				require.InDelta(t, want, sums[j], 0.005, fmt.Sprint(code, features))
			}
		}
	}
}

// TestTwinButterflies: see ISA.Butterflies.
func TestTwinButterflies(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, isa := range isas() {
		for n := 1; n <= 1024; n *= 2 {
			x := numbers(r, n)
			y := guarded(t, x)
			kvcode.Butterflies(x)
			isa.Butterflies(y)
			require.Equal(t, bits(x), bits(y), "%d", n)
		}
	}
}

// TestCodedScalesOfAllSizes: what all scales are zero of is worth zero, and what has one that is not finite is NaN.
func TestCodedScalesOfAllSizes(t *testing.T) {
	weights := make([]float32, Block)
	weights[5] = 1
	for _, isa := range append(isas(), Generic) {
		v := CodedValues{Codes{Bits: 4, Offset: 8}, 64}
		codes, scales, block := make([]byte, Block*64), make([]uint16, Block*2), make([]byte, v.Bytes())
		prepared, sums := make([]byte, v.WeightBytes()), make([]float32, 64)
		for i := range Block {
			scales[2*i+1] = 0x7c00
		}
		v.Pack(block, codes, scales)
		v.Weigh(isa, prepared, weights, block)
		v.Multiply(isa, sums, 64, prepared, 1, block, nil)
		require.Zero(t, sums[0])
		require.True(t, math.IsNaN(float64(sums[32])))
	}
}
