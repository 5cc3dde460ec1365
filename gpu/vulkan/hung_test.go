//go:build cgo && linux

package vulkan

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// hanging is a device of which what is submitted next does not end once it is armed.
type hanging struct {
	backend.Device
	trial  vk.Trial
	armed  atomic.Bool
	opened atomic.Int64 // times that it was opened
}

// sick is the patience with a device in tests: a machine that is busy computes a step meanwhile.
const sick = 3 * time.Second

// openHanging opens one, which is closed at the test's end, and let go on after that.
func openHanging(t *testing.T, patience time.Duration) *hanging {
	h := &hanging{}
	h.trial = vk.Trial{Patience: patience, Hangs: func() bool { return h.armed.CompareAndSwap(true, false) },
		Fails: func(call string) vk.Result {
			if call == "vkCreateDevice" {
				h.opened.Add(1)
			}
			return vk.Success
		}}
	d, err := Open(0, Options{Trial: &h.trial})
	if err != nil {
		missing(t, err)
	}
	h.Device = d
	t.Cleanup(func() {
		_ = h.Close() // what hung may have been left
		h.trial.Release()
		for range 20 { // the looks of a machine that is busy: what hung computes on
			if goleak.Find() == nil {
				return
			}
		}
		goleak.VerifyNone(t)
	})
	return h
}

// load compiles a model, whose close is left to the caller. Its steps are timed.
func (h *hanging) load(t *testing.T, m *backendtest.Model) *backendtest.Running {
	t.Helper()
	x, err := h.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 2, MaxWanted: 2, Flight: 2},
		Observer: backend.Observer{Ran: func(backend.Ran) {}}})
	require.NoError(t, err)
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	return &backendtest.Running{Model: x, T: t, Of: m}
}

// TestHung: a step that does not end is an error that says so, as is what comes after it; the card is opened again
// though its driver never says more, and gives the same bits.
func TestHung(t *testing.T) {
	h, m := openHanging(t, sick), small(t)
	x := h.load(t, m)
	want := x.Logits([]int32{1, 2}, 1)
	h.armed.Store(true)
	_, first := x.Begin(0, []int32{1}, 0, true)
	_, second := x.Begin(1, []int32{backend.DrawOf(0)}, 1, true)
	err := <-first
	require.ErrorIs(t, err, backend.ErrLost)
	require.ErrorIs(t, err, backend.ErrHung)
	require.ErrorContains(t, err, "has ended for "+sick.String())
	require.ErrorIs(t, <-second, backend.ErrHung)
	require.ErrorIs(t, x.Upload(0, 0, m.Weights[0]), backend.ErrHung)
	require.ErrorIs(t, backend.Enqueue(x, 0, x.Steps()[0]), backend.ErrHung)
	require.NoError(t, x.Close())
	require.EqualValues(t, 1, h.opened.Load())
	x = h.load(t, m)
	require.EqualValues(t, 2, h.opened.Load())
	require.Equal(t, want, x.Logits([]int32{1, 2}, 1))
	require.NoError(t, x.Close())
}

// TestHungBehind: a step that has ended is good, though the driver waits for the next one, which does not, before it
// tells when that was.
func TestHungBehind(t *testing.T) {
	h, m := openHanging(t, sick), small(t)
	x := h.load(t, m)
	want := x.Logits([]int32{1}, 1)
	s, first := x.Begin(0, []int32{1}, 0, false)
	h.armed.Store(true)
	_, second := x.Begin(1, []int32{2}, 1, true)
	require.NoError(t, <-first)
	require.Equal(t, want, s.Logits[:len(want)])
	require.ErrorIs(t, <-second, backend.ErrHung)
	require.NoError(t, x.Close())
}

// TestHungUpload: an upload that does not end is such an error, too.
func TestHungUpload(t *testing.T) {
	h, m := openHanging(t, sick), small(t)
	x := h.load(t, m)
	h.armed.Store(true)
	require.ErrorIs(t, x.Upload(0, 0, m.Weights[0]), backend.ErrHung)
	require.NoError(t, x.Close())
}

// TestHungAtTheEnd: whoever closes a card that hangs does not wait for ever, though nobody has seen yet that it does.
func TestHungAtTheEnd(t *testing.T) {
	h := openHanging(t, sick)
	x := h.load(t, small(t))
	h.armed.Store(true)
	_, done := x.Begin(0, []int32{1}, 0, true)
	require.NoError(t, x.Close())
	require.ErrorIs(t, <-done, backend.ErrHung)
	require.ErrorContains(t, h.Close(), "has not come to rest within "+sick.String())
	require.NoError(t, h.Close(), "once is enough")
}

// TestAway: a card that cannot be opened again says why, each time it is tried, and is closed all the same; when it is
// there again, it computes.
func TestAway(t *testing.T) {
	var away, lost atomic.Bool
	trial := &vk.Trial{Fails: func(call string) vk.Result {
		if call == "vkCreateDevice" && away.Load() || call == "vkQueueSubmit" && lost.Load() {
			return vk.Lost
		}
		return vk.Success
	}}
	d, err := Open(0, Options{Trial: trial})
	if err != nil {
		missing(t, err)
	}
	h, m := &hanging{Device: d}, small(t)
	lose := func(x *backendtest.Running) {
		lost.Store(true)
		require.ErrorIs(t, x.Upload(0, 0, m.Weights[0]), backend.ErrLost)
		lost.Store(false)
		require.NoError(t, x.Close())
		away.Store(true)
	}
	x := h.load(t, m)
	want := x.Logits([]int32{1, 2}, 1)
	lose(x)
	for range 2 {
		_, err := h.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
			Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 1}})
		require.ErrorIs(t, err, backend.ErrLost)
		require.ErrorContains(t, err, "cannot be opened again")
		require.ErrorContains(t, err, "VK_ERROR_DEVICE_LOST")
	}
	away.Store(false)
	x = h.load(t, m)
	require.Equal(t, want, x.Logits([]int32{1, 2}, 1))
	lose(x)
	_, err = h.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 1}})
	require.Error(t, err)
	require.NoError(t, h.Close())
}
