package packed

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// gptqFolder has 8 outputs of 8 inputs, in groups of 4, with words written by hand.
func gptqFolder() *folder {
	f := &folder{method: `{"quant_method": "gptq", "bits": 4, "group_size": 4, "desc_act": false, "sym": false}`}
	f.add("a.g_idx", element.I32, []int{8}, wordsOf(0, 0, 0, 0, 1, 1, 1, 1))
	f.add("a.qweight", element.I32, []int{1, 8},
		wordsOf(0x76543210, 0x00000001, 0xf0000000, 0x88888888, 0x12345678, 0xffffffff, 0x0000f000, 0xdeadbeef))
	f.add("a.qzeros", element.I32, []int{2, 1}, wordsOf(0x76543210, 0x77777777))
	f.add("a.scales", element.F16, []int{2, 8}, f16s(1, 2, 3, 4, 5, 6, 7, 8, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25))
	return f
}

// TestGPTQByHand: zeros of the first version are stored less one.
func TestGPTQByHand(t *testing.T) {
	want := [8][8]float32{
		{-1, 0, 1, 2, -2, -1.5, -1, -0.5}, {-2, -4, -4, -4, -4, -4, -4, -4}, {-9, -9, -9, -9, -4, -4, -4, 3.5},
		{16, 16, 16, 16, 0, 0, 0, 0}, {15, 10, 5, 0, -2, -2.5, -3, -3.5}, {54, 54, 54, 54, 3.5, 3.5, 3.5, 3.5},
		{-49, -49, -49, 56, -4, -4, -4, -4}, {56, 48, 48, 24, 1.25, 0.5, 1.5, 1.25},
	}
	gptqFolder().holds(t, "a.weight", []int{8, 8}, func(r, c int) float32 { return want[r][c] })
}

// TestGPTQ: every number of bits, both versions, and columns in any order of groups.
func TestGPTQ(t *testing.T) {
	for _, bits := range []int{2, 3, 4, 8} {
		for _, version := range []string{"", "gptq", "gptq_v2"} {
			for _, ordered := range []string{"none", "in order", "mixed", "never numbered"} {
				t.Run(fmt.Sprint(bits, " bits ", version, ", ", ordered), func(t *testing.T) {
					const outputs, inputs, size = 64, 96, 32
					group := func(c int) int { return c / size }
					if ordered == "mixed" {
						group = func(c int) int { return c * 5 % 3 }
					}
					f := &folder{method: fmt.Sprintf(`{"quant_method": "gptq", "bits": %d, "group_size": %d, "checkpoint_format": %q}`,
						bits, size, version)}
					f.add("a.qweight", element.I32, []int{words(inputs, bits), outputs},
						wordsOf(columnsOf(inputs, outputs, bits, func(k, o int) int { return codeAt(o, k, bits) })...))
					f.add("a.qzeros", element.I32, []int{3, words(outputs, bits)},
						wordsOf(rowsOf(3, outputs, bits, func(g, o int) int { return zeroAt(o, g, bits) })...))
					f.add("a.scales", element.F16, []int{3, outputs}, f16s(matrixOf(3, outputs, func(g, o int) float32 {
						return scaleAt(o, g)
					})...))
					if ordered != "none" {
						f.add("a.g_idx", element.I32, []int{inputs}, wordsOf(matrixOf(1, inputs, func(_, k int) uint32 {
							if ordered == "never numbered" {
								return 0xffffffff
							}
							return uint32(group(k))
						})...))
					}
					f.holds(t, "a.weight", []int{outputs, inputs}, func(o, k int) float32 {
						zero := zeroAt(o, group(k), bits)
						if version != "gptq_v2" {
							zero++
						}
						return float32(codeAt(o, k, bits)-zero) * scaleAt(o, group(k))
					})
				})
			}
		}
	}
}

// TestGPTQByModule: bits and groups that differ from module to module are what the shapes say.
func TestGPTQByModule(t *testing.T) {
	f := gptqFolder()
	f.method = `{"quant_method": "gptq", "bits": 8, "group_size": 128, "dynamic": {"+:a": {"bits": 4, "group_size": 4}}}`
	c, err := f.unpack()
	require.NoError(t, err)
	require.Equal(t, []int{8, 8}, c.Tensors[0].Shape)
	require.InDelta(t, -2, f.all(t, c.Made["a.weight"])[4], 0)
}

func FuzzGPTQ(f *testing.F) { fuzzed(f, gptqFolder()) }
