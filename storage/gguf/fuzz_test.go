package gguf

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// FuzzParse checks that no file panics or reads outside its bytes, that what Parse accepts is consistent, and that
// writing it again gives the same directory.
func FuzzParse(f *testing.F) {
	f.Add(good().bytes())
	for _, c := range broken {
		r := good()
		c.edit(r)
		if b := r.bytes(); len(b) < 1<<12 {
			f.Add(b)
		}
	}
	var small bytes.Buffer
	m := new(meta.Map)
	m.Set("f", []float64{1, 2})
	m.Set("b", []bool{true})
	m.Set(keyAlignment, uint32(8))
	require.NoError(f, Write(&small, m, []Tensor{{Name: "t", Type: quant.I8, Shape: []int{1, 2, 1, 3}}}, fill))
	f.Add(small.Bytes())

	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("m.gguf", bytes.Clone(data)) // a clone has no spare capacity to hide an overrun
		if err != nil {
			require.Regexp(t, `^m\.gguf: .+`, err.Error())
			return
		}
		for i := range file.Tensors {
			x := &file.Tensors[i]
			require.NoError(t, file.View(x, func(b []byte) error {
				require.Len(t, b, int(x.Size))
				return nil
			}))
		}
		if n, _ := file.Meta.Int(keyAlignment); n > 1<<20 {
			return // a legal file, too large to write here
		}
		var again bytes.Buffer
		require.NoError(t, Write(&again, &file.Meta, file.Tensors, fill))
		second, err := Parse("m.gguf", again.Bytes())
		require.NoError(t, err)
		require.Equal(t, file.Meta.Keys(), second.Meta.Keys())
		require.Len(t, second.Tensors, len(file.Tensors))
		for i, x := range file.Tensors {
			x.Offset = second.Tensors[i].Offset // gaps between tensors are not kept
			require.Equal(t, x, second.Tensors[i])
		}
	})
}
