package kernels

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPackTwin: every set packs to the bytes of plain Go, reads nothing behind the rows and writes nothing behind the
// matrix.
func TestPackTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		memory := &scope{TB: t}
		defer memory.end()
		typ := rapid.SampledFrom(types).Draw(rt, "type")
		nrows := rapid.IntRange(1, 50).Draw(rt, "rows")
		cols := unit(typ) * rapid.IntRange(1, 40).Draw(rt, "blocks")
		data := make([]byte, nrows*cols/typ.Block()*typ.Bytes())
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		want := packed(t, typ, nrows, cols, data).Data
		for _, s := range Sets() {
			m, err := NewMatrix(typ, nrows, cols, guarded(memory, make([]byte, len(want))))
			require.NoError(rt, err)
			require.NoError(rt, s.Pack(m, 0, guarded(memory, data)))
			require.True(rt, bytes.Equal(want, m.Data), s.Name)
		}
	})
}
