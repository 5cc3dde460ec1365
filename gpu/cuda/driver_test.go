//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// TestFacts shows what the card says of itself.
func TestFacts(t *testing.T) {
	c := open(t)
	f := c.d.c.Facts
	t.Logf("%+v, driver %d, %d MiB free", f, c.d.c.Version, c.d.facts.Free>>20)
	require.NotEmpty(t, f.Name)
	require.GreaterOrEqual(t, f.Shared, 96<<10)
	require.Positive(t, f.Processors)
	require.Positive(t, c.d.facts.Free)
	o := options(t)
	list, err := List(o)
	require.NoError(t, err)
	require.Equal(t, f.Name, list[0].Name)
	require.NoError(t, list[0].Missing)
	_, err = Open(len(list), o)
	require.ErrorContains(t, err, "there is no CUDA device")
}

// sum is y = a + b.
func sum(y, a, b *driver.Buffer) *kernel.Each {
	return &kernel.Each{Formula: kernel.Sum, A: a.Address, B: b.Address, Y: y.Address, Width: 1, Rows: 1}
}

// TestOrder: what stands behind a barrier sees what stood before it, in a list as in the graph that a second run has of
// it.
func TestOrder(t *testing.T) {
	c := open(t)
	for _, n := range []int{2, 40} { // doublings: a list, and a graph
		x, y := of(c, float32(1)), of(c, float32(0))
		r, err := c.d.Record(driver.Compute, 2)
		require.NoError(t, err)
		r.Stamp()
		for range n / 2 {
			require.NoError(t, c.d.kernels.Launch(r, sum(y, x, x)))
			r.Barrier()
			require.NoError(t, c.d.kernels.Launch(r, sum(x, y, y)))
			r.Barrier()
		}
		r.Stamp()
		require.NoError(t, r.End())
		want := float32(1)
		for run := range 3 {
			c.submit(r)
			require.Equal(t, n >= 8 && run > 0, r.(*recording).exec != nil, "run %d", run)
			for range n {
				want *= 2
			}
			require.Equal(t, want, view[float32](x)[0])
		}
		ticks, err := r.Ticks(nil)
		require.NoError(t, err)
		require.Equal(t, 2, r.Marks())
		require.Less(t, ticks[0], ticks[1])
		r.Close()
	}
}

// TestSides: what stands between two barriers is waited for by all that follows, however much it is.
func TestSides(t *testing.T) {
	c := open(t)
	const n = 20
	x, y := of(c, make([]float32, n)...), of(c, make([]float32, n)...)
	at := func(b *driver.Buffer, i int) *driver.Buffer {
		return &driver.Buffer{Address: b.Address + 4*uint64(i), Size: 4}
	}
	r, err := c.d.Record(driver.Compute, 0)
	require.NoError(t, err)
	defer r.Close()
	for range 3 {
		for i := range n { // each is the sum of its neighbours: y of x, then x of y
			require.NoError(t, c.d.kernels.Launch(r, sum(at(y, i), at(x, i), at(x, (i+1)%n))))
		}
		r.Barrier()
		r.Barrier()
		for i := range n {
			require.NoError(t, c.d.kernels.Launch(r, sum(at(x, i), at(y, i), at(y, (i+1)%n))))
		}
		r.BarrierAll()
	}
	r.Fill(at(y, 0), 7)
	r.Copy(at(y, 1), 0, at(x, 1), 0, 4)
	require.NoError(t, r.End())
	want := make([]float32, n)
	for i := range want {
		want[i] = float32(i)
	}
	for range 6 {
		next := make([]float32, n)
		for i := range next {
			next[i] = want[i] + want[(i+1)%n]
		}
		want = next
	}
	for range 2 { // a list, then a graph
		for i := range n {
			view[float32](x)[i] = float32(i)
		}
		c.submit(r)
		require.Equal(t, want, view[float32](x))
		require.Equal(t, uint32(7), view[uint32](y)[0])
		require.Equal(t, want[1], view[float32](y)[1])
	}
}

// TestQueues: copies wait for what computes and the other way round, by streams' words or by kernels that look at them.
func TestQueues(t *testing.T) {
	c := open(t)
	for _, words := range []bool{true, false} {
		c.d.c.Facts.Words = c.d.c.Facts.Words && words
		local, err := c.d.Allocate(driver.Local, 4)
		require.NoError(t, err)
		x := of(c, float32(21))
		copied, err := c.d.Timeline()
		require.NoError(t, err)
		up, err := c.d.Record(driver.Copies, 2)
		require.NoError(t, err)
		up.Stamp()
		up.Copy(local, 0, x, 0, 4)
		up.Stamp()
		require.NoError(t, up.End())
		down, err := c.d.Record(driver.Compute, 0)
		require.NoError(t, err)
		require.NoError(t, c.d.kernels.Launch(down, sum(x, local, local)))
		require.NoError(t, down.End())
		*c.last++
		require.NoError(t, c.d.Submit([]driver.Recording{up}, nil, driver.Point{Timeline: copied, Value: 3}))
		require.NoError(t, c.d.Submit([]driver.Recording{down}, []driver.Point{{Timeline: copied, Value: 3}},
			driver.Point{Timeline: c.line, Value: *c.last}))
		require.NoError(t, c.line.Wait(*c.last, time.Minute))
		require.Equal(t, float32(42), view[float32](x)[0])
		v, err := copied.Value()
		require.NoError(t, err)
		require.Equal(t, uint64(3), v)
		require.ErrorIs(t, copied.Wait(4, time.Millisecond), driver.ErrTimeout)
		ticks, err := up.Ticks(nil)
		require.NoError(t, err)
		require.True(t, slices.IsSorted(ticks) && ticks[0] > 0, "%v", ticks)
		up.Close()
		down.Close()
		copied.Close()
		c.d.Free(local, nil)
	}
}

