//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/gpu/cuda/fake"
	"github.com/sluice-ai/sluice/gpu/driver"
)

// faulty opens the fake driver, which a test has suffer, whatever others run on.
func faulty(t *testing.T) (*fake.Driver, Options) {
	t.Helper()
	return fake.Faults(t), Options{Library: fake.Library(t)}
}

// TestNoDriver: an error says what is missing.
func TestNoDriver(t *testing.T) {
	for _, c := range []struct{ path, says string }{
		{"libnothing.so.1", "install the driver"}, {"libc.so.6", "older than CUDA 12"},
	} {
		_, err := Open(0, Options{Library: c.path})
		require.ErrorContains(t, err, c.says)
		_, err = List(Options{Library: c.path})
		require.ErrorContains(t, err, c.says)
	}
}

// TestEveryCallMayFail: a call of the driver that fails is an error, or costs what can be done without; all that was
// made until then is given back.
func TestEveryCallMayFail(t *testing.T) {
	f, o := faulty(t)
	functions := (&cu.Library{}).Functions()
	require.Contains(t, functions, "cuGraphInstantiate")
	// What frees something, or asks for what can be done without, or for another card (cu's TestReach). The fake driver's
	// streams always end.
	harmless := strings.Fields("cuDeviceGetAttribute cuStreamQuery cuFuncSetAttribute cuGraphExecDestroy cuMemFree " +
		"cuMemHostRegister cuMemHostUnregister cuLinkDestroy cuStreamDestroy cuStreamSynchronize " +
		"cuDeviceCanAccessPeer cuCtxEnablePeerAccess")
	for _, name := range append(functions, "cuInit") {
		const unknown = 999
		failed := false
		for after := range 4 {
			f.Memory(0)
			f.Fail(name, after, unknown)
			err := pass(t, &o)
			failed = failed || err != nil
			if err != nil && name != "cuInit" && name != "cuDeviceGetAttribute" {
				require.ErrorIs(t, err, driver.ErrLost, "%s", name)
			}
		}
		require.True(t, failed || slices.Contains(harmless, name), "%s fails, and nobody says so", name)
	}
}

