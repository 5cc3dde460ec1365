package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
	"github.com/sluice-ai/sluice/stages/batch"
)

// TestStallsName: the account of a device explains its idle time, and when one stage is slow it names that stage first.
func TestStallsName(t *testing.T) {
	answers := func(t *testing.T, e *Engine) {
		for range 5 {
			collect(t, begin(t, e, plain([]int32{5, 6, 7}, 10)))
		}
	}
	for _, test := range []struct {
		cause trace.Cause
		slow  func(e *Engine)
		use   func(t *testing.T, e *Engine)
	}{
		{trace.Sampler, func(e *Engine) { e.house.system.Slow(e.at("sampler"), 3*time.Millisecond) }, answers},
		{trace.Scheduler, func(e *Engine) { e.house.system.Slow(e.at("scheduler"), 3*time.Millisecond) }, answers},
		{trace.KV, func(e *Engine) { e.house.system.Slow(e.at("kv"), 3*time.Millisecond) }, answers},
		{trace.Credit, func(*Engine) {}, func(t *testing.T, e *Engine) {
			s := unread(t, e, plain([]int32{5, 6, 7}, 3*batch.Window))
			time.Sleep(20 * time.Millisecond)
			collect(t, s)
		}},
	} {
		t.Run(test.cause.String(), func(t *testing.T) {
			e := startFixture(t, fixture, nil)
			test.slow(e)
			tap := e.house.system.Spans().Tap()
			before := e.house.DeviceTime().Idle
			test.use(t, e)
			after := e.house.DeviceTime().Idle
			require.NoError(t, e.house.system.Stop(e.at("scheduler")))
			spans := tap.Drain(nil)
			require.Zero(t, tap.Missed())
			a := stall.Of("house/device/compute", spans)
			first, _ := a.First()
			require.Equal(t, test.cause, first, "%v", a.Idle)
			require.GreaterOrEqual(t, a.Explained(), 0.99, "%v", a.Idle)
			require.Equal(t, a.To-a.From, a.Wall())
			live := stall.Time{}
			for c := range after {
				live.Idle[c] = after[c] - before[c]
			}
			first, _ = live.First()
			require.Equal(t, test.cause, first, "live: %v", live.Idle)
		})
	}
}
