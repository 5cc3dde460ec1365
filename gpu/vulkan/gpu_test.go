//go:build cgo && linux

package vulkan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/testref"
)

// gpu is a device under test, with memory that lives as long as a test.
type gpu struct {
	t       testing.TB
	lib     *vk.Library
	d       *vk.Device
	k       *Kernels
	line    *vk.Timeline
	reached *uint64
}

// open opens the first device, under validation if the layer is there. SLUICE_VULKAN_DEVICE names another by a part
// of its name. Without a device the test is skipped; in CI it fails. The device lacks what is named.
func open(t testing.TB, lacks ...string) *gpu {
	t.Helper()
	return openTrial(t, nil, lacks...)
}

func openTrial(t testing.TB, trial *vk.Trial, lacks ...string) *gpu {
	t.Helper()
	lib, err := vk.OpenWith(vk.Options{Validate: os.Getenv("SLUICE_VULKAN_BARE") == "",
		Without: append(without(), lacks...), Trial: trial})
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() {
		require.NoError(t, lib.Close())
		require.Empty(t, lib.Messages(), "the validation layer was not silent at the end")
	})
	all, err := lib.Devices()
	if err != nil || len(all) == 0 {
		missing(t, err)
	}
	name := os.Getenv("SLUICE_VULKAN_DEVICE")
	i := slices.IndexFunc(all, func(p *vk.Physical) bool { return strings.Contains(p.Facts.Name, name) })
	require.GreaterOrEqual(t, i, 0, "no device is called %q", name)
	d, err := all[i].Open()
	require.NoError(t, err)
	g := &gpu{t: t, lib: lib, d: d, k: NewKernels(d), reached: new(uint64)}
	g.line, err = d.NewTimeline()
	require.NoError(t, err)
	t.Cleanup(func() {
		g.k.Close()
		g.line.Close()
		require.NoError(t, d.Close())
		require.Empty(t, lib.Messages(), "the validation layer was not silent")
	})
	return g
}

func missing(t testing.TB, err error) {
	t.Helper()
	testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
}

// with is the same device for a subtest.
func (g *gpu) with(t testing.TB) *gpu {
	h := *g
	h.t = t
	return &h
}

// room is memory that both sides reach, zeroed, until the test's end. What lies behind it must stay as it is.
func (g *gpu) room(n uint64) *vk.Buffer {
	g.t.Helper()
	guard := bytes.Repeat([]byte{0xa5}, 4096)
	b, err := g.d.Allocate(vk.Staging, n+uint64(len(guard)))
	require.NoError(g.t, err)
	clear(b.Bytes)
	copy(b.Bytes[n:], guard)
	inside := *b
	inside.Size, inside.Bytes = n, b.Bytes[:n:n]
	g.t.Cleanup(func() {
		require.True(g.t, bytes.Equal(guard, b.Bytes[n:]), "a kernel wrote behind %d bytes", n)
		g.d.Free(b)
	})
	return &inside
}

func (g *gpu) bytes(data []byte) *vk.Buffer {
	b := g.room(uint64(len(data)))
	copy(b.Bytes, data)
	return b
}

func (g *gpu) floats(x []float32) *vk.Buffer {
	b := g.room(uint64(4 * len(x)))
	copy(view[float32](b.Bytes), x)
	return b
}

func (g *gpu) words(x ...uint32) *vk.Buffer {
	b := g.room(uint64(4 * len(x)))
	copy(view[uint32](b.Bytes), x)
	return b
}

// view is bytes as other numbers.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(t)))
}

// floats is a copy of bytes as floats.
func floats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

// run records, runs and waits.
func (g *gpu) run(record func(*vk.Recording)) {
	g.t.Helper()
	r, err := g.d.Record(0)
	require.NoError(g.t, err)
	defer r.Close()
	record(r)
	r.BarrierToHost()
	require.NoError(g.t, r.End())
	g.submit(r)
}

// submit runs a recording and waits for as long as an engine would. What has not ended by then may still be at work: no
// memory of it is freed, nor the recording, until the device has come to rest.
func (g *gpu) submit(r *vk.Recording) {
	g.t.Helper()
	*g.reached++
	require.NoError(g.t, g.d.Submit([]*vk.Recording{r}, nil, vk.Point{Timeline: g.line, Value: *g.reached}))
	err := g.line.Wait(*g.reached, g.d.Patience())
	if err != nil {
		g.d.Hold()
	}
	require.NoError(g.t, err)
}

func (g *gpu) sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// TestFacts shows what the device says of itself.
func TestFacts(t *testing.T) {
	g := open(t)
	f := g.d.Facts
	t.Logf("%+v", f)
	require.NotEmpty(t, f.Name)
	require.GreaterOrEqual(t, f.Shared, uint32(16<<10))
	require.GreaterOrEqual(t, f.Push, uint32(vk.PushSize))
	require.NotZero(t, f.Tick)
	require.NotEmpty(t, f.Heaps)
	require.Contains(t, f.API.String(), "1.")
}

// givingUp is a test that fails. Its cleanups are run by who has it.
type givingUp struct {
	testing.TB
	said []string
	over []func()
}

func (t *givingUp) Cleanup(f func()) { t.over = append(t.over, f) }
func (t *givingUp) Errorf(format string, args ...any) {
	t.said = append(t.said, fmt.Sprintf(format, args...))
}
func (t *givingUp) FailNow() { runtime.Goexit() }

// TestLeftAtWork: a test that gives up on a kernel leaves it what it uses. Freed memory that is written to has crashed
// tests; the validation layer sees it always.
func TestLeftAtWork(t *testing.T) {
	armed := atomic.Bool{}
	trial := &vk.Trial{Patience: 100 * time.Millisecond, Hangs: func() bool { return armed.CompareAndSwap(true, false) }}
	failing := &givingUp{TB: t}
	g := openTrial(failing, trial)
	failing.Cleanup(func() { // of its buffers all have been freed, and nothing else
		trial.Release()
		require.NoError(t, g.line.Wait(*g.reached, time.Minute))
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		from, to := g.room(4096), g.room(4096)
		armed.Store(true)
		g.run(func(r *vk.Recording) { r.Copy(to, 0, from, 0, 4096) })
	})
	wg.Wait()
	for _, f := range slices.Backward(failing.over) {
		wg.Go(f)
		wg.Wait()
	}
	require.Len(t, failing.said, 1)
	require.Contains(t, failing.said[0], "VK_TIMEOUT")
}
