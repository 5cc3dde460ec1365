package packed

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// fp8Bytes are 3 rows of 5 floats of 8 bits, and fp8Values what they are.
var (
	fp8Bytes  = []byte{0x38, 0xb8, 0x3c, 0x40, 0x01, 0x7e, 0xfe, 0x08, 0x07, 0x00, 0x30, 0x28, 0x44, 0x4c, 0x81}
	fp8Values = []float32{1, -1, 1.5, 2, 0x1p-9, 448, -448, 0x1p-6, 7 * 0x1p-9, 0, 0.5, 0.25, 3, 6, -0x1p-9}
)

// fp8Folder is DeepSeek's: a scale for each block of 2 rows and 3 columns.
func fp8Folder() *folder {
	f := &folder{method: `{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [2, 3], "activation_scheme": "dynamic"}`}
	f.add("a.weight", element.F8E4M3, []int{3, 5}, fp8Bytes)
	f.add("a.weight_scale_inv", element.F32, []int{2, 2}, f32s(0.5, 3, 0.1, 7))
	return f
}

func TestFloat8(t *testing.T) {
	blocks := []float32{0.5, 3, 0.1, 7}
	byBlock := func(r, c int) float32 { return fp8Values[5*r+c] * blocks[r/2*2+c/3] }
	const static = `{"quant_method": "fp8", "activation_scheme": "static"}`
	for _, c := range []struct {
		name, method, scale string
		kind                element.Type
		shape               []int
		data                []byte
		want                func(r, c int) float32
	}{
		{"blocks", fp8Folder().method, "a.weight_scale_inv", element.F32, []int{2, 2}, f32s(blocks...), byBlock},
		{"blocks in BF16", fp8Folder().method, "a.weight_scale_inv", element.BF16, []int{2, 2}, bf16s(0.5, 3, 0.125, 7),
			func(r, c int) float32 { return fp8Values[5*r+c] * []float32{0.5, 3, 0.125, 7}[r/2*2+c/3] }},
		{"blocks, powers of two", fp8Folder().method, "a.weight_scale_inv", element.F8E8M0, []int{2, 2}, []byte{126, 128, 127, 130},
			func(r, c int) float32 { return fp8Values[5*r+c] * []float32{0.5, 2, 1, 8}[r/2*2+c/3] }},
		{"one", static, "a.weight_scale", element.F32, nil, f32s(0.3), func(r, c int) float32 { return fp8Values[5*r+c] * 0.3 }},
		{"one in a list", static, "a.weight_scale", element.F16, []int{1}, f16s(0.25),
			func(r, c int) float32 { return fp8Values[5*r+c] / 4 }},
		{"rows", `{"quant_method": "fbgemm_fp8"}`, "a.weight_scale", element.F32, []int{3, 1}, f32s(1, 0.7, 3),
			func(r, c int) float32 { return fp8Values[5*r+c] * []float32{1, 0.7, 3}[r] }},
		{"rows in a list", `{"quant_method": "modelopt", "quant_algo": "FP8"}`, "a.weight_scale", element.F32, []int{3},
			f32s(1, 0.7, 3), func(r, c int) float32 { return fp8Values[5*r+c] * []float32{1, 0.7, 3}[r] }},
		{"Mistral's", static, "a.qscale_weight", element.F32, nil, f32s(2), func(r, c int) float32 { return fp8Values[5*r+c] * 2 }},
		{"compressed-tensors'", `{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"g":
			{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}}`,
			"a.weight_scale", element.BF16, []int{3, 1}, bf16s(1, 0.5, 3),
			func(r, c int) float32 { return fp8Values[5*r+c] * []float32{1, 0.5, 3}[r] }},
		{"compressed-tensors' blocks", `{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups":
			{"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "block_structure": [2, 3]}}}}`,
			"a.weight_scale", element.F32, []int{2, 2}, f32s(blocks...), byBlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &folder{method: c.method}
			f.add("a.input_scale", element.F32, []int{1}, f32s(9)) // of activations: of no use
			f.add("a.weight", element.F8E4M3, []int{3, 5}, fp8Bytes)
			f.add(c.scale, c.kind, c.shape, c.data)
			f.holds(t, "a.weight", []int{3, 5}, c.want)
		})
	}
}

// TestFloat8Stacked: experts one behind the other have scales in blocks of their own.
func TestFloat8Stacked(t *testing.T) {
	f := &folder{method: fp8Folder().method}
	f.add("experts.down_proj", element.F8E4M3, []int{2, 3, 5}, append(append([]byte(nil), fp8Bytes...), fp8Bytes...))
	f.add("experts.down_proj_scale_inv", element.F32, []int{2, 2, 2}, f32s(1, 2, 3, 4, 5, 6, 7, 8))
	f.holds(t, "experts.down_proj", []int{2, 3, 5}, func(r, c int) float32 {
		return fp8Values[r%3*5+c] * float32(1+r/3*4+r%3/2*2+c/3)
	})
}

// TestFloat8Alone: values without scales and settings are what their bytes say.
func TestFloat8Alone(t *testing.T) {
	f := new(folder)
	f.add("a", element.F8E4M3, []int{3, 5}, fp8Bytes)
	f.holds(t, "a", []int{3, 5}, func(r, c int) float32 { return fp8Values[5*r+c] })
	f = new(folder)
	f.add("a", element.F8E5M2, []int{1, 6}, []byte{0x3c, 0xc0, 0x01, 0x7b, 0x04, 0x3e})
	f.holds(t, "a", []int{1, 6}, func(_, c int) float32 { return []float32{1, -2, 0x1p-16, 57344, 0x1p-14, 1.5}[c] })
}

// TestFloat8Bytes: larger bytes are larger numbers, the sign is the highest bit, and one byte of either sign is none.
func TestFloat8Bytes(t *testing.T) {
	table := float8Table(element.F8E4M3)
	for b := range 0x7f {
		require.Equal(t, -table[b], table[b|0x80])
		if b > 0 {
			require.Greater(t, table[b], table[b-1])
		}
	}
	require.True(t, math.IsNaN(float64(table[0x7f])) && math.IsNaN(float64(table[0xff])))
	require.True(t, math.IsInf(float64(float8Table(element.F8E5M2)[0x7c]), 1))
	require.InDelta(t, 0x1p-127, powerOfTwo(0), 0)
	require.InDelta(t, float32(0x1p127), powerOfTwo(254), 0)
	require.True(t, math.IsNaN(float64(powerOfTwo(255))))
}

func FuzzFloat8(f *testing.F) { fuzzed(f, fp8Folder()) }
