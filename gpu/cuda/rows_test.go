//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/ir"
)

// maker makes the memory of a launch on one of two devices.
type maker struct {
	d   driver.Device
	t   testing.TB
	out []*driver.Buffer
}

func (m *maker) room(n int) *driver.Buffer {
	b, err := m.d.Allocate(driver.Staging, uint64(n))
	require.NoError(m.t, err)
	m.t.Cleanup(func() { m.d.Free(b) })
	clear(b.Bytes)
	return b
}

// floats is where numbers lie.
func (m *maker) floats(x []float32) uint64 {
	b := m.room(4*len(x) + 16)
	copy(view[float32](b), x)
	return b.Address
}

func (m *maker) words(x ...uint32) uint64 {
	b := m.room(4 * len(x))
	copy(view[uint32](b), x)
	return b.Address
}

// result is where n bytes of a result go.
func (m *maker) result(n int) uint64 {
	b := m.room(n)
	m.out = append(m.out, b)
	return b.Address
}

// both launches the same on the card and on gpu/null, and returns the results of each.
func (c *card) both(build func(m *maker) kernel.Launch) (ours, plain []*driver.Buffer) {
	c.t.Helper()
	return c.bothAll(func(m *maker) []kernel.Launch { return []kernel.Launch{build(m)} })
}

// bothAll is both for launches of which each uses what those before it wrote.
func (c *card) bothAll(build func(m *maker) []kernel.Launch) (ours, plain []*driver.Buffer) {
	c.t.Helper()
	here, there := &maker{d: c.d, t: c.t}, &maker{d: null.Open(null.Options{Integers: true}), t: c.t}
	c.t.Cleanup(func() { require.NoError(c.t, there.d.Close(false)) })
	c.run(build(here)...)
	r, err := there.d.Record(driver.Compute, 0)
	require.NoError(c.t, err)
	for _, l := range build(there) {
		require.NoError(c.t, there.d.Kernels().Launch(r, l))
		r.BarrierAll()
	}
	require.NoError(c.t, r.End())
	line, err := there.d.Timeline()
	require.NoError(c.t, err)
	require.NoError(c.t, there.d.Submit([]driver.Recording{r}, nil, driver.Point{Timeline: line, Value: 1}))
	require.NoError(c.t, line.Wait(1, time.Minute))
	r.Close()
	line.Close()
	return here.out, there.out
}

// near says that the first results of both are the same but for rounding.
func (c *card) near(build func(m *maker) kernel.Launch, relative float64, what string) {
	c.t.Helper()
	ours, plain := c.both(build)
	a, b := view[float32](ours[0]), view[float32](plain[0])
	for i := range b {
		none := float64(a[i] - a[i]) // of what is infinite, too: nothing wrong becomes a number
		if math.IsNaN(float64(b[i])) && math.IsNaN(none) || a[i] == b[i] {
			continue
		}
		require.InDelta(c.t, b[i], a[i], relative*(math.Abs(float64(b[i]))+1), "%s: value %d", what, i)
	}
}

// some are numbers on both sides of zero.
func some(seed uint64, n int, scale float32) []float32 {
	random, x := rand.New(rand.NewPCG(seed, 1)), make([]float32, n)
	for i := range x {
		x[i] = (random.Float32()*2 - 1) * scale
	}
	return x
}

