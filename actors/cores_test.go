package actors

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
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
