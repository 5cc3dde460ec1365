package packed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

func joined(dimension int, shapes ...[]int) (*folder, *Tensor, error) {
	f, at := new(folder), 0
	var parts []element.Tensor
	for i, s := range shapes {
		var numbers []float32
		for range s[0] * s[1] {
			numbers = append(numbers, float32(at))
			at++
		}
		f.add(string(rune('a'+i)), element.BF16, s, bf16s(numbers...))
		parts = append(parts, f.pieces[i].Tensor)
	}
	made, err := Join("w", dimension, parts)
	return f, made, err
}

// TestJoin: rows lie one behind the other, columns side by side.
func TestJoin(t *testing.T) {
	f, rows, err := joined(0, []int{2, 3}, []int{1, 3}, []int{2, 3})
	require.NoError(t, err)
	require.Equal(t, element.Tensor{Name: "w", Type: element.BF16, Shape: []int{5, 3}}, rows.Tensor)
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, f.all(t, rows))
	f, columns, err := joined(1, []int{2, 3}, []int{2, 1}, []int{2, 2})
	require.NoError(t, err)
	require.Equal(t, []int{2, 6}, columns.Shape)
	require.Equal(t, []float32{0, 1, 2, 6, 8, 9, 3, 4, 5, 7, 10, 11}, f.all(t, columns))
}

func TestJoinRefuses(t *testing.T) {
	_, _, err := joined(0, []int{2, 3}, []int{2, 4})
	require.ErrorContains(t, err, `tensor "b": is BF16 of shape [2 4], and the part before it BF16 of shape [2 3]`)
	_, _, err = joined(1, []int{2, 3}, []int{3, 3})
	require.ErrorContains(t, err, "the files do not belong together")
	_, err = Join("w", 0, []element.Tensor{{Name: "a", Type: element.I8, Shape: []int{2, 2}}})
	require.ErrorContains(t, err, `tensor "w": is of type I8`)
	vector := element.Tensor{Name: "a", Type: element.F16, Shape: []int{2}}
	_, err = Join("w", 0, []element.Tensor{vector, vector})
	require.ErrorContains(t, err, "shape is [2], want rows and columns")
	one, err := Join("w", 0, []element.Tensor{vector})
	require.NoError(t, err)
	require.Equal(t, element.Tensor{Name: "w", Type: element.F16, Shape: []int{2}}, one.Tensor)
	_, err = Join("w", 0, []element.Tensor{{Name: "a", Type: element.F16, Shape: []int{0}}})
	require.ErrorContains(t, err, `tensor "a": shape is [0]: want values`)
}