// TestEach tries all formulas, with values far from zero, NaN and infinity.
func TestEach(t *testing.T) {
	c := open(t)
	all := []kernel.Each{{Formula: kernel.Copy}, {Formula: kernel.Sum}, {Formula: kernel.Product},
		{Formula: kernel.Product, BWidth: 1}, {Formula: kernel.Scaled, Factor: 0.3},
		{Formula: kernel.SoftCap, Factor: 30}, {Formula: kernel.SoftCap, Factor: 0.5}}
	for a := ir.SiLU; a <= ir.Clamped; a++ {
		if a != ir.Clamped {
			all = append(all, kernel.Each{Formula: kernel.Activate, Act: a})
		}
		all = append(all, kernel.Each{Formula: kernel.Gate, Act: a})
	}
	const width, stride, rows = 300, 320, 3
	x, w := some(1, rows*stride, 4), some(2, rows*stride, 4)
	copy(x, []float32{-90, 90, -20, 20, 1e-9, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0})
	for i := range 9 {
		w[i] = 0.5
	}
	for _, e := range all {
		c.with(t).near(func(m *maker) kernel.Launch {
			l := e
			l.A, l.B, l.Y = m.floats(x), m.floats(w), m.result(4*rows*stride)
			l.AStride, l.BStride, l.YStride = stride, stride, stride
			l.Width, l.Rows, l.Filled = width, rows, stride
			return &l
		}, 2e-6, fmt.Sprintf("%+v", e))
	}
	c.near(func(m *maker) kernel.Launch {
		return &kernel.Each{A: m.floats(x), Y: m.result(4 * 4 * width), AStride: stride, YStride: width, Width: width,
			Numbers: m.words(2, 0, 2, 1), Numbered: rows, Rows: 4, Count: m.words(3)}
	}, 0, "rows by number")
	c.near(func(m *maker) kernel.Launch {
		return &kernel.Each{Formula: kernel.Sum, A: m.floats(x), B: m.floats(w), Y: m.result(4 * rows * width),
			AStride: stride, BStride: stride, YStride: width, Width: width, Rows: rows, Share: 2}
	}, 0, "rows that share one")
	r, err := c.d.Record(driver.Compute, 0)
	require.NoError(t, err)
	defer r.Close()
	require.Error(t, c.d.kernels.Launch(r, &kernel.Each{Formula: kernel.Activate, Act: ir.Clamped}))
}

// TestGroupNorm tries norms of both kinds, with and without weights, in every order of sums.
func TestGroupNorm(t *testing.T) {
	c := open(t)
	for _, n := range []kernel.GroupNorm{
		{Width: 1200, Group: 1200}, {Width: 1200, Group: 1200, Layer: true}, {Width: 384, Group: 128},
		{Width: 384, Group: 128, Layer: true, GainByRow: true, BiasByRow: true}, {Width: 70, Group: 7},
	} {
		stride, rows := n.Width+4, 3
		for _, weights := range []bool{false, true} {
			c.near(func(m *maker) kernel.Launch {
				l := n
				l.X, l.Y, l.XStride, l.YStride, l.Rows, l.Eps = m.floats(some(3, rows*stride, 2)), m.result(4*rows*stride), stride,
					stride, rows, 1e-5
				l.Count = m.words(2)
				if weights {
					l.Gain, l.Bias = m.floats(some(4, n.Width, 1)), m.floats(some(5, n.Width, 1))
				}
				return &l
			}, 2e-6, fmt.Sprintf("%+v", n))
		}
	}
}

// TestTurn rotates pairs of both kinds, and leaves what does not rotate.
func TestTurn(t *testing.T) {
	c := open(t)
	const heads, features, rows, stride = 3, 20, 4, 64
	for _, dims := range []int{0, 8, 20} {
		for _, interleaved := range []bool{false, true} {
			c.near(func(m *maker) kernel.Launch {
				return &kernel.Turn{X: m.floats(some(6, rows*stride, 1)), Y: m.result(4 * rows * stride),
					Angles: m.floats(some(7, rows*max(dims, 1), 1)), Heads: heads, Features: features, Dims: dims,
					Interleaved: interleaved, XStride: stride, YStride: stride, Rows: rows, Count: m.words(3)}
			}, 1e-6, fmt.Sprintf("%d dimensions, interleaved %v", dims, interleaved))
		}
	}
}

// TestFinite finds a row with a value that is none.
func TestFinite(t *testing.T) {
	c := open(t)
	for _, wrong := range []float32{0, float32(math.NaN()), float32(math.Inf(-1))} {
		ours, plain := c.both(func(m *maker) kernel.Launch {
			x := some(8, 3*400, 1)
			x[1*400+299], x[1*400+300], x[2*400] = wrong, float32(math.NaN()), float32(math.NaN())
			return &kernel.Finite{X: m.floats(x), Status: m.result(4), Count: m.words(2), Width: 300, Stride: 400, Rows: 3}
		})
		require.Equal(t, view[uint32](plain[0]), view[uint32](ours[0]))
		require.Equal(t, wrong != 0, view[uint32](ours[0])[0] == 2)
	}
}

