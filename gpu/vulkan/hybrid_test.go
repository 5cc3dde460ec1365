//go:build cgo && linux

package vulkan

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
)

// TestHybrid: programs of which some segments are computed by the processor.
func TestHybrid(t *testing.T) {
	if testing.Short() {
		t.Skip("a CPU takes a while to compile kernels")
	}
	t.Parallel()
	host, err := cpu.New(2, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	d := compose.New(host, open(t).device())
	backendtest.Divided(t, d, ref.New(), someTypes)
}

// TestCrossings: rows that cross a border again ask nothing of the driver but to be submitted.
func TestCrossings(t *testing.T) {
	var calls atomic.Int64
	trial := &vk.Trial{Fails: func(call string) vk.Result {
		if call != "vkQueueSubmit" {
			calls.Add(1)
		}
		return vk.Success
	}}
	d, err := Open(0, Options{Trial: trial})
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	m := small(t)
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 32, MaxWanted: 1},
		Layout: backend.Layout{Segments: []int{1}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	s, taken, handed := x.Steps()[0], m.Only([]int{1}).Taken()[0], m.Handed(1)[0]
	cross := func(rows int) []float32 {
		s.Tokens = make([]int32, rows)
		s.Spans = []backend.Span{{Rows: rows, Tables: backendtest.Tables(m.Program, []int32{0})}}
		in, out := make([]float32, rows*m.Widths[taken]), make([]float32, rows*m.Widths[handed])
		for i := range in {
			in[i] = float32(i%7) - 3
		}
		require.NoError(t, x.In(taken, s, in))
		require.NoError(t, backend.Enqueue(x, 1, s))
		require.NoError(t, x.Out(handed, s, out))
		require.NoError(t, finish(x, s))
		return out
	}
	want := cross(2)
	require.NotZero(t, want[0])
	cross(32)
	before := calls.Load()
	require.Equal(t, want, cross(2))
	require.Equal(t, before, calls.Load())
}

func finish(x backend.Model, s *backend.Step) error {
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	return <-done
}
