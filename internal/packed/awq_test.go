package packed

import (
	"fmt"
	"testing"

	"github.com/sluice-ai/sluice/internal/element"
)

// awqFolder has 8 outputs of 4 inputs, in groups of 2, with words written by hand.
func awqFolder() *folder {
	f := &folder{method: `{"quant_method": "awq", "bits": 4, "group_size": 2, "version": "gemm", "zero_point": true}`}
	f.add("a.qweight", element.I32, []int{4, 1}, wordsOf(0x76543210, 0xfedcba98, 0x00000000, 0x80000001))
	f.add("a.qzeros", element.I32, []int{2, 1}, wordsOf(0x11111111, 0x76543210))
	f.add("a.scales", element.F16, []int{2, 8}, f16s(1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1, 1, 1, 1, 1))
	return f
}

// TestAWQByHand: the lowest four bits of a word are of output 0, the next of output 2.
func TestAWQByHand(t *testing.T) {
	want := [8][4]float32{
		{-1, 7, 0, 1}, {6, 22, -4, -4}, {0, 24, -1, -1}, {16, 48, -5, -5},
		{5, 45, -2, -2}, {30, 78, -6, -6}, {14, 70, -3, -3}, {48, 112, -7, 1},
	}
	awqFolder().holds(t, "a.weight", []int{8, 4}, func(r, c int) float32 { return want[r][c] })
}

func TestAWQ(t *testing.T) {
	const outputs, inputs = 48, 96
	order := []int{0, 2, 4, 6, 1, 3, 5, 7} // the output of each four bits, as AutoAWQ lists them
	pack := func(rows int, of func(row, output int) int) []byte {
		return wordsOf(rowsOf(rows, outputs, 4, func(r, c int) int { return of(r, c/8*8+order[c%8]) })...)
	}
	for _, size := range []int{32, 64, -1} {
		t.Run(fmt.Sprint("groups of ", size), func(t *testing.T) {
			f := &folder{method: fmt.Sprintf(`{"quant_method": "awq", "bits": 4, "group_size": %d}`, size)}
			each := size
			if size < 0 {
				each = inputs
			}
			groups := (inputs-1)/each + 1
			f.add("a.qweight", element.I32, []int{inputs, outputs / 8}, pack(inputs, func(k, o int) int { return codeAt(o, k, 4) }))
			f.add("a.qzeros", element.I32, []int{groups, outputs / 8}, pack(groups, func(g, o int) int { return zeroAt(o, g, 4) }))
			f.add("a.scales", element.F16, []int{groups, outputs}, f16s(matrixOf(groups, outputs, func(g, o int) float32 {
				return scaleAt(o, g)
			})...))
			f.holds(t, "a.weight", []int{outputs, inputs}, func(o, k int) float32 {
				return float32(codeAt(o, k, 4)-zeroAt(o, k/each, 4)) * scaleAt(o, k/each)
			})
		})
	}
}

func FuzzAWQ(f *testing.F) { fuzzed(f, awqFolder()) }
