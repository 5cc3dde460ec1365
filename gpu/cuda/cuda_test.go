//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"bytes"
	"math"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/cuda/fake"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
)

// testOn says what tests run on: card is the machine's, by its own driver; else it is the fake one.
const testOn = "SLUICE_TEST_CUDA"

// options open what tests run on.
func options(t testing.TB) Options {
	t.Helper()
	if os.Getenv(testOn) == "card" {
		return Options{}
	}
	return Options{Library: fake.Library(t)}
}

// card is a device under test, with memory that lives as long as a test.
type card struct {
	t    testing.TB
	d    *device
	line driver.Timeline
	last *uint64
}

// open opens the first card.
func open(t testing.TB) *card {
	t.Helper()
	o := options(t)
	d, err := openDevice(0, &o)
	require.NoError(t, err)
	line, err := d.Timeline()
	require.NoError(t, err)
	t.Cleanup(func() {
		line.Close()
		require.NoError(t, d.Close(true))
	})
	return &card{t, d, line, new(uint64)}
}

// with is the same card for a subtest.
func (c *card) with(t testing.TB) *card {
	x := *c
	x.t = t
	return &x
}

// room is memory that both sides reach, zeroed, until the test's end. What lies behind it must stay as it is.
func (c *card) room(n int) *driver.Buffer {
	c.t.Helper()
	guard := bytes.Repeat([]byte{0xa5}, 4096)
	b, err := c.d.Allocate(driver.Staging, uint64(n+len(guard)))
	require.NoError(c.t, err)
	clear(b.Bytes)
	copy(b.Bytes[n:], guard)
	inside := *b
	inside.Size, inside.Bytes = uint64(n), b.Bytes[:n:n]
	c.t.Cleanup(func() {
		require.True(c.t, bytes.Equal(guard, b.Bytes[n:]), "a kernel wrote behind %d bytes", n)
		c.d.Free(b)
	})
	return &inside
}

// of is memory that holds numbers.
func of[T any](c *card, x ...T) *driver.Buffer {
	c.t.Helper()
	b := c.room(len(x) * int(unsafe.Sizeof(x[0])))
	copy(view[T](b), x)
	return b
}

// view is a buffer as numbers.
func view[T any](b *driver.Buffer) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(&b.Bytes[0])), len(b.Bytes)/int(unsafe.Sizeof(t)))
}

// run launches, in order, and waits.
func (c *card) run(all ...kernel.Launch) {
	c.t.Helper()
	c.record(0, func(r driver.Recording) {
		for _, l := range all {
			require.NoError(c.t, c.d.kernels.Launch(r, l))
			r.Barrier()
		}
	})
}

// record records, runs once, waits, and returns the recording's timestamps.
func (c *card) record(stamps int, fill func(driver.Recording)) []uint64 {
	c.t.Helper()
	r, err := c.d.Record(driver.Compute, stamps)
	require.NoError(c.t, err)
	fill(r)
	r.BarrierToHost()
	require.NoError(c.t, r.End())
	c.submit(r)
	ticks, err := r.Ticks(nil)
	require.NoError(c.t, err)
	r.Close()
	return ticks
}

// submit runs recordings and waits.
func (c *card) submit(all ...driver.Recording) {
	c.t.Helper()
	*c.last++
	require.NoError(c.t, c.d.Submit(all, nil, driver.Point{Timeline: c.line, Value: *c.last}))
	err := c.line.Wait(*c.last, c.d.Patience())
	if err != nil {
		c.d.Hold()
	}
	require.NoError(c.t, err)
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}
