package actors

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/storage/uring"
)

// TestStallsName: the account of a device explains its idle time, and when one stage is slow enough it names that stage
// first. How slow that is depends on what else the machine has to do: a stage is made slower until it comes first.
func TestStallsName(t *testing.T) {
	var times atomic.Int64
	answers := func(t *testing.T, e *Engine) {
		for range 5 {
			collect(t, begin(t, e, plain([]int32{5, 6, 7}, 10)))
		}
	}
	slow := func(by time.Duration, who func(e *Engine) *actor.PID) func(*Engine) {
		return func(e *Engine) { e.house.system.Slow(who(e), time.Duration(times.Load())*by) }
	}
	of := func(name string) func(*Engine) *actor.PID { return func(e *Engine) *actor.PID { return e.at(name) } }
	for _, test := range []struct {
		cause trace.Cause
		model string
		edit  func(*Config)
		slow  func(e *Engine)
		use   func(t *testing.T, e *Engine)
	}{
		{trace.Sampler, fixture, nil, slow(3*time.Millisecond, of("sampler")), answers},
		{trace.Scheduler, fixture, nil, slow(3*time.Millisecond, of("scheduler")), answers},
		{trace.KV, fixture, nil, slow(3*time.Millisecond, of("kv")), answers},
		{trace.Credit, fixture, nil, func(*Engine) {}, func(t *testing.T, e *Engine) {
			s := unread(t, e, plain([]int32{5, 6, 7}, 3*batch.Window))
			time.Sleep(time.Duration(times.Load()) * 20 * time.Millisecond)
			collect(t, s)
		}},
		{trace.Reader, fixture, slowDisk(few{Ring: 2}, &times), func(*Engine) {}, answers},
		{trace.Uploader, fixture, streamed(few{Ring: 2}),
			slow(2*time.Millisecond, func(e *Engine) *actor.PID { return e.house.wiring.tiers.Uploader.Address }), answers},
		{trace.Slabs, fixture, slotless(few{Ring: 2}),
			slow(5*time.Millisecond, func(e *Engine) *actor.PID { return e.house.wiring.tiers.Pool.Address }), answers},
		{trace.Expert, "qwen3moe", slowDisk(few{Shelf: 2}, &times), func(*Engine) {}, answers},
	} {
		t.Run(test.cause.String(), func(t *testing.T) {
			for times.Store(1); ; times.Store(2 * times.Load()) {
				e := startFixture(t, test.model, test.edit)
				collect(t, begin(t, e, plain([]int32{5, 6, 7}, 1))) // then every actor is there
				test.slow(e)
				a, live, _ := idle(t, e, func() { test.use(t, e) })
				require.GreaterOrEqual(t, a.Explained(), 0.99, "%v", a.Idle)
				require.Equal(t, a.To-a.From, a.Wall())
				traced, _ := a.First()
				counted, _ := live.First()
				if traced == test.cause && counted == test.cause {
					return
				}
				require.Less(t, times.Load(), int64(16), "it is not named: traced %v, live %v", a.Idle, live.Idle)
			}
		})
	}
}

// idle is what a trace and the live account say of a device's time while it is used. Nothing more can be asked of the
// engine after that.
func idle(t *testing.T, e *Engine, use func()) (traced stall.Account, live stall.Time, spans []trace.Span) {
	t.Helper()
	tap := e.house.system.Spans().Tap()
	before := e.house.DeviceTime().Idle
	over, drained := make(chan struct{}), make(chan struct{})
	go func() { // the ring has room for some thousands
		defer close(drained)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				spans = tap.Drain(spans)
			case <-over:
				return
			}
		}
	}()
	use()
	for c, after := range e.house.DeviceTime().Idle {
		live.Idle[c] = after - before[c]
	}
	require.NoError(t, e.house.system.Stop(e.at("scheduler")))
	close(over)
	<-drained
	spans = tap.Drain(spans)
	require.Zero(t, tap.Missed())
	return stall.Of("house/device/compute", spans), live, spans
}

// slowDisk streams from a disk that takes a while for each read: so many times two milliseconds.
func slowDisk(f few, times *atomic.Int64) func(*Config) {
	return func(c *Config) {
		streamed(f)(c)
		c.hooks.disk = func(depth int, memory []byte) (tiers.Disk, error) {
			d, err := tiers.OpenRing(depth, memory)
			return slowRing{d, times}, err
		}
	}
}

type slowRing struct {
	tiers.Disk
	times *atomic.Int64
}

func (d slowRing) Submit(all []uring.Request) error {
	time.Sleep(time.Duration(d.times.Load()) * 2 * time.Millisecond)
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
