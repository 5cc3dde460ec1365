package gguf

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// of writes and opens a file of tensors of 8 bytes, each filled with its name.
func of(t *testing.T, names ...string) *File {
	path := filepath.Join(t.TempDir(), "f.gguf")
	out, err := os.Create(path)
	require.NoError(t, err)
	var tensors []Tensor
	for _, name := range names {
		tensors = append(tensors, Tensor{Name: name, Type: quant.F32, Shape: []int{2}})
	}
	require.NoError(t, Write(out, new(meta.Map), tensors, func(x *Tensor, w io.Writer) error {
		_, err := io.WriteString(w, (x.Name + "........")[:8])
		return err
	}))
	require.NoError(t, out.Close())
	f, err := Open(path)
	require.NoError(t, err)
	return f
}

// TestBorrow: what a file lacks and another one has it reads from there, for as long as it is open.
func TestBorrow(t *testing.T) {
	lender, f := of(t, "a", "b", "c"), of(t, "c", "d")
	f.Borrow(lender, "b", "c", "none")
	f.Borrow(lender, "b") // it is there
	require.Len(t, f.Tensors, 3)
	require.Equal(t, 2, f.Parts())
	require.NoError(t, lender.Close())
	read := func(file *File, name string) (text string) {
		x, ok := file.Tensor(name)
		require.True(t, ok)
		require.NoError(t, file.View(x, func(data []byte) error { text = string(data); return nil }))
		return text
	}
	require.Equal(t, "b.......", read(f, "b"))
	require.Equal(t, "c.......", read(f, "c"))
	b, _ := f.Tensor("b")
	c, _ := f.Tensor("c")
	require.Equal(t, lender.parts[0].path, f.Part(b.Part).Path)
	require.NotEqual(t, lender.parts[0].path, f.Part(c.Part).Path)
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.Nil(t, lender.parts[0].mapping, "the last one closes it")
	own, _ := lender.Tensor("b")
	require.Error(t, lender.View(own, func([]byte) error { return nil }))

	lender, f = of(t, "a"), of(t, "d")
	f.Borrow(lender, "a")
	require.NoError(t, f.Close())
	require.Equal(t, "a.......", read(lender, "a"), "it is its owner's still")
	require.NoError(t, lender.Close())
}
