package quant

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

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

// TestEncodersGolden: the same values become the same bytes on every machine, also where the compiler could fuse
// products and sums (try GOAMD64=v3; a single fused sum may change no choice, several do). What the bytes are is the
// search's business: -update when it changes.
func TestEncodersGolden(t *testing.T) {
	const file = "testdata/encoded.json"
	rng := rand.New(rand.NewPCG(1, 2))
	x, importance := make([]float32, 8192), make([]float32, 8192)
	for i := range x { // sums of a few dice, some blocks larger than others: exact in float32
		x[i] = float32(rng.IntN(2001)+rng.IntN(2001)+rng.IntN(2001)-3000) / 1024 * float32(1+i/256%5)
		importance[i] = float32(1+rng.IntN(100)) / 16
	}
	got := map[string]string{}
	for _, typ := range encoders() {
		size, err := typ.RowBytes(len(x))
		require.NoError(t, err)
		hash, packed := sha256.New(), make([]byte, size)
		require.NoError(t, QuantizeRow(typ, packed, x, nil))
		hash.Write(packed)
		require.NoError(t, QuantizeRow(typ, packed, x, importance))
		hash.Write(packed)
		got[typ.String()] = hex.EncodeToString(hash.Sum(nil)[:8])
	}
	if *update {
		text, err := json.MarshalIndent(got, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := map[string]string{}
	require.NoError(t, json.Unmarshal(text, &want))
	require.Equal(t, want, got)
}
