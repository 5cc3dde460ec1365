//go:build cgo && linux

package vk

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// openTrial opens the first device for a trial.
func openTrial(t testing.TB, trial *Trial, validate bool) (*Library, *Device) {
	t.Helper()
	l, err := OpenWith(Options{Validate: validate && os.Getenv("SLUICE_VULKAN_BARE") == "", own: true, Trial: trial})
	if err != nil {
		missing(t, err)
	}
	all, err := l.Devices()
	if err != nil || len(all) == 0 {
		missing(t, err)
	}
	d, err := all[0].Open()
	require.NoError(t, err)
	return l, d
}

// hung is a device with work that does not end, and all that was made on it closed.
func hung(t *testing.T, trial *Trial, validate bool) (*Library, *Device) {
	hangs := atomic.Bool{}
	trial.Hangs = hangs.Load
	l, d := openTrial(t, trial, validate)
	line, err := d.NewTimeline()
	require.NoError(t, err)
	k := compileCopy(t, d)
	roundTrip(t, d, k, line, 1)
	from, err := d.Allocate(Staging, 2048)
	require.NoError(t, err)
	to, err := d.Allocate(Local, 4096)
	require.NoError(t, err)
	r, err := d.Record(2)
	require.NoError(t, err)
	r.Stamp()
	r.Copy(to, 0, from, 0, 2048)
	r.Stamp()
	require.NoError(t, r.End())
	hangs.Store(true)
	require.NoError(t, d.Submit([]*Recording{r}, nil, Point{line, 2}))
	require.ErrorIs(t, line.Wait(2, 10*time.Millisecond), Timeout)
	d.Hold()
	r.Close()
	d.Free(from, to)
	d.Release(k)
	line.Close()
	return l, d
}

// TestLeft: to close a device that hangs ends in time, and what it may still use is destroyed when it has come to rest.
// The validation layer cannot wait for so long: it says so.
func TestLeft(t *testing.T) {
	trial := &Trial{Patience: 50 * time.Millisecond}
	l, d := hung(t, trial, false)
	err := d.Close()
	require.ErrorContains(t, err, "has not come to rest within 50ms: its memory stays taken")
	require.NotEmpty(t, d.memory.blocks)
	require.NoError(t, l.Close())
	require.Equal(t, int32(1), l.devices.Load(), "the instance stays as long as the device")
	trial.Release()
	require.NoError(t, d.Close())
	require.Empty(t, d.memory.blocks)
	require.NoError(t, l.Close())
	goleak.VerifyNone(t)
}

// TestComesToRest: a device that hung and goes on after all is closed as any other.
func TestComesToRest(t *testing.T) {
	trial := &Trial{Patience: time.Minute}
	l, d := hung(t, trial, true)
	time.AfterFunc(20*time.Millisecond, trial.Release)
	shut(t, l, d)
	goleak.VerifyNone(t)
}
