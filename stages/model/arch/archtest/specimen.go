package archtest

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Specimen is the path of a specimen's file, which the test removes; empty if there is none of that name.
func Specimen(t testing.TB, name string) string {
	t.Helper()
	i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == name })
	if i < 0 {
		return ""
	}
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	path := filepath.Join(t.TempDir(), name+".gguf")
	Write(t, path, &backendtest.Specimens[i], &f.Meta)
	return path
}

// Write writes a specimen's file: all tensors that its architecture asks for, those of the optional ones that it has,
// and those that llama.cpp asks for. It says what the program is for.
func Write(t testing.TB, path string, s *backendtest.Specimen, tokenizer *meta.Map) ir.Form {
	t.Helper()
	m := s.Describe(tokenizer)
	p, err := arch.Record(m, s.Has, arch.Options{})
	require.NoError(t, err)
	var tensors []gguf.Tensor
	data := map[string][]byte{}
	programs := []*ir.Program{p}
	ear, err := arch.RecordEar(m, s.Has)
	require.NoError(t, err)
	if ear != nil {
		programs = append(programs, ear.Program)
	}
	for _, p := range programs {
		for i, bytes := range s.Weights(t, p) {
			w := &p.Weights[i]
			for _, name := range s.Named(p, w) {
				if data[name] != nil {
					continue // both have it
				}
				tensors = append(tensors, gguf.Tensor{Name: name, Type: s.Type(name), Shape: s.Shape(w)})
				if data[name] = bytes; s.Type(name) == quant.I32 {
					data[name] = whole(bytes)
				}
			}
		}
	}
	f, err := os.Create(path)
	require.NoError(t, err)
	err = gguf.Write(f, m, tensors, func(t *gguf.Tensor, w io.Writer) error {
		_, err := w.Write(data[t.Name])
		return err
	})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return p.Form()
}

// whole are float32 as I32.
func whole(data []byte) (out []byte) {
	for i := 0; i < len(data); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
		out = binary.LittleEndian.AppendUint32(out, uint32(int32(x)))
	}
	return out
}
