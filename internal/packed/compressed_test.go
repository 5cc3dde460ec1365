package packed

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// settingsOf are settings of compressed-tensors with one group.
func settingsOf(format string, bits int, others string) string {
	return fmt.Sprintf(`{"quant_method": "compressed-tensors", "format": %q, "config_groups": {"group_0": {"targets":
		["Linear"], "weights": {"num_bits": %d, "type": "int"%s}}}, "ignore": ["lm_head"]}`, format, bits, others)
}

func shapeBytes(d ...int) (out []byte) {
	for _, n := range d {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	return out
}

// compressedFolder has 2 outputs of 16 inputs, in groups of 8, with words and zeros written by hand.
func compressedFolder() *folder {
	f := &folder{method: settingsOf("pack-quantized", 4, `, "symmetric": false, "strategy": "group", "group_size": 8`)}
	f.add("a.weight_packed", element.I32, []int{2, 2}, wordsOf(0x76543210, 0xfedcba98, 0x88888888, 0x0000000f))
	f.add("a.weight_scale", element.BF16, []int{2, 2}, bf16s(1, 0.5, 2, 0.25))
	f.add("a.weight_shape", element.I64, []int{2}, shapeBytes(2, 16))
	f.add("a.weight_zero_point", element.I32, []int{1, 2}, wordsOf(0x00000080, 0x000000f1))
	f.add("a.weight_g_idx", element.I32, []int{16}, wordsOf(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1))
	return f
}

func TestCompressedByHand(t *testing.T) {
	want := [2][16]float32{
		{0, 1, 2, 3, 4, 5, 6, 7, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, -3.75, -3.75, -3.75, -3.75, -3.75, -3.75, -3.75},
	}
	compressedFolder().holds(t, "a.weight", []int{2, 16}, func(r, c int) float32 { return want[r][c] })
}

// TestCompressedWords: every number of bits, with zeros and without, one scale for a group or for a row.
func TestCompressedWords(t *testing.T) {
	for _, bits := range []int{2, 3, 4, 5, 6, 7, 8} {
		for _, symmetric := range []bool{true, false} {
			for _, size := range []int{32, -1} {
				t.Run(fmt.Sprint(bits, " bits, ", symmetric, ", groups of ", size), func(t *testing.T) {
					const outputs, inputs = 12, 96
					each := size
					if size < 0 {
						each = inputs
					}
					groups := inputs / each
					f := &folder{method: settingsOf("pack-quantized", bits, fmt.Sprintf(`, "symmetric": %v, "group_size": %d`,
						symmetric, size))}
					f.add("a.weight_packed", element.I32, []int{outputs, words(inputs, bits)},
						wordsOf(rowsOf(outputs, inputs, bits, func(r, c int) int { return codeAt(r, c, bits) })...))
					f.add("a.weight_scale", element.F16, []int{outputs, groups}, f16s(matrixOf(outputs, groups, scaleAt)...))
					if !symmetric {
						f.add("a.weight_zero_point", element.I32, []int{words(outputs, bits), groups},
							wordsOf(columnsOf(outputs, groups, bits, func(r, g int) int { return zeroAt(r, g, bits) })...))
					}
					f.holds(t, "a.weight", []int{outputs, inputs}, func(r, c int) float32 {
						zero := 1 << (bits - 1)
						if !symmetric {
							zero = zeroAt(r, c/each, bits)
						}
						return float32(codeAt(r, c, bits)-zero) * scaleAt(r, c/each)
					})
				})
			}
		}
	}
}

// TestCompressedBytes: whole numbers of 8 bits, with a scale for a row, for all or for a group.
func TestCompressedBytes(t *testing.T) {
	codes := []byte{0, 1, 255, 127, 128, 2, 3, 4}
	number := func(r, c int) float32 { return float32(int8(codes[4*r+c])) }
	for _, c := range []struct {
		name, others  string
		shape         []int
		scales, zeros []byte
		want          func(r, c int) float32
	}{
		{"rows", "", []int{2, 1}, f32s(0.5, 3), nil, func(r, c int) float32 { return number(r, c) * []float32{0.5, 3}[r] }},
		{"all", "", []int{1}, f32s(0.3), nil, func(r, c int) float32 { return number(r, c) * 0.3 }},
		{"groups", `, "group_size": 2`, []int{2, 2}, f32s(1, 2, 3, 4), nil,
			func(r, c int) float32 { return number(r, c) * float32(1+2*r+c/2) }},
		{"zeros", `, "symmetric": false`, []int{2, 1}, f32s(0.5, 3), []byte{2, 0xff},
			func(r, c int) float32 { return (number(r, c) - []float32{2, -1}[r]) * []float32{0.5, 3}[r] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &folder{method: settingsOf("int-quantized", 8, c.others)}
			f.add("a.weight", element.I8, []int{2, 4}, codes)
			f.add("a.weight_scale", element.F32, c.shape, c.scales)
			if c.zeros != nil {
				f.add("a.weight_zero_point", element.I8, c.shape, c.zeros)
			}
			f.holds(t, "a.weight", []int{2, 4}, c.want)
		})
	}
}

// TestCompressedTargets: names come before expressions, and those before classes.
func TestCompressedTargets(t *testing.T) {
	w := func(bits int) compressedGroup { return compressedGroup{Weights: &compressedWeights{Bits: bits}} }
	groups := map[string]compressedGroup{"a": w(2), "b": w(3), "c": w(4), "d": {Targets: []string{"Linear"}}, "f": w(8)}
	for name, to := range map[string]string{"a": "Linear", "b": `re:.*experts\.\d+`, "c": "layers.0.experts.1",
		"f": "lm_head"} {
		g := groups[name]
		g.Targets = []string{to}
		groups[name] = g
	}
	targets, err := targetsOf(groups)
	require.NoError(t, err)
	for module, bits := range map[string]int{"layers.0.experts.1": 4, "layers.0.experts.2": 3, "layers.0.q_proj": 2,
		"lm_head": 8} {
		found, err := targets.find(module)
		require.NoError(t, err)
		require.Equal(t, bits, found.Bits, module)
	}
	groups["e"] = compressedGroup{Targets: []string{"Embedding"}, Weights: &compressedWeights{Bits: 8}}
	targets, err = targetsOf(groups)
	require.NoError(t, err)
	_, err = targets.find("layers.0.q_proj")
	require.ErrorContains(t, err, "classes of different bits")
}

func FuzzCompressed(f *testing.F) { fuzzed(f, compressedFolder()) }
