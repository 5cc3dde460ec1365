package convert_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestPackage: a package becomes the file that Mistral's folder of its numbers becomes, its compressed matrices as
// blocks of Q4_1 of these numbers, to the bit.
func TestPackage(t *testing.T) {
	plan := func(f *convert.Folder) (*convert.Model, error) { return convert.Plan(f, convert.Options{}) }
	pack, plain := converttest.CgmlFolders(t)
	got, want := converttest.Convert(t, pack, plan), converttest.Convert(t, plain, plan)
	require.ElementsMatch(t, want.Meta.Keys(), got.Meta.Keys())
	for _, key := range want.Meta.Keys() {
		wanted, _ := want.Meta.Get(key)
		value, _ := got.Meta.Get(key)
		if key != "general.name" {
			require.Equal(t, wanted, value, key)
		}
	}
	blocks := 0
	all := bytesOf(t, got)
	for name, data := range bytesOf(t, want) {
		x, ok := got.Tensor(name)
		require.True(t, ok, name)
		if x.Type == quant.F32 {
			require.Equal(t, data, all[name], name)
			continue
		}
		require.Equal(t, quant.Q4_1, x.Type, name)
		values := make([]float32, len(data)/4)
		require.NoError(t, quant.Dequantize(quant.Q4_1, values, []byte(all[name])))
		for i, v := range values {
			require.Equal(t, data[4*i:4*i+4], string(le32(math.Float32bits(v))), "%s, value %d", name, i)
		}
		blocks++
	}
	require.Equal(t, 14, blocks)
}

func le32(x uint32) []byte { return []byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)} }
