package exec

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// slow is a driver that has nothing but timelines, whose values come at their times.
type slow struct {
	driver.Device
	facts    driver.Facts
	patience time.Duration
}

func (s *slow) Facts() *driver.Facts               { return &s.facts }
func (s *slow) Patience() time.Duration            { return s.patience }
func (s *slow) Hold()                              {}
func (s *slow) Timeline() (driver.Timeline, error) { return &ticking{began: time.Now()}, nil }

// ticking has come to a value some seconds after it began; of the one at which it stops it never does.
type ticking struct {
	began time.Time
	every time.Duration
	stops uint64
}

func (l *ticking) Value() (uint64, error) {
	if l.every == 0 {
		return 0, nil
	}
	return min(uint64(time.Since(l.began)/l.every), l.stops), nil
}

func (l *ticking) Wait(value uint64, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if now, _ := l.Value(); now >= value {
			return nil
		}
		if !time.Now().Before(end) {
			return driver.ErrTimeout
		}
	}
}

func (*ticking) Close() {}

// TestBusy: a card that is slow is waited for, as long as something ends: here a step is late by more than the
// patience, but others before it end. What it does not end within the patience is lost.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := newQueue(&slow{patience: 3 * time.Second})
		require.NoError(t, err)
		q.line = &ticking{began: time.Now(), every: 2 * time.Second, stops: 5}
		began := time.Now()
		require.NoError(t, q.wait(4))
		require.InDelta(t, 8*time.Second, time.Since(began), float64(10*time.Millisecond))
		err = q.wait(6)
		require.ErrorIs(t, err, backend.ErrHung)
		require.ErrorIs(t, err, backend.ErrLost)
		require.ErrorContains(t, err, "has ended for 3s")
		require.ErrorIs(t, q.wait(1), backend.ErrLost, "it stays so")
	})
}

// TestPredicted: of what should take long nothing has to end sooner.
func TestPredicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := newQueue(&slow{patience: time.Second})
		require.NoError(t, err)
		q.line = &ticking{began: time.Now(), every: 15 * time.Second, stops: 2}
		require.NoError(t, q.reach(q.line, 1, time.Second))
		require.ErrorIs(t, q.reach(q.line, 2, 0), backend.ErrHung)
	})
}
