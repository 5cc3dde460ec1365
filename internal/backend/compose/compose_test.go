package compose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// processor is the CPU with so many threads.
func processor(t *testing.T, threads int, force string) backend.Device {
	d, err := cpu.New(threads, force)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestConformance: two devices of the same kernels compute what one does, by the laws of bits.
func TestConformance(t *testing.T) {
	d := compose.New(processor(t, 1, ""), processor(t, 2, ""))
	types := []quant.Type{quant.F32, quant.Q8_0, quant.Q4_K}
	backendtest.Conformance(t, backendtest.Split(d), ref.New(), types)
}

// told is a device of which only traits are asked.
type told struct {
	backend.Device
	traits backend.Traits
}

func (d told) Traits() backend.Traits { return d.traits }
func (d told) Name() string           { return d.traits.Name }

// TestTraits: steps in flight are as many as each device allows that computes beside the program. What the last one
// says of itself holds for what is not dealt.
func TestTraits(t *testing.T) {
	processor := told{traits: backend.Traits{Flight: 1, Threads: 4, Memory: backend.HostMemory}}
	card := told{traits: backend.Traits{Flight: 2, Memory: backend.OwnMemory, Clock: true}}
	longer := told{traits: backend.Traits{Flight: 3, Memory: backend.OwnMemory, Draws: 5, Free: 7}}
	got := compose.New(processor, card, longer).Traits()
	require.Equal(t, []backend.Traits{processor.traits, card.traits, longer.traits}, got.Devices)
	require.Equal(t, []int{2, 0, 5}, []int{got.Flight, got.Threads, got.Draws})
	require.Equal(t, backend.OwnMemory, got.Memory)
	require.True(t, got.Clock, "one of them tells when segments ran")
	require.Equal(t, 3, compose.New(processor, longer).Traits().Flight, "a processor has ended a step before the next")
	require.Equal(t, 1, compose.New(longer, processor).Traits().Flight, "steps are those of the end")
}
