package paint

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
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
