package kernels

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// shape is one product to compare in all sets.
type shape struct {
	typ                     quant.Type
	rows, blocks, acts, pad int // pad: how much wider than rows the output is
	kind                    nature
	seed                    uint64
}

func (c shape) String() string {
	return fmt.Sprintf("%s, %d rows × %d blocks, %d activations, pad %d, nature %d, seed %d",
		c.typ, c.rows, c.blocks, c.acts, c.pad, c.kind, c.seed)
}

// checkTwin compares every set with the twin by bits, and returns those that did it in assembly. Weights, activations
// and results lie against pages that fault; what lies between the outputs must not change.
func checkTwin(t testing.TB, c shape) (assembly []string) {
	memory := &scope{TB: t}
	defer memory.end()
	rng := rand.New(rand.NewPCG(c.seed, 0))
	cols, stride := c.blocks*unit(c.typ), c.rows+c.pad
	m := packed(t, c.typ, c.rows, cols, randomRows(rng, c.typ, c.rows, cols, c.kind))
	values := randomValues(rng, c.acts*cols, c.kind)
	m.Data = guarded(memory, m.Data)
	results := make([][]float32, 0, 4)
	var want *Acts
	for i, s := range Sets() {
		x := &Acts{Form: FormOf(c.typ), Rows: c.acts, Cols: cols, Stride: cols}
		x.Float = floats(guarded(memory, rawBytes(values)))
		x.Blocks = guarded(memory, make([]byte, c.acts*x.Form.RowBytes(cols)))
		if s.Tiled() && x.Form != Plain {
			x.Tiles = guarded(memory, make([]byte, TileBytes(c.acts, x.rowBytes())))
		}
		for r := range c.acts {
			require.NoError(t, s.Quantize(x, r, x.Float[r*cols:][:cols]))
		}
		if i == 0 {
			want = x
		}
		require.True(t, bytes.Equal(want.Blocks, x.Blocks), "%s: %s quantises otherwise", c, s.Name)
		out := make([]float32, (c.acts-1)*stride+c.rows)
		for i := range out {
			out[i] = 12345
		}
		out = floats(guarded(memory, rawBytes(out)))
		s.MatMul(out, stride, m, nil, 0, m.Tiles(), x)
		results = append(results, out)
		for at, v := range out {
			if at%stride >= c.rows {
				require.Equal(t, float32(12345), v, "%s: %s wrote between outputs", c, s.Name)
			}
		}
		require.NoError(t, sameBits(results[0], out), "%s: %s", c, s.Name)
		if s.Has(c.typ) {
			assembly = append(assembly, s.Name)
		}
	}
	return assembly
}

func rawBytes(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

func floats(raw []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/4)
}

// Law Twin: every set gives the bits of the plain Go.
func TestTwin(t *testing.T) {
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			seed := uint64(0)
			for kind := range natures {
				for rows := 1; rows <= 33; rows++ {
					seed++
					checkTwin(t, shape{typ, rows, 1 + rows%5, 1 + int(seed)%9, rows % 3, kind, seed})
				}
				for acts := 1; acts <= 17; acts++ {
					for blocks := 1; blocks <= 5; blocks++ {
						seed++
						checkTwin(t, shape{typ, 17, blocks, acts, 0, kind, seed})
					}
				}
				for _, acts := range []int{33, 63, 299} {
					seed++
					checkTwin(t, shape{typ, 5, 9, acts, 1, kind, seed})
				}
			}
		})
	}
}

// TestTwinBriefly takes each way through a product once or twice: on an emulated processor TestTwin takes minutes.
func TestTwinBriefly(t *testing.T) {
	for _, typ := range types {
		seed := uint64(300)
		for kind := range natures {
			for _, acts := range []int{1, 2, 3, 4, 7, 12, 33} {
				seed++
				checkTwin(t, shape{typ, 17, 1 + int(seed)%9, acts, int(seed) % 3, kind, seed})
			}
			checkTwin(t, shape{typ, 80, max(1, 771/unit(typ)), 1, 1, kind, seed})
			checkTwin(t, shape{typ, 45, max(3, 259/unit(typ)), 15, 1, kind, seed})
		}
	}
}

// Panels of floats hold some k: rows of several panels, with each remainder of k%4, and one strip left over or none.
func TestTwinFloats(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.BF16} {
		seed := uint64(100)
		for kind := range natures {
			for _, cols := range []int{127, 128, 257, 386, 771} {
				for _, rows := range []int{16, 31, 32, 45} {
					seed++
					checkTwin(t, shape{typ, rows, cols, 12 + int(seed*7)%80, 2, kind, seed})
				}
			}
		}
	}
}

// One row of activations meets several strips at once, some k of each at a time: all numbers of strips, several parts
// of k and a last one of any length.
func TestTwinStrips(t *testing.T) {
	for _, typ := range types {
		seed := uint64(200)
		for kind := range natures {
			for _, rows := range []int{48, 64, 65, 127, 131, 200} {
				for _, k := range []int{256, 511, 768, 1283} {
					seed++
					checkTwin(t, shape{typ, rows, max(1, k/unit(typ)), 1, 1, kind, seed})
				}
			}
		}
	}
}

