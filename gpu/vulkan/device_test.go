//go:build cgo && linux

package vulkan

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/stretchr/testify/require"
)

var _ = rand.N[int]

// device is the device under test, as a backend.
func (g *gpu) device() *Device {
	v := &Device{lib: g.lib, d: g.d, kernels: g.k, stages: make(chan *stage, uploadStages)}
	for range uploadStages {
		v.stages <- &stage{}
	}
	v.queue = &queue{d: g.d, line: g.line}
	g.t.Cleanup(func() {
		for range uploadStages {
			(<-v.stages).free(g.d)
		}
	})
	return v
}

// openModel is the backendtest.Loader.
func openModel(t testing.TB, path string, edit func(*meta.Map)) *backendtest.Model {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	if edit != nil {
		edit(&f.Meta)
	}
	has := func(name string) bool { _, ok := f.Tensor(name); return ok }
	p, err := arch.Record(&f.Meta, has, arch.Options{})
	require.NoError(t, err)
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

func logits(t *testing.T, d backend.Device, m *backendtest.Model, tokens []int32, chunks ...int) []float32 {
	n := len(tokens)
	c := backend.Config{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3), MaxRows: n, MaxWanted: n}
	x, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	var all []float32
	for pos, i := 0, 0; pos < n; i++ {
		k := min(chunks[min(i, len(chunks)-1)], n-pos)
		s := x.Steps()[i%len(x.Steps())]
		s.Tokens, s.Wanted = tokens[pos:pos+k], nil
		s.Spans = []backend.Span{{Rows: k, Pos: pos, Tables: backendtest.Tables(m.Program, []int32{2, 0, 1})}}
		for r := range k {
			s.Wanted = append(s.Wanted, int32(r))
		}
		for seg := range m.Segments {
			require.NoError(t, x.Enqueue(seg, s))
		}
		done := make(chan error, 1)
		x.Finish(s, func(err error) { done <- err })
		require.NoError(t, <-done)
		all = append(all, s.Logits[:k*m.OutputWidth()]...)
		pos += k
	}
	return all
}

func TestMini(t *testing.T) {
	m := openModel(t, "../../internal/mini/mini-Q4_K_M.gguf", nil)
	d := open(t).device()
	c, err := cpu.New(2, "")
	require.NoError(t, err)
	defer c.Close()
	var tokens []int32
	for i := range 40 {
		tokens = append(tokens, int32(i*97%8000))
	}
	want := logits(t, c, m, tokens, 40)
	got := logits(t, d, m, tokens, 40)
	sum, size := 0.0, 0.0
	for i := range got {
		e := float64(got[i] - want[i])
		sum += e * e
		size += float64(want[i] * want[i])
	}
	t.Log("relative", sum/size)
	require.Less(t, sum/size, 0.01)
	require.Equal(t, got, logits(t, d, m, tokens, 5, 1, 7))
	require.Equal(t, got, logits(t, d, m, tokens, 1))
}

func TestConformance(t *testing.T) {
	backendtest.Conformance(t, open(t).device(), ref.New(), []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_K, quant.Q6_K})
}
