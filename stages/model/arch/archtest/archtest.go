// Package archtest reads model files for tests of devices: recorded by their architecture, and bound.
//
// Only tests import it.
package archtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Open is the backendtest.Loader of GGUF files. The file is closed when the test ends.
func Open(t testing.TB, path string, edit func(*meta.Map)) *backendtest.Model {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	if edit != nil {
		edit(&f.Meta)
	}
	return Model(t, f)
}

// Golden holds a device to the answers that were recorded of trained models, wherever the recorder and exact arithmetic
// are sure: K-quants, experts, and bfloat16.
func Golden(t *testing.T, d backend.Device) {
	t.Helper()
	for _, name := range []string{"mini-Q4_K_M", "moe-Q4_K_M", "draft-bf16"} {
		m := Open(t, filepath.Join(testref.Dir(t), "models", name+".gguf"), nil)
		backendtest.Golden(t, d, m, name, (*testref.Answer).SureIfExact)
	}
}

// Specimens holds a device to the oracle in the architectures that have no fixture.
func Specimens(t *testing.T, d, oracle backend.Device) {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	backendtest.LikeOracle(t, backendtest.Every{Device: d}, oracle, &f.Meta, 1,
		func(m *meta.Map, has func(string) bool) (*ir.Program, error) {
			return arch.Record(m, has, arch.Options{})
		})
}

// Mini compares a device's logits of the embedded model, whose weights are Q4_K and Q6_K, with another one's, for so
// many tokens, and with its own in chunks of other sizes, to the bit.
func Mini(t *testing.T, d, other backend.Device, tokens int) {
	t.Helper()
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	m := Model(t, f)
	text := make([]int32, tokens)
	for i := range text {
		text[i] = int32(i * 97 % 8000)
	}
	x := backendtest.Run(t, d, m, tokens)
	got, want := x.Logits(text, tokens), backendtest.Run(t, other, m, tokens).Logits(text, tokens)
	require.Less(t, judge.Relative(got, want), 0.1)
	require.Equal(t, got, x.Logits(text, 5, 1, 7))
	require.Equal(t, got, x.Logits(text, 1))
}

// Model records and binds the model of a file.
func Model(t testing.TB, f *gguf.File) *backendtest.Model { return model(t, f, arch.Options{}) }

// Adapted is Model with places for adapters.
func Adapted(t testing.TB, f *gguf.File) *backendtest.Model {
	return model(t, f, arch.Options{Adapted: true})
}

func model(t testing.TB, f *gguf.File, o arch.Options) *backendtest.Model {
	t.Helper()
	has := func(name string) bool { _, ok := f.Tensor(name); return ok }
	p, err := arch.Record(&f.Meta, has, o)
	require.NoError(t, err)
	return bound(t, f, p)
}

// Ear is the encoder that reads prompts for the model of a file, and the token that answers begin behind.
func Ear(t testing.TB, path string) (m *backendtest.Model, begin int32) {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	e, err := arch.RecordEar(&f.Meta, func(name string) bool { _, ok := f.Tensor(name); return ok })
	require.NoError(t, err)
	return bound(t, f, e.Program), e.Begin
}

func bound(t testing.TB, f *gguf.File, p *ir.Program) *backendtest.Model {
	t.Helper()
	tensors := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		tensors[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	m, err := backendtest.NewModel(p, tensors, func(i int, use func([]byte) error) error {
		return f.View(&f.Tensors[i], use)
	})
	require.NoError(t, err)
	return m
}
