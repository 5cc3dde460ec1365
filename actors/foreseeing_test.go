package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/promise"
)

// A step that has come back is learned from once, by the time since the step before it; one in flight is seen.
func TestStepsAreLearnedFrom(t *testing.T) {
	began := time.Unix(1e9, 0)
	f, m := foreseeing{to: &outlook{}}, &step{shape: promise.Shape{Rows: 3, Seen: 30}}
	m.times.planned, m.times.sampled = began, began.Add(2*time.Millisecond)
	f.tell(&batch.State{}, batch.Budget{}, nil)
	require.False(t, f.to.load.Speed.Known())
	f.computed(m)
	require.Equal(t, 2*time.Millisecond, f.took)
	f.tell(&batch.State{}, batch.Budget{}, m)
	require.True(t, f.to.load.Speed.Known())
	require.Equal(t, m.shape, f.to.load.Flying)
	require.Equal(t, began, f.to.since)
	known := f.to.load.Speed
	f.tell(&batch.State{}, batch.Budget{}, nil)
	require.Equal(t, known, f.to.load.Speed)
	require.Zero(t, f.to.load.Flying)

	m.times.sampled = began.Add(5 * time.Millisecond)
	f.computed(m)
	require.Equal(t, 3*time.Millisecond, f.took, "it was planned while another ran")
}
