//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
)

// recorded is what fill records.
func (c *card) recorded(q driver.Queue, fill func(r driver.Recording)) driver.Recording {
	c.t.Helper()
	r, err := c.d.Record(q, 2)
	require.NoError(c.t, err)
	r.Stamp()
	fill(r)
	r.Barrier()
	r.Stamp()
	require.NoError(c.t, r.End())
	c.t.Cleanup(r.Close)
	return r
}

// took is the nanoseconds of the card's clock that a recording takes.
func (c *card) took(r driver.Recording) float64 {
	c.t.Helper()
	c.submit(r)
	ticks, err := r.Ticks(nil)
	require.NoError(c.t, err)
	return float64(ticks[1] - ticks[0])
}

// timed reports the mean time of a recording's runs, by the card's clock, for an amount a run in a unit.
func (c *card) timed(b *testing.B, r driver.Recording, amount float64, unit string) {
	c.took(r)
	b.ResetTimer()
	total := 0.0
	for range b.N {
		total += c.took(r)
	}
	b.ReportMetric(amount/(total/float64(b.N)), unit)
}

// BenchmarkSubmit is from a submission of one small kernel until the host sees its end.
func BenchmarkSubmit(b *testing.B) {
	c := open(b)
	x := of(c, float32(1))
	r := c.recorded(driver.Compute, func(r driver.Recording) { require.NoError(b, c.d.kernels.Launch(r, sum(x, x, x))) })
	for b.Loop() {
		c.submit(r)
	}
}

// BenchmarkBoundary is a kernel that waits for the one before, in a graph of many.
func BenchmarkBoundary(b *testing.B) {
	c := open(b)
	const n = 256
	x := of(c, float32(1))
	r := c.recorded(driver.Compute, func(r driver.Recording) {
		for range n {
			r.Barrier()
			require.NoError(b, c.d.kernels.Launch(r, sum(x, x, x)))
		}
	})
	c.took(r)
	b.ResetTimer()
	total := 0.0
	for range b.N {
		total += c.took(r)
	}
	b.ReportMetric(total/float64(b.N)/n, "ns/kernel")
}

// BenchmarkRead is the card's own memory, read once.
func BenchmarkRead(b *testing.B) {
	c := open(b)
	bytes := uint64(256 << 20)
	if c.d.facts.Software {
		bytes = 1 << 20
	}
	x, err := c.d.Allocate(driver.Local, bytes)
	require.NoError(b, err)
	defer c.d.Free(x)
	never := c.room(4)
	r := c.recorded(driver.Compute, func(r driver.Recording) {
		require.NoError(b, c.d.kernels.Launch(r, &kernel.Read{X: x.Address, Never: never.Address, Quads: bytes / 16}))
	})
	c.timed(b, r, float64(bytes), "GB/s")
}

// BenchmarkPeak is the matrix units, of whole numbers and of halves.
func BenchmarkPeak(b *testing.B) {
	for name, halves := range map[string]bool{"whole": false, "halves": true} {
		b.Run(name, func(b *testing.B) {
			c := open(b)
			rounds := uint32(2000)
			if c.d.facts.Software {
				rounds = 1
			}
			y := c.room(kernel.PeakBytes)
			r := c.recorded(driver.Compute, func(r driver.Recording) {
				require.NoError(b, c.d.kernels.Launch(r, &kernel.Peak{Y: y.Address, Rounds: rounds, Halves: halves}))
			})
			c.timed(b, r, c.d.kernels.PeakOps(halves)*float64(rounds)/1000, "TOP/s")
		})
	}
}

// BenchmarkCopy is copies from page-locked memory to the card.
func BenchmarkCopy(b *testing.B) {
	c := open(b)
	const bytes = 64 << 20
	from, err := c.d.Allocate(driver.Staging, bytes)
	require.NoError(b, err)
	to, err := c.d.Allocate(driver.Local, bytes)
	require.NoError(b, err)
	defer c.d.Free(from, to)
	r := c.recorded(driver.Copies, func(r driver.Recording) { r.Copy(to, 0, from, 0, bytes) })
	c.timed(b, r, bytes, "GB/s")
}
