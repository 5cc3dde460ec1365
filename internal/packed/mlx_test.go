package packed

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// mlxFolder has 2 outputs of 64 inputs, in groups of 32.
func mlxFolder() *folder {
	f := &folder{mlx: `{"group_size": 32, "bits": 4, "b": false}`}
	f.add("a.weight", element.U32, []int{2, 8}, wordsOf(0x76543210, 0xfedcba98, 0, 0, 1, 0, 0, 0x80000000,
		0x11111111, 0x11111111, 0x11111111, 0x11111111, 0x22222222, 0x22222222, 0x22222222, 0x22222222))
	f.add("a.scales", element.BF16, []int{2, 2}, bf16s(0.5, 2, 1, 3))
	f.add("a.biases", element.BF16, []int{2, 2}, bf16s(-4, -16, 0.25, -0.25))
	return f
}

func TestMLXByHand(t *testing.T) {
	mlxFolder().holds(t, "a.weight", []int{2, 64}, func(r, c int) float32 {
		switch {
		case r == 1 && c < 32:
			return 1.25
		case r == 1:
			return 5.75
		case c < 16:
			return float32(c)/2 - 4
		case c < 32:
			return -4
		case c == 32:
			return -14
		case c == 63:
			return 0
		}
		return -16
	})
}

// TestMLX: every number of bits and size of groups, matrices and stacks of them.
func TestMLX(t *testing.T) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, size := range []int{32, 64, 128} {
			for _, stack := range []int{0, 3} {
				t.Run(fmt.Sprint(bits, " bits, groups of ", size, ", ", stack), func(t *testing.T) {
					const outputs, inputs = 4, 256
					rows, lead := outputs, []int{outputs}
					if stack > 0 {
						rows, lead = stack*outputs, []int{stack, outputs}
					}
					shape := func(n int) []int { return append(append([]int(nil), lead...), n) }
					bias := func(r, g int) float32 { return -scaleAt(g, r) * 5 }
					f := &folder{method: fmt.Sprintf(`{"group_size": %d, "bits": %d, "mode": "affine"}`, size, bits)}
					f.add("a.weight", element.U32, shape(inputs*bits/32),
						wordsOf(rowsOf(rows, inputs, bits, func(r, c int) int { return codeAt(r, c, bits) })...))
					f.add("a.scales", element.F16, shape(inputs/size), f16s(matrixOf(rows, inputs/size, scaleAt)...))
					f.add("a.biases", element.F16, shape(inputs/size), f16s(matrixOf(rows, inputs/size, bias)...))
					f.holds(t, "a.weight", shape(inputs), func(r, c int) float32 {
						return float32(codeAt(r, c, bits))*scaleAt(r, c/size) + bias(r, c/size)
					})
				})
			}
		}
	}
}

// TestMLXByModule: a module may be packed in its own way, or not at all.
func TestMLXByModule(t *testing.T) {
	f := mlxFolder()
	f.mlx = `{"group_size": 128, "bits": 8, "a": {"group_size": 32, "bits": 4}, "b": {"group_size": 5}}`
	f.add("b.weight", element.BF16, []int{2, 2}, make([]byte, 8))
	c, err := f.unpack()
	require.NoError(t, err)
	require.Len(t, c.Tensors, 2)
	require.Equal(t, []int{2, 64}, c.Tensors[0].Shape)
	require.Equal(t, element.BF16, c.Tensors[1].Type)
	f.mlx = `{"group_size": 32, "bits": 4, "a": {"mode": "mxfp8"}}`
	_, err = f.unpack()
	require.ErrorContains(t, err, `tensor "a.weight": config.json: quantization: mode is "mxfp8", want affine`)
}

func FuzzMLX(f *testing.F) { fuzzed(f, mlxFolder()) }
