package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestCoresAreTaken: a step waits for its turn while something else computes on the cores, and gives it back.
func TestCoresAreTaken(t *testing.T) {
	f, err := gguf.Open(fixturePath(t, "llama"))
	require.NoError(t, err)
	cores := &run.Cores{}
	other := cores.Join()
	h := opened(t, HouseConfig{Device: devicetest.Processor(t, ""), Log: zerolog.Nop(), Cores: cores,
		Models: []Model{{File: f, KV: backend.KVF32}}})
	require.NoError(t, other.Take(t.Context()))
	stream, err := h.Engines()[0].Generate(Request{Tokens: []int32{1, 2, 3}, MaxTokens: 2, Sampling: greedy()})
	require.NoError(t, err)
	defer stream.Close()
	early, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var ev Event
	require.ErrorIs(t, stream.Next(early, &ev), context.DeadlineExceeded, "no step is computed meanwhile")
	other.Give()
	require.NoError(t, stream.Next(t.Context(), &ev))
	require.NoError(t, other.Take(t.Context()), "the turn comes back")
	other.Give()
}

// TestPictureSurvives: whichever actor dies while a picture is made beside its model's answers, in its turn or not, the
// picture is the one that it is alone, and so are answers.
func TestPictureSurvives(t *testing.T) {
	d := devicetest.Processor(t, "")
	picture := evaluation(t)
	want, err := picture(t.Context(), d, nil)
	require.NoError(t, err)
	f, err := gguf.Open(fixturePath(t, "llama"))
	require.NoError(t, err)
	cores := &run.Cores{}
	h := opened(t, HouseConfig{Device: d, Log: zerolog.Nop(), Cores: cores, Models: []Model{{File: f, KV: backend.KVF32}}})
	e := h.Engines()[0]
	ask := func() string {
		return spelled(t, begin(t, e, Request{Tokens: []int32{1, 2, 3}, MaxTokens: 40, Sampling: greedy()}))
	}
	text := ask()
	turns := cores.Join()
	for _, victim := range slices.Concat(ofModel, ofHouse) {
		if victim == "session" {
			victim = fmt.Sprintf("sessions/%d", e.opened.Load())
		}
		answer := begin(t, e, Request{Tokens: []int32{1, 2, 3}, MaxTokens: 40, Sampling: greedy()})
		drawn := make(chan []float32, 1)
		go func() {
			got, err := picture(t.Context(), d, turns)
			if err != nil {
				t.Error(victim, err)
			}
			drawn <- got
		}()
		e.crash(victim)
		require.Equal(t, want, <-drawn, victim)
		require.Equal(t, text, spelled(t, answer), victim)
	}
	require.Equal(t, text, ask())
}

// evaluation makes of a device what a transformer of the references says of its latents.
func evaluation(t *testing.T) func(ctx context.Context, d backend.Device, turns *run.Sharer) ([]float32, error) {
	t.Helper()
	dir := filepath.Join(testref.Dir(t), "multimodal", "zimage")
	settings, err := os.ReadFile(filepath.Join(dir, "transformer", "config.json"))
	require.NoError(t, err)
	s, err := pixels.ReadZImageSettings(settings)
	require.NoError(t, err)
	rows := diffuse.Noise(1, 16*16*16)
	return func(ctx context.Context, d backend.Device, turns *run.Sharer) (_ []float32, err error) {
		f, err := checkpoint.OpenUnchanged(filepath.Join(dir, "transformer"))
		if err != nil {
			return nil, err
		}
		z, err := paint.OpenZImage(paint.Room{Device: paint.Turning(ctx, d, turns)}, f, s)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, z.Close()) }()
		text, err := z.Refine(diffuse.Noise(2, 5*z.TextWidth))
		if err != nil {
			return nil, err
		}
		return z.Evaluate(ir.Grid{Height: 16, Width: 16}, rows, text, 0.25)
	}
}
