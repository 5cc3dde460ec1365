package compose

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// seer is a model that foresees a route, blind one that does not.
type (
	seer struct {
		backend.Model
		route int
	}
	blind struct {
		backend.Model
		backend.Blind
	}
)

func (b blind) Foresees(segment int) (int, bool) { return b.Blind.Foresees(segment) }

func (s seer) Foresees(int) (int, bool) { return s.route, true }

// TestForesees: a device foresees its own routes, and is not asked if it cannot.
func TestForesees(t *testing.T) {
	sees, sleeps := &member{Model: seer{route: 1}}, &member{Model: blind{}}
	m := &model{of: []*member{sees, sees, sleeps}}
	route, ok := m.Foresees(0)
	require.True(t, ok)
	require.Equal(t, 1, route)
	_, ok = m.Foresees(2)
	require.False(t, ok, "that device foresees nothing")
	m.of[1] = sleeps
	_, ok = m.Foresees(0)
	require.False(t, ok, "the route is another device's")
}

// TestRunOfNoSegment: what is no segment is refused, not looked up.
func TestRunOfNoSegment(t *testing.T) {
	m := &model{of: []*member{nil, nil}}
	for _, segment := range []int{-1, 2} {
		require.ErrorContains(t, m.Run(backend.Work{Segment: segment}, nil), "of 2")
	}
}