func FuzzTwin(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), uint64(1))
	f.Add(uint8(5), uint8(32), uint8(4), uint8(8), uint8(1), uint8(1), uint64(2))
	f.Add(uint8(7), uint8(17), uint8(8), uint8(64), uint8(0), uint8(2), uint64(3))
	f.Fuzz(func(t *testing.T, typ, rows, blocks, acts, pad, kind uint8, seed uint64) {
		checkTwin(t, shape{types[int(typ)%len(types)], 1 + int(rows)%80, 1 + int(blocks)%19, 1 + int(acts)%75,
			int(pad) % 5, nature(kind) % natures, seed})
	})
}

// Activation blocks around the two limits of the scale rule: 2⁻¹⁰⁰ and infinity.
func TestTwinQuantizeAtTheLimits(t *testing.T) {
	tiny := math.Float32frombits(tinyBits)
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q6_K} {
		for _, v := range []float32{
			0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, 1e-38, tiny, -tiny,
			math.Nextafter32(tiny, 0), math.Nextafter32(tiny, 1), 1, 127, math.MaxFloat32, -math.MaxFloat32,
		} {
			values := make([]float32, 512)
			for i := range values {
				values[i] = v * (float32(i%256) / 255) // the last of a block is v itself
			}
			var want []byte
			for _, s := range Sets() {
				got := prepared(t, s, typ, 1, 512, values).Blocks
				if want == nil {
					want = got
				}
				require.True(t, bytes.Equal(want, got), "%s, %v, %s", typ, v, s.Name)
			}
		}
	}
}

// The bounds of a format are those of unpacked tiles, and with them no sum leaves int32.
func TestSumsFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, typ := range types {
		if FormOf(typ) == Plain {
			continue
		}
		codes, scales, lows := quant.Range{}, quant.Range{Min: 1, Max: 1}, quant.Range{}
		include := func(r *quant.Range, n int) { r.Min, r.Max = min(r.Min, n), max(r.Max, n) }
		for tile := range 300 {
			b := &block{scale: ones()}
			b.unpack(typ, packed(t, typ, TileRows, typ.Block(), randomRows(rng, typ, TileRows, typ.Block(), wild)).Data)
			if tile == 0 {
				scales = quant.Range{Min: int(b.scale[0][0]), Max: int(b.scale[0][0])}
			}
			for r := range TileRows {
				for _, q := range b.q[r] {
					include(&codes, int(q))
				}
				for s := range typ.Block() / 16 {
					include(&scales, int(b.scale[r][s]))
					include(&lows, int(b.low[r][s]))
				}
			}
		}
		bounds := typ.Bounds()
		most := func(r quant.Range) int { return max(r.Max, -r.Min) }
		require.Equal(t, bounds.Codes, codes, typ)
		require.Equal(t, bounds.Scales, scales, typ)
		require.Equal(t, bounds.Low, most(lows), typ)
		require.Less(t, bounds.Span*most(codes)*most(scales)*127, 1<<31, typ)
		require.Less(t, bounds.Span*most(lows)*127, 1<<31, typ)
	}
}

// Every code, scale and activation at the end of its range, in all combinations of signs, gives the bound that
// the table implies; nothing saturates or overflows on the way.
func TestTwinBounds(t *testing.T) {
	for _, c := range []struct {
		typ         quant.Type
		fill, scale byte // of codes, of scales
		isum, msum  int32
	}{
		{quant.Q8_0, 0x80, 0, 32 * 128 * 127, 0},
		{quant.Q8_0, 0x7f, 0, -32 * 127 * 127, 0},
		{quant.Q4_0, 0x00, 0, 32 * 8 * 127, 0},
		{quant.Q4_0, 0xff, 0, -32 * 7 * 127, 0},
		{quant.Q4_K, 0xff, 0xff, -256 * 15 * 63 * 127, -256 * 63 * 127},
		{quant.Q5_K, 0xff, 0xff, -256 * 31 * 63 * 127, -256 * 63 * 127},
		{quant.Q6_K, 0x00, 0x80, -256 * 32 * 128 * 127, 0},
		{quant.Q6_K, 0xff, 0x80, 256 * 31 * 128 * 127, 0},
		{quant.Q6_K, 0xff, 0x7f, -256 * 31 * 127 * 127, 0},
	} {
		data := bytes.Repeat([]byte{c.fill}, 16*c.typ.Bytes())
		one := []byte{0x00, 0x3c} // 1 as a half
		for row := range 16 {
			b := data[row*c.typ.Bytes():][:c.typ.Bytes()]
			for _, f := range f16Fields(c.typ) {
				copy(b[f:], one)
			}
			if c.typ == quant.Q6_K {
				copy(b[192:208], bytes.Repeat([]byte{c.scale}, 16))
			}
		}
		for _, sign := range []float32{1, -1} {
			values := make([]float32, c.typ.Block())
			for i := range values {
				values[i] = -127 * sign
			}
			want := float32(c.isum)*sign - float32(c.msum)*sign
			m := packed(t, c.typ, 16, len(values), data)
			for _, s := range Sets() {
				out := make([]float32, 16)
				s.MatMul(out, 16, m, nil, 0, 1, prepared(t, s, c.typ, 1, len(values), values))
				for _, got := range out {
					require.Equal(t, want, got, "%s %s codes %x scales %x sign %v", s.Name, c.typ, c.fill, c.scale, sign)
				}
			}
		}
	}
}