// pass opens the device, computes, copies, and closes it.
func pass(t *testing.T, o *Options) (err error) {
	d, err := openDevice(0, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close(true)) }()
	line, err := d.Timeline()
	if err != nil {
		return err
	}
	defer line.Close()
	x, err := d.Allocate(driver.Staging, 4096)
	if err != nil {
		return err
	}
	y, err := d.Allocate(driver.Local, 4096)
	if err != nil {
		d.Free(x)
		return err
	}
	own := make([]byte, 4096)
	z, err := d.Import(own)
	defer func() {
		if err != nil {
			d.Hold() // as gpu/exec does: it may be at work
		}
		d.Free(x, y, z)
	}()
	if err != nil {
		return err
	}
	for i, commands := range []int{1, 20} {
		var r driver.Recording
		if r, err = d.Record(driver.Compute, 1); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				d.Hold()
			}
			r.Close()
		}()
		for range commands {
			r.Fill(x, 0)
			r.Copy(y, 0, z, 0, 4)
			if err = d.kernels.Launch(r, sum(x, x, x)); err != nil {
				return err
			}
			r.Barrier()
		}
		for range commands {
			r.Fill(x, 1) // so many that what follows waits for a node of its own
		}
		r.Barrier()
		r.Stamp()
		if err = r.End(); err != nil {
			return err
		}
		for run := range 2 { // a list, then a graph
			value := uint64(2*i + run + 1)
			err = d.Submit([]driver.Recording{r}, []driver.Point{{Timeline: line, Value: value - 1}},
				driver.Point{Timeline: line, Value: value})
			if err == nil {
				err = line.Wait(value, time.Minute)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// TestLost: a kernel that fails ends the context, and whoever waits is told. The device closes, and opens again.
func TestLost(t *testing.T) {
	f, o := faulty(t)
	d, err := openDevice(0, &o)
	require.NoError(t, err)
	line, err := d.Timeline()
	require.NoError(t, err)
	f.Stop()
	r, err := d.Record(driver.Compute, 0)
	require.NoError(t, err)
	require.NoError(t, r.End())
	require.NoError(t, d.Submit([]driver.Recording{r}, nil, driver.Point{Timeline: line, Value: 1}))
	require.ErrorIs(t, line.Wait(1, 10*time.Millisecond), driver.ErrTimeout)
	const illegalAddress = 700
	f.Break(illegalAddress)
	err = line.Wait(1, time.Minute)
	require.ErrorIs(t, err, driver.ErrLost)
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
	require.ErrorIs(t, d.Submit([]driver.Recording{r}, nil, driver.Point{Timeline: line, Value: 2}), driver.ErrLost)
	_, err = d.Allocate(driver.Local, 1)
	require.ErrorIs(t, err, driver.ErrLost)
	_, _, _, told := d.Calibrate()
	require.False(t, told)
	d.Hold()
	r.Close()
	line.Close()
	require.NoError(t, d.Close(false))
	f.Go()
	f.Memory(0)
	require.NoError(t, pass(t, &o))
}

// TestHung: what is freed of a device that hangs stays until it has come to rest.
func TestHung(t *testing.T) {
	f, o := faulty(t)
	d, err := openDevice(0, &o)
	require.NoError(t, err)
	line, err := d.Timeline()
	require.NoError(t, err)
	x, err := d.Allocate(driver.Staging, 1<<20)
	require.NoError(t, err)
	f.Stop()
	r, err := d.Record(driver.Compute, 0)
	require.NoError(t, err)
	r.Fill(x, 7)
	require.NoError(t, r.End())
	require.NoError(t, d.Submit([]driver.Recording{r}, nil, driver.Point{Timeline: line, Value: 1}))
	d.Hold()
	kept := x.Bytes
	d.Free(x)
	r.Close()
	line.Close()
	kept[0] = 1 // it is there
	over := make(chan error, 1)
	go func() { over <- d.Close(false) }()
	f.Go()
	require.NoError(t, <-over)
}

// TestScarce: memory that is not there is an error that says what is, and leaves the rest as it was.
func TestScarce(t *testing.T) {
	f, o := faulty(t)
	d, err := openDevice(0, &o)
	require.NoError(t, err)
	f.Memory(8 << 20)
	x, err := d.Allocate(driver.Local, 6<<20)
	require.NoError(t, err)
	_, err = d.Allocate(driver.Local, 3<<20)
	require.ErrorIs(t, err, driver.ErrScarce)
	require.ErrorContains(t, err, "of 8 MiB there 2 are free")
	d.Free(x)
	x, err = d.Allocate(driver.Local, 3<<20)
	require.NoError(t, err)
	d.Free(x)
	require.NoError(t, d.Close(true))
}

// TestMisses: the fake driver finds threads that miss one another, arguments of another size, and too much memory.
func TestMisses(t *testing.T) {
	_, o := faulty(t)
	d, err := openDevice(0, &o)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(true)) }()
	r, err := d.Record(driver.Compute, 0)
	require.NoError(t, err)
	defer r.Close()
	k := d.kernels
	require.ErrorContains(t, launch(k, r.(*recording), "each", "each", one, 1, 0, &stampArgs{}), "bytes of arguments, not 8")
	require.ErrorContains(t, launch(k, r.(*recording), "each", "none", one, 1, 0, &stampArgs{}), "has no kernel none")
	require.ErrorContains(t, launch(k, r.(*recording), "queue", "stamp", one, 1, 1<<20, &stampArgs{}), "of a block's memory")
	require.NoError(t, launch(k, r.(*recording), "queue", "stamp", [3]uint32{}, 1, 0, &stampArgs{}))
}