// TestCalibrate: the card's clock goes as the host's does.
func TestCalibrate(t *testing.T) {
	c := open(t)
	first, _, before, ok := c.d.Calibrate()
	require.True(t, ok)
	time.Sleep(20 * time.Millisecond)
	second, after, end, ok := c.d.Calibrate()
	require.True(t, ok)
	t.Logf("read within %s", end.Sub(after))
	least, most := after.Sub(before), end.Sub(before)+time.Second
	require.GreaterOrEqual(t, time.Duration(second-first)+2*time.Microsecond, least)
	require.Less(t, time.Duration(second-first), most)
}

// TestImport: memory of the program is copied from where it is, and to it, by several devices.
func TestImport(t *testing.T) {
	c := open(t)
	own := make([]byte, 1<<20)
	for i := range own {
		own[i] = byte(i * 7)
	}
	b, err := c.d.Import(own)
	require.NoError(t, err)
	to := c.room(len(own))
	c.record(0, func(r driver.Recording) { r.Copy(to, 0, b, 0, b.Size) })
	require.Equal(t, own, to.Bytes)
	to.Bytes[9]++
	want := bytes.Clone(to.Bytes)
	c.record(0, func(r driver.Recording) { r.Copy(b, 0, to, 0, b.Size) })
	require.Equal(t, want, own)
	o := options(t)
	other, err := openDevice(0, &o)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(false)) }()
	second, err := other.Import(own)
	require.NoError(t, err)
	c.d.Free(b)
	require.Error(t, c.d.c.Register(own), "it still is, for the other device")
	third, err := c.d.Import(own)
	require.NoError(t, err)
	other.Free(second)
	c.d.Free(third)
	_, err = c.d.Import(nil)
	require.Error(t, err)
}

// TestCache: what was compiled is found again, and a torn file is none.
func TestCache(t *testing.T) {
	o := options(t)
	o.Cache = t.TempDir()
	for i := range 3 {
		d, err := openDevice(0, &o)
		require.NoError(t, err)
		_, err = d.kernels.module("each")
		require.NoError(t, err)
		path := d.kernels.cachePath("each", "")
		require.NoError(t, d.Close(true))
		kept, err := cubins(path)
		require.NoError(t, err)
		require.Len(t, kept, 1)
		cubin, err := safefile.ReadSummed(kept[0])
		require.NoError(t, err)
		require.NotEmpty(t, cubin)
		if i == 1 {
			require.NoError(t, tear(kept[0]))
			cubin, err = safefile.ReadSummed(kept[0])
			require.NoError(t, err)
			require.Nil(t, cubin)
		}
	}
}

// cubins are the files beside one.
func cubins(path string) ([]string, error) {
	return filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
}

// tear changes a byte of a file.
func tear(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return os.WriteFile(path, data, 0o600)
}

// TestStepwise: kernels, and copies, read what the host has written before each submission, in a graph as in a list.
func TestStepwise(t *testing.T) {
	c := open(t)
	for _, n := range []int{1, 10} {
		b, err := c.d.Allocate(driver.Stepwise, 4*100)
		require.NoError(t, err)
		other, err := c.d.Allocate(driver.Stepwise, 4)
		require.NoError(t, err)
		y, z := of(c, float32(0)), of(c, float32(0))
		r, err := c.d.Record(driver.Compute, 0)
		require.NoError(t, err)
		last := &driver.Buffer{Address: b.Address + 4*99, Size: 4}
		for range n {
			require.NoError(t, c.d.kernels.Launch(r, sum(y, last, other)))
			r.Barrier()
		}
		r.Copy(z, 0, b, 4*99, 4)
		require.NoError(t, r.End())
		for i := range 3 {
			view[float32](b)[99], view[float32](other)[0] = float32(i), 10
			c.submit(r)
			require.Equal(t, float32(10+i), view[float32](y)[0])
			require.Equal(t, float32(i), view[float32](z)[0])
		}
		r.Close()
		c.d.Free(b, other)
		require.Empty(t, c.d.stepwise.all)
	}
}

// TestSubmitAllocatesNothing: a step is submitted and waited for without allocations, as a graph or command by command.
func TestSubmitAllocatesNothing(t *testing.T) {
	c := open(t)
	x := of(c, float32(1))
	for _, kernels := range []int{2, 16} {
		all := []driver.Recording{c.recorded(driver.Compute, func(r driver.Recording) {
			for range kernels {
				r.Barrier()
				require.NoError(t, c.d.kernels.Launch(r, sum(x, x, x)))
			}
		})}
		c.submit(all...)
		c.submit(all...) // makes the graph
		var failed error
		n := testing.AllocsPerRun(50, func() {
			*c.last++
			p := driver.Point{Timeline: c.line, Value: *c.last}
			if err := errors.Join(c.d.Submit(all, nil, p), c.line.Wait(*c.last, time.Minute)); err != nil {
				failed = err
			}
		})
		require.NoError(t, failed)
		require.Zero(t, n, "%d kernels", kernels)
	}
}
