package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/storage/uring"
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
		model string
		edit  func(*Config)
		slow  func(e *Engine)
		use   func(t *testing.T, e *Engine)
	}{
		{trace.Sampler, fixture, nil, func(e *Engine) { e.house.system.Slow(e.at("sampler"), 3*time.Millisecond) }, answers},
		{trace.Scheduler, fixture, nil, func(e *Engine) { e.house.system.Slow(e.at("scheduler"), 3*time.Millisecond) }, answers},
		{trace.KV, fixture, nil, func(e *Engine) { e.house.system.Slow(e.at("kv"), 3*time.Millisecond) }, answers},
		{trace.Credit, fixture, nil, func(*Engine) {}, func(t *testing.T, e *Engine) {
			s := unread(t, e, plain([]int32{5, 6, 7}, 3*batch.Window))
			time.Sleep(20 * time.Millisecond)
			collect(t, s)
		}},
		{trace.Reader, fixture, slowDisk(few{Ring: 2}), func(*Engine) {}, answers},
		{trace.Uploader, fixture, streamed(few{Ring: 2}), func(e *Engine) {
			e.house.system.Slow(e.house.wiring.tiers.Uploader.Address, 2*time.Millisecond)
		}, answers},
		{trace.Slabs, fixture, slotless(few{Ring: 2}), func(e *Engine) {
			e.house.system.Slow(e.house.wiring.tiers.Pool.Address, 5*time.Millisecond)
		}, answers},
		{trace.Expert, "qwen3moe", slowDisk(few{Shelf: 2}), func(*Engine) {}, answers},
	} {
		t.Run(test.cause.String(), func(t *testing.T) {
			e := startFixture(t, test.model, test.edit)
			collect(t, begin(t, e, plain([]int32{5, 6, 7}, 1))) // then every actor is there
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

// slowDisk streams from a disk that takes a while for each read.
func slowDisk(f few) func(*Config) {
	return func(c *Config) {
		streamed(f)(c)
		c.hooks.disk = func(depth int, memory []byte) (tiers.Disk, error) {
			d, err := tiers.OpenRing(depth, memory)
			return slowRing{d}, err
		}
	}
}

type slowRing struct{ tiers.Disk }

func (d slowRing) Submit(all []uring.Request) error {
	time.Sleep(2 * time.Millisecond)
	return d.Disk.Submit(all)
}

// slotless streams to a device whose slots have no memory that can be read into, as a GPU's have none.
func slotless(f few) func(*Config) {
	return func(c *Config) {
		streamed(f)(c)
		if err := c.Device.Close(); err != nil {
			panic(err)
		}
		c.Device = nullDevice{}
	}
}
