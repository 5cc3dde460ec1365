package paint

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/pixels"
)

// TestTurning: a network that is computed in turns leaves what it leaves alone; it ends before the next segment when
// nobody wants it any more, and before its turn comes.
func TestTurning(t *testing.T) {
	r := converttest.Tensors(t, "multimodal", "zimage", "transformer_0.safetensors")
	grid, rows := latents(r["latents"])
	cores := &run.Cores{}
	ctx, cancel := context.WithCancel(t.Context())
	turns := cores.Join()
	z := zimage(t, Turning(ctx, ref.New(), turns))
	text := refined(t, z, r["cap"].Floats())
	want, err := zimage(t, ref.New()).Evaluate(grid, rows, text, 0.25)
	require.NoError(t, err)
	got, err := z.Evaluate(grid, rows, text, 0.25)
	require.NoError(t, err)
	require.Equal(t, want, got)

	other := cores.Join()
	require.NoError(t, other.Take(t.Context()))
	ended := make(chan error)
	go func() {
		_, err := z.Evaluate(grid, rows, text, 0.25)
		ended <- err
	}()
	select {
	case err := <-ended:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	other.Give()
	_, err = z.Evaluate(grid, rows, text, 0.25)
	require.ErrorIs(t, err, context.Canceled)
	_, err = z.Refine(r["cap"].Floats())
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, turns.Take(t.Context()), "no turn is left")
	turns.Give()

	alone, cancel := context.WithCancel(t.Context())
	z = zimage(t, Turning(alone, ref.New(), nil))
	_, err = z.Evaluate(grid, rows, text, 0.25)
	require.NoError(t, err)
	cancel()
	_, err = z.Evaluate(grid, rows, text, 0.25)
	require.ErrorIs(t, err, context.Canceled, "what is compiled already is not computed either")
}

// leaving is a device that has a context end when a number of segments has begun, and the segment learns of it.
type leaving struct {
	backend.Device
	begun, at int
	leave     func()
	last      error // of the newest segment
}

func (l *leaving) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := l.Device.Compile(p, c)
	return &left{m, l}, err
}

type left struct {
	backend.Model
	device *leaving
}

func (m *left) Run(w backend.Work, s *backend.Step) error {
	d := m.device
	if d.begun++; d.begun == d.at {
		d.leave()
		for !w.Stop.Load() {
			runtime.Gosched()
		}
	}
	d.last = m.Model.Run(w, s)
	return d.last
}

// TestLeftAnywhere: whatever segment is computed when nobody wants a picture any more is left where it is, no other one
// begins, and weights are not read; the next evaluation is what it would be.
func TestLeftAnywhere(t *testing.T) {
	r := converttest.Tensors(t, "multimodal", "zimage", "transformer_0.safetensors")
	grid, rows := latents(r["latents"])
	device := &leaving{Device: devices(t)[1]}
	evaluate := func(z *ZImage) ([]float32, error) {
		text, err := z.Refine(r["cap"].Floats())
		if err != nil {
			return nil, err
		}
		return z.Evaluate(grid, rows, text, 0.25)
	}
	want, err := evaluate(zimage(t, device))
	require.NoError(t, err)
	all := device.begun
	require.Greater(t, all, 3)
	var ctx context.Context
	for at := range all {
		ctx, device.leave = context.WithCancel(t.Context())
		device.begun, device.at = 0, at+1
		z := zimage(t, Turning(ctx, device, nil))
		_, err := evaluate(z)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, at+1, device.begun, "no segment begins after it")
		require.ErrorIs(t, device.last, backend.ErrStopped, "segment %d is left where it is", at)
	}
	device.at = 0
	got, err := evaluate(zimage(t, device))
	require.NoError(t, err)
	require.Equal(t, want, got)

	ctx, device.leave = context.WithCancel(t.Context())
	z := zimage(t, Turning(ctx, device, nil))
	_, err = evaluate(z)
	require.NoError(t, err)
	begun := device.begun
	device.leave()
	_, err = evaluate(z)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, begun, device.begun, "nothing begins once it has ended")
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", "zimage", "transformer", "config.json"))
	require.NoError(t, err)
	s, err := pixels.ReadZImageSettings(text)
	require.NoError(t, err)
	_, err = OpenZImage(Room{Device: Turning(ctx, device, nil)}, published(t, "zimage", "transformer"), s)
	require.ErrorIs(t, err, context.Canceled, "weights are not read")
}
