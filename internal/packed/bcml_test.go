package packed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// bcmlFolder has rows of so many columns, with a word for each place of a panel: of row r, the factor is r + 1, the
// offset -r, and the codes of a block go down from 15 to 0 and up again.
func bcmlFolder(rowCount, columns int) *folder {
	f := &folder{method: fmt.Sprintf(`{"quant_method": "bcml1", "shapes": {"a.weight": [%d, %d]}}`, rowCount, columns)}
	wide, panels := (columns+31)/32*5, (rowCount+63)/64
	words := make([]uint32, panels*wide*64)
	for r := range rowCount {
		for w := range wide {
			word := [5]uint32{uint32(quant.F32ToF16(-float32(r)))<<16 | uint32(quant.F32ToF16(float32(r+1))),
				0x89abcdef, 0x01234567, 0x76543210, 0xfedcba98}[w%5]
			words[(r/64*wide+w)*64+r%64] = word
		}
	}
	f.add("a.weight", element.U32, []int{panels, wide, 64}, wordsOf(words...))
	return f
}

// TestBCML1: values of several panels, the last one in part; rows that end within a block; and blocks of Q4_1 that are
// these values.
func TestBCML1(t *testing.T) {
	for _, shape := range [][2]int{{1, 32}, {64, 64}, {130, 96}, {3, 40}} {
		f := bcmlFolder(shape[0], shape[1])
		want := func(r, c int) float32 {
			code := 15 - c%32
			if c%32 >= 16 {
				code = c%32 - 16
			}
			return float32(code*(r+1) - r)
		}
		f.holds(t, "a.weight", shape[:], want)
		c, err := f.unpack()
		require.NoError(t, err)
		made := c.Made["a.weight"]
		if shape[1]%32 != 0 { // such rows are no whole blocks
			require.Zero(t, made.Blocks)
			continue
		}
		require.Equal(t, quant.Q4_1, made.Blocks)
		var out bytes.Buffer
		require.NoError(t, made.WriteBlocks(f.bytes, &out))
		values := make([]float32, shape[0]*shape[1])
		require.NoError(t, quant.Dequantize(quant.Q4_1, values, out.Bytes()))
		require.Equal(t, f.all(t, made), values)
		require.Equal(t, quant.F32ToF16(1), binary.LittleEndian.Uint16(out.Bytes()))
	}
}

func FuzzBCML1(f *testing.F) { fuzzed(f, bcmlFolder(3, 40)) }
