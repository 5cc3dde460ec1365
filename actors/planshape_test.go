package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// A shape is planned as a file of it is.
func TestPlanShape(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	d := devicetest.Processor(t, "") // whose memory is the host's
	m := Model{File: f, KV: backend.KVF16, Context: 16384, Sequences: 1}
	bound, err := bind(&m)
	require.NoError(t, err)
	whole, err := PlanFor(&m, d)
	require.NoError(t, err)
	shape, err := PlanShape(&m, bound, d, 0)
	require.NoError(t, err)
	require.Equal(t, whole.Model, shape.Model)
	require.Positive(t, shape.Scratch)
	require.Equal(t, whole.Memory.Scratch, shape.Scratch)
	speeds := place.Speeds{Disk: 2e9, Devices: []place.Speed{{Memory: 20e9, Multiply: 1e12, Attend: 1e11, Gate: 1e9}}}
	require.Equal(t, whole.Model.Expect(bound, speeds, 1, 0), shape.Expect(bound, speeds, 1, 0))
	require.False(t, shape.Streams())

	cards := compose.New(devicetest.Processor(t, ""), devicetest.Played(t))
	t.Cleanup(func() { require.NoError(t, cards.Close()) })
	m.Layers, m.Speeds = place.Auto, func() (place.Speeds, error) { return speeds, nil }
	whole, err = PlanFor(&m, cards)
	require.NoError(t, err)
	onCards, err := PlanShape(&m, bound, cards, 0)
	require.NoError(t, err)
	require.True(t, onCards.Apart())
	require.Equal(t, whole.Model, onCards.Model)
	require.Equal(t, whole.Memory.Scratch, onCards.Scratch)

	cache, weights := shape.Host().KV+shape.Scratch, shape.Host().Weights
	little, err := PlanShape(&m, bound, d, cache+weights-1)
	require.NoError(t, err)
	require.True(t, little.Streams(), "what the cache and steps take is not there for weights")
	require.LessOrEqual(t, little.Host().Bytes()+little.Scratch, cache+weights-1)
	whole2, err := PlanShape(&m, bound, d, cache+weights)
	require.NoError(t, err)
	require.False(t, whole2.Streams())
	_, err = PlanShape(&m, bound, d, cache+1)
	require.ErrorContains(t, err, "for weights")
	_, err = PlanShape(&m, bound, d, shape.Host().KV-1)
	require.ErrorContains(t, err, "KV cache")
}
