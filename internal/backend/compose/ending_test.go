package compose

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// late is a device whose steps end when the test says so.
type late struct {
	backend.Model
	ends []func(error) // of steps that were finished, the oldest first
}

func (l *late) Finish(_ *backend.Step, done func(error)) { l.ends = append(l.ends, done) }

// end ends the oldest step.
func (l *late) end(err error) {
	done := l.ends[0]
	l.ends = l.ends[1:]
	done(err)
}

// flying is a model on two devices with two steps, both in flight, and what was told of their ends.
func flying(t *testing.T, ran func(backend.Ran)) (m *model, a, b *late, told *[]error) {
	a, b, told = &late{}, &late{}, new([]error)
	m = &model{entered: -1}
	m.config.Ran = ran
	for _, d := range []*late{a, b} {
		m.members = append(m.members, &member{Model: d, ring: []*backend.Step{{}, {}}})
	}
	m.steps = m.members[1].ring
	for i, s := range m.steps {
		m.ends = append(m.ends, m.newEnding(i, s))
	}
	for _, s := range m.steps {
		m.Finish(s, func(err error) { *told = append(*told, err) })
	}
	return m, a, b, told
}

// TestEnds: a step has ended when all devices have ended it, whichever is the last.
func TestEnds(t *testing.T) {
	_, a, b, told := flying(t, nil)
	a.end(nil)
	a.end(nil)
	require.Empty(t, *told)
	b.end(nil)
	b.end(nil)
	require.Equal(t, []error{nil, nil}, *told)
}

// TestErrorsStrike: an error of one device strikes what began before it was told, and no later step.
func TestErrorsStrike(t *testing.T) {
	bad := errors.New("bad")
	m, a, b, told := flying(t, nil)
	a.end(bad)
	a.end(nil)
	b.end(nil)
	b.end(nil)
	require.Len(t, *told, 2)
	require.ErrorIs(t, (*told)[0], bad)
	require.ErrorIs(t, (*told)[1], bad, "it was in flight")
	m.Finish(m.steps[0], func(err error) { *told = append(*told, err) })
	a.end(nil)
	b.end(nil)
	require.NoError(t, (*told)[2], "it began later")
}

// TestRanInOrder: what several devices say of a step is told in the program's order before its end, by its own step;
// copies, which are of no step, at once.
func TestRanInOrder(t *testing.T) {
	var told []int
	var steps []*backend.Step
	m, a, b, ends := flying(t, func(r backend.Ran) { told, steps = append(told, r.Segment), append(steps, r.Step) })
	for i, x := range m.members {
		m.ran(x, backend.Ran{Step: x.ring[0], Segment: 3 - i})
		m.ran(x, backend.Ran{Step: x.ring[1], Segment: 9})
		m.ran(x, backend.Ran{Step: x.ring[0], Segment: 5 - i})
	}
	require.Empty(t, told)
	m.ran(m.members[0], backend.Ran{Copied: true, Segment: 7})
	require.Equal(t, []int{7}, told)
	a.end(nil)
	b.end(nil)
	require.Len(t, *ends, 1)
	require.Equal(t, []int{7, 2, 3, 4, 5}, told)
	for _, s := range steps[1:] {
		require.Same(t, m.steps[0], s)
	}
}
