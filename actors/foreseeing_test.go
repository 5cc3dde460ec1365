package actors

import (
	"slices"
	"sync/atomic"
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

// What waits for a place is foreseen with what it will find cached, and what runs with its place.
func TestCachedPromptsOfWaitersAreForeseen(t *testing.T) {
	var holds atomic.Bool
	held, goOn := make(chan struct{}), make(chan struct{})
	d := &beside{flight: 1, fail: func(int) bool {
		if holds.CompareAndSwap(true, false) {
			close(held)
			<-goOn
		}
		return false
	}}
	e := startBeside(t, d, func(c *Config) { c.Model.Sequences = 1 })
	long := longPrompts(2)[0]
	want := spelled(t, begin(t, e, plain(long, 3)))
	e.house.settle(e.tenant)
	holds.Store(true)
	runs := begin(t, e, plain(prompts(1)[0], 9))
	<-held
	waits := begin(t, e, plain(long, 3))
	var all []batch.Ahead
	require.Eventually(t, func() bool {
		e.outlook.mu.Lock()
		defer e.outlook.mu.Unlock()
		all = slices.Clone(e.outlook.load.Seqs)
		return len(all) == 2
	}, patient, time.Millisecond)
	require.True(t, all[0].Runs)
	require.False(t, all[1].Runs)
	require.Equal(t, whole(long), all[1].At)
	require.Equal(t, len(long)-whole(long), all[1].Left)
	close(goOn)
	spelled(t, runs)
	require.Equal(t, want, spelled(t, waits))
	e.outlook.mu.Lock()
	defer e.outlook.mu.Unlock()
	require.NotZero(t, e.outlook.load.Lengths, "answers are learned from")
	require.Positive(t, e.outlook.load.Newest)
}
