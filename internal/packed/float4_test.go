package packed

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// float4Codes are 2 rows of 32 floats of 4 bits: all codes in order, all in reverse; threes, ones and a six at last.
func float4Codes() (out []byte) {
	for i := range byte(8) {
		out = append(out, (2*i+1)<<4|2*i)
	}
	for i := range byte(8) {
		out = append(out, (14-2*i)<<4|(15-2*i))
	}
	for range 8 {
		out = append(out, 0x55)
	}
	return append(out, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x72)
}

// float4Wants are their values times the scale of their group, for groups of 16.
func float4Wants(scale func(row, group int) float32) func(row, column int) float32 {
	ordered := [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}
	return func(row, column int) float32 {
		v := float32(3)
		switch {
		case row == 0 && column < 16:
			v = ordered[column]
		case row == 0:
			v = ordered[31-column]
		case column == 31:
			v = 6
		case column >= 16:
			v = 1
		}
		return v * scale(row, column/16)
	}
}

// Scales of NVFP4 (E4M3): 1, 0.5, 448 and 2⁻⁹; of MXFP4: 1/4 and 2.
var (
	nvScales  = []byte{0x38, 0x30, 0x7e, 0x01}
	nvNumbers = [2][2]float32{{1, 0.5}, {448, 0x1p-9}}
	mxScales  = []byte{125, 128}
	mxNumbers = [2]float32{0.25, 2}
	nvScale   = func(factor float32) func(r, g int) float32 {
		return func(r, g int) float32 { return nvNumbers[r][g] * factor }
	}
	mxScaleRow = func(r, _ int) float32 { return mxNumbers[r] }
)

func modelOptFolder() *folder {
	f := &folder{method: `{"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}`}
	f.add("a.weight", element.U8, []int{2, 16}, float4Codes())
	f.add("a.weight_scale", element.F8E4M3, []int{2, 2}, nvScales)
	f.add("a.weight_scale_2", element.F32, nil, f32s(0.3))
	return f
}

// compressedFloat4Folder has groups of 16 with a factor, or of 32 without.
func compressedFloat4Folder(kind string, group int) *folder {
	f := &folder{method: fmt.Sprintf(`{"quant_method": "compressed-tensors", "format": "%s-pack-quantized", "config_groups":
		{"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": %d}}}, "ignore": []}`,
		kind, group)}
	f.add("a.weight_packed", element.U8, []int{2, 16}, float4Codes())
	if group == 32 {
		f.add("a.weight_scale", element.U8, []int{2, 1}, mxScales)
		return f
	}
	f.add("a.weight_scale", element.F8E4M3, []int{2, 2}, nvScales)
	f.add("a.weight_global_scale", element.F32, []int{1}, f32s(3))
	return f
}

func mlxFloat4Folder() *folder {
	f := &folder{mlx: `{"group_size": 16, "bits": 4, "mode": "nvfp4"}`}
	f.add("a.weight", element.U32, []int{2, 4}, float4Codes())
	f.add("a.scales", element.U8, []int{2, 2}, nvScales)
	return f
}

// TestFloat4: each tool's folder has the numbers that its bytes stand for, in float32: scales are multiplied by the
// factor first, or divided by it, and rounded.
func TestFloat4(t *testing.T) {
	modelOptFolder().holds(t, "a.weight", []int{2, 32}, float4Wants(nvScale(0.3)))
	compressedFloat4Folder("nvfp4", 16).holds(t, "a.weight", []int{2, 32}, float4Wants(func(r, g int) float32 {
		return nvNumbers[r][g] / 3
	}))
	compressedFloat4Folder("mxfp4", 32).holds(t, "a.weight", []int{2, 32}, float4Wants(mxScaleRow))
	mlxFloat4Folder().holds(t, "a.weight", []int{2, 32}, float4Wants(nvScale(1)))
	mx := &folder{mlx: `{"group_size": 32, "bits": 4, "mode": "mxfp4"}`}
	mx.add("a.weight", element.U32, []int{2, 1, 4}, float4Codes()) // a stack
	mx.add("a.scales", element.U8, []int{2, 1, 1}, mxScales)
	mx.holds(t, "a.weight", []int{2, 1, 32}, float4Wants(mxScaleRow))
}

// TestFloat4Zeros: the code of minus zero stays one.
func TestFloat4Zeros(t *testing.T) {
	c, err := modelOptFolder().unpack()
	require.NoError(t, err)
	got := modelOptFolder().all(t, c.Made["a.weight"])
	require.False(t, math.Signbit(float64(got[0])))
	require.True(t, math.Signbit(float64(got[8])))
}

// TestFloat4BesideOthers: modules of other groups, and those that are not packed, stay what they are; what is said of
// activations is left out.
func TestFloat4BesideOthers(t *testing.T) {
	f := compressedFloat4Folder("nvfp4", 16)
	f.method = `{"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": {
		"g0": {"targets": ["a"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}},
		"g1": {"targets": ["b"], "weights": {"num_bits": 8, "type": "float"}}}}`
	f.add("a.input_global_scale", element.F32, []int{1}, f32s(5)) // of activations
	f.add("b.weight", element.F8E4M3, []int{1, 2}, []byte{0x38, 0xb8})
	f.add("b.weight_scale", element.F32, []int{1}, f32s(0.5))
	f.add("c.weight", element.BF16, []int{1, 1}, bf16s(1))
	c, err := f.unpack()
	require.NoError(t, err)
	require.Len(t, c.Tensors, 3)
	require.Equal(t, []float32{0.5, -0.5}, f.all(t, c.Made["b.weight"]))
	require.Nil(t, c.Made["c.weight"])
}

// TestMLXModes: what a mode cannot have is refused.
func TestMLXModes(t *testing.T) {
	for text, want := range map[string]string{
		`{"group_size": 32, "bits": 4, "mode": "nvfp4"}`: "mode is nvfp4 with bits 4 and group_size 32, want 4 and 16",
		`{"group_size": 32, "bits": 8, "mode": "mxfp4"}`: "mode is mxfp4 with bits 8 and group_size 32, want 4 and 32",
		`{"group_size": 32, "bits": 8, "mode": "mxfp8"}`: `mode is "mxfp8", want affine, mxfp4 or nvfp4`,
	} {
		_, err := (&folder{mlx: text}).unpack()
		require.EqualError(t, err, "config.json: quantization: "+want)
	}
}

func FuzzFloat4(f *testing.F) { fuzzed(f, modelOptFolder()) }