// TestNorm compares norms with gpu/null's, and quantised rows by bits with what their definition makes of float32 ones.
func TestNorm(t *testing.T) {
	c := open(t)
	for _, width := range []int{1, 31, 256, 300, 4096} {
		const rows = 3
		stride := kernel.PaddedWidth(width) + 4
		x := some(uint64(width), rows*stride, 3)
		clear(x[2*stride:])
		build := func(quantise, gain bool) func(m *maker) kernel.Launch {
			return func(m *maker) kernel.Launch {
				n := &kernel.Norm{X: m.floats(x), Width: width, XStride: stride, Stride: stride, Rows: rows, Eps: 1e-5,
					Quantise: quantise, Y: m.result(4 * rows * stride)}
				if gain {
					n.Gain = m.floats(some(9, width, 1))
				}
				return n
			}
		}
		for _, gain := range []bool{false, true} {
			c.near(build(false, gain), 2e-6, fmt.Sprintf("width %d", width))
			full, _ := c.both(build(false, gain))
			packed, _ := c.both(build(true, gain))
			for r := range rows {
				k := kernel.PaddedWidth(width)
				want := quantised(view[float32](full[0])[r*stride : r*stride+k])
				require.Equal(t, want, packed[0].Bytes[r*len(want):][:len(want)], "width %d, row %d", width, r)
			}
		}
	}
}

// quantised is a row as lib/quantise.cuh defines it.
func quantised(x []float32) []byte {
	k := len(x)
	y := make([]byte, k*5/4)
	for b := range k / 32 {
		amax := float32(0)
		for _, v := range x[32*b:][:32] {
			amax = max(amax, float32(math.Abs(float64(v))))
		}
		by := float32(0)
		if amax > 0 {
			by = 127 / amax
		}
		var sums [2]int16
		for i, v := range x[32*b:][:32] {
			q := int8(math.RoundToEven(float64(v * by)))
			y[32*b+i] = byte(q)
			sums[i/16] += int16(q)
		}
		at := y[k+8*b:]
		binary.LittleEndian.PutUint32(at, math.Float32bits(amax*(float32(1)/127)))
		binary.LittleEndian.PutUint16(at[4:], uint16(sums[0]))
		binary.LittleEndian.PutUint16(at[6:], uint16(sums[1]))
	}
	return y
}

// TestNormThreads: a row's bits depend neither on other rows nor on the number of threads, which the width chooses.
func TestNormThreads(t *testing.T) {
	c := open(t)
	const width = 2048
	x := some(10, width, 3)
	first := c.room(4 * width)
	from := of(c, x...)
	gain := of(c, some(11, width, 1)...)
	args := &normArgs{x: from.Address, y: first.Address, gain: gain.Address, width: width, xStride: width, yStride: width,
		eps: 1e-6}
	for _, threads := range []int{512, 32, 96} {
		y := c.room(4 * width)
		args.y = y.Address
		c.record(0, func(r driver.Recording) {
			require.NoError(t, launch(c.d.kernels, r.(*recording), "norm", "norm", one, threads, width/8, args))
		})
		if threads == 512 {
			first = y
		}
		require.True(t, sameBits(view[float32](first), view[float32](y)), "%d threads", threads)
	}
}

// TestProbes: what measures a card runs, and says what it has done.
func TestProbes(t *testing.T) {
	c := open(t)
	const quads = 2 * kernel.ReadQuads
	x, never, y := c.room(16*quads), c.room(4), c.room(kernel.PeakBytes)
	c.run(&kernel.Read{X: x.Address, Never: never.Address, Quads: quads})
	require.Zero(t, view[uint32](never)[0])
	view[uint32](x)[4*quads-1] = 0x9e3779b9
	c.run(&kernel.Read{X: x.Address, Never: never.Address, Quads: quads})
	require.Equal(t, uint32(1), view[uint32](never)[0])
	if testing.Short() {
		return
	}
	for _, halves := range []bool{false, true} {
		c.run(&kernel.Peak{Y: y.Address, Rounds: 1, Halves: halves})
		require.Positive(t, c.d.kernels.PeakOps(halves))
	}
}

// TestAround gathers what is around each row of a grid and of a line.
func TestAround(t *testing.T) {
	c := open(t)
	const width, rows, stride = 5, 13, 8
	for _, size := range []int{1, 3, 5} {
		c.near(func(m *maker) kernel.Launch {
			return &kernel.Around{X: m.floats(some(12, rows*stride, 1)), Y: m.result(4 * rows * size * size * width),
				Width: width, Size: size, XStride: stride, YStride: size * size * width, Rows: rows, Count: m.words(rows - 1),
				Texts: m.words(0, 6, 0, 2, 3, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0)}
		}, 0, fmt.Sprintf("%d × %d", size, size))
	}
}
