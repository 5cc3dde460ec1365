package quant

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecodersGolden compares what arbitrary blocks decode to, by bits, with ggml's decoders. The blocks of a type are
// the SHA-256 of "Q4_K 0", "Q4_K 1" and so on, one after the other.
func TestDecodersGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/decoded.json")
	require.NoError(t, err)
	var golden struct{ Decoded map[string]string }
	require.NoError(t, json.Unmarshal(text, &golden))
	for id := range formats {
		typ := Type(id)
		if !HasCodec(typ) || typ.Block() == 1 {
			continue
		}
		require.Contains(t, golden.Decoded, typ.String())
		const blocks = 256
		var raw []byte
		for i := 0; len(raw) < blocks*typ.Bytes(); i++ {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", typ, i))
			raw = append(raw, sum[:]...)
		}
		y := make([]float32, blocks*typ.Block())
		require.NoError(t, Dequantize(typ, y, raw[:blocks*typ.Bytes()]))
		hash := sha256.New()
		for _, v := range y {
			bits := math.Float32bits(v)
			if v != v {
				bits = 0x7fc00000 // which NaN comes out depends on the machine
			}
			hash.Write(binary.LittleEndian.AppendUint32(nil, bits))
		}
		require.Equal(t, golden.Decoded[typ.String()], hex.EncodeToString(hash.Sum(nil)[:8]), typ)
	}
}
