package actors

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
)

// unread opens a request and waits until it has used up its credit.
func unread(t *testing.T, e *Engine, r Request) *Stream {
	s := begin(t, e, r)
	t.Cleanup(s.Close)
	require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.size == batch.Window },
		patient, time.Millisecond)
	return s
}

// next reads n events, which must come soon.
func next(t *testing.T, s *Stream, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var e Event
	for i := range n {
		require.NoError(t, s.Next(ctx, &e), "event %d of %d", i, n)
	}
}

// sluggish is a device whose steps take some time.
type sluggish struct {
	nullDevice
	takes func(s *backend.Step) time.Duration
}

func (d sluggish) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.nullDevice.Compile(p, c)
	return sluggishModel{m, d.takes}, err
}

type sluggishModel struct {
	backend.Model
	takes func(s *backend.Step) time.Duration
}

func (m sluggishModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment == 0 {
		time.Sleep(m.takes(s))
	}
	return m.Model.Run(w, s)
}

// steady is a device whose steps take so long that its clients always keep up.
func steady() sluggish {
	return sluggish{takes: func(*backend.Step) time.Duration { return time.Millisecond }}
}

// A client that paused goes on when it reads again, also while others keep the device busy.
func TestPausedClientGoesOn(t *testing.T) {
	e := startNull(t, func(c *Config) { c.Device = steady() })
	busy := begin(t, e, plain([]int32{1}, 1<<19))
	var wg sync.WaitGroup
	wg.Go(func() {
		var ev Event
		for busy.Next(context.Background(), &ev) == nil {
		}
	})
	defer wg.Wait()
	defer busy.Close()
	s := unread(t, e, plain([]int32{2}, 1<<19))
	next(t, s, 4*batch.Window)
}

// A client that never reads keeps neither the last place nor the last blocks from others.
func TestUnreadClientGivesWay(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"place":  func(c *Config) { c.Sequences = 1 },
		"blocks": func(c *Config) { c.Context, c.Blocks = 512, 8 },
	} {
		t.Run(name, func(t *testing.T) {
			e := startNull(t, edit)
			s := unread(t, e, plain(make([]int32, 200), 200))
			ctx, cancel := context.WithTimeout(context.Background(), patient)
			defer cancel()
			other := begin(t, e, plain([]int32{3}, 400))
			defer other.Close()
			var ev Event
			for range 400 {
				require.NoError(t, other.Next(ctx, &ev))
			}
			next(t, s, 200)
		})
	}
}

// TestTokensKnowTheirTime: however tokens are delivered, each says when it was there.
func TestTokensKnowTheirTime(t *testing.T) {
	e := startNull(t, nil)
	s := begin(t, e, plain([]int32{5, 6, 7}, 20))
	defer s.Close()
	var ev Event
	last := time.Now()
	for s.Next(t.Context(), &ev) == nil {
		require.True(t, ev.At.After(last), "%v is not after %v", ev.At, last)
		last = ev.At
	}
	require.True(t, time.Now().After(last))
	require.Equal(t, Length, ev.Finish)
}
