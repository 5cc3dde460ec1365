//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayoutOf(t *testing.T) {
	var at [2][squareParts]int
	for i := range squareParts { // two squares of 16 × 8, as NVIDIA has them
		lane, e := i/8, i%8
		row, column := lane/4+e/2%2*8, lane%4*2+e%2+e/4*8
		at[0][i], at[1][i] = row*16+column, row*16+column
	}
	const layout = 0b11110000_10101010_11001100
	require.Equal(t, uint32(layout), layoutOf(&at))
	floats := at
	floats[1][9], floats[1][10] = at[1][10], at[1][9]
	require.Zero(t, layoutOf(&floats), "whole numbers lie elsewhere")
	for i := range squareParts { // a lane has half a row
		at[0][i], at[1][i] = i, i
	}
	require.Zero(t, layoutOf(&at))
}
