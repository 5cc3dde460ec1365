//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
)

// pair is two cards with boxes, or one card twice.
type pair struct {
	t     testing.TB
	cards [2]*card
	boxes [2]*kernel.Box
	first [2]*driver.Buffer
	next  uint32
}

func newPair(t testing.TB, room int) *pair {
	o := options(t)
	list, err := List(o)
	require.NoError(t, err)
	p := &pair{t: t, next: 1}
	var own [2]*driver.Buffer
	for i := range p.cards {
		d, err := openDevice(min(i, len(list)-1), &o)
		require.NoError(t, err)
		line, err := d.Timeline()
		require.NoError(t, err)
		t.Cleanup(func() {
			line.Close()
			require.NoError(t, d.Close(true))
		})
		c := &card{t, d, line, new(uint64)}
		p.cards[i], p.boxes[i] = c, &kernel.Box{Member: i, Room: room, At: make([]uint64, 2)}
		own[i], err = d.Allocate(driver.Local, p.boxes[i].Bytes())
		require.NoError(t, err)
		t.Cleanup(func() { d.Free(own[i]) })
		c.record(0, func(r driver.Recording) { r.Fill(own[i], 0) })
		p.boxes[i].At[i], p.first[i] = own[i].Address, p.told(c, 0)
	}
	for i, c := range p.cards {
		b, err := c.d.Reach(p.cards[1-i].d, own[1-i])
		require.NoError(t, err)
		t.Cleanup(func() { c.d.Free(b) })
		p.boxes[i].At[1-i] = b.Address
	}
	return p
}

// told is a number that the host tells kernels of a card.
func (p *pair) told(c *card, n uint32) *driver.Buffer {
	b, err := c.d.Allocate(driver.Stepwise, 256)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { c.d.Free(b) })
	view[uint32](b)[0] = n
	return b
}

// record makes a recording of some exchanges for each card.
func (p *pair) record(times int, launch func(card int) kernel.Exchange) (all [2]driver.Recording) {
	for i, c := range p.cards {
		var err error
		all[i], err = c.d.Record(driver.Compute, 0)
		require.NoError(p.t, err)
		for n := range times {
			e := launch(i)
			e.Box, e.First, e.Index = p.boxes[i], p.first[i].Address, n
			require.NoError(p.t, c.d.kernels.Launch(all[i], &e))
			all[i].Barrier()
		}
		require.NoError(p.t, all[i].End())
		p.t.Cleanup(all[i].Close)
	}
	return all
}

// run submits both and waits.
func (p *pair) run(times int, all [2]driver.Recording) {
	for i := range p.cards {
		view[uint32](p.first[i])[0] = p.next
		require.NoError(p.t, all[i].(driver.Preparer).Prepare())
	}
	p.next += uint32(times)
	for i, c := range p.cards {
		*c.last++
		require.NoError(p.t, c.d.Submit(all[i:i+1], nil, driver.Point{Timeline: c.line, Value: *c.last}))
	}
	for _, c := range p.cards {
		require.NoError(p.t, c.line.Wait(*c.last, time.Minute))
	}
}

// TestExchange: both cards have the sum in the order of the cards, and behind it what it is added to, whether few rows
// are exchanged or many, once or often; parts are joined. Rows that are not there stay as they are.
func TestExchange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		rows, there, width int
		join               bool
	}{{1, 1, 64, false}, {4, 3, 96, false}, {40, 37, 512, false}, {2, 2, 64, true}, {40, 33, 512, true}} {
		p := newPair(t, 4*c.rows*c.width)
		var parts, more, y, count, status [2]*driver.Buffer
		values := [3][]float32{}
		for i := range values {
			for range c.rows * c.width {
				values[i] = append(values[i], rng.Float32()*float32(int(1)<<rng.IntN(20)))
			}
		}
		wide := c.width
		if c.join {
			wide *= 2
		}
		for i, x := range p.cards {
			parts[i], more[i], y[i] = of(x, values[i]...), of(x, values[2]...), x.room(4*c.rows*wide)
			count[i], status[i] = p.told(x, uint32(c.there)), x.room(16)
		}
		launch := func(i int) kernel.Exchange {
			e := kernel.Exchange{Part: parts[i].Address, PartStride: c.width, Y: y[i].Address, YStride: wide, Width: c.width,
				Rows: c.rows, Join: c.join, Count: count[i].Address, Status: status[i].Address}
			if !c.join {
				e.Residual = more[i].Address
			}
			return e
		}
		recordings := p.record(9, launch)
		for range listed + 2 {
			for i := range y {
				clear(y[i].Bytes)
			}
			p.run(9, recordings)
			for i := range p.cards {
				require.Zero(t, view[uint32](status[i])[0], "%+v", c)
				for at, got := range view[float32](y[i])[:c.rows*wide] {
					r, f := at/wide, at%wide
					want := float32(0)
					switch {
					case r >= c.there || c.join && f/c.width == i: // its own lies there already
					case c.join:
						want = values[f/c.width][r*c.width+f%c.width]
					default:
						want = values[0][at] + values[1][at]
						want += values[2][at]
					}
					require.Equal(t, want, got, "%+v, card %d, value %d", c, i, at)
				}
			}
		}
	}
}

// BenchmarkExchange is of a row of 4096 features, and of 512 of them.
func BenchmarkExchange(b *testing.B) {
	for name, rows := range map[string]int{"row": 1, "prompt": 512} {
		b.Run(name, func(b *testing.B) {
			const times, width = 64, 4096
			p := newPair(b, 4*rows*width)
			var x, count, status [2]*driver.Buffer
			for i, c := range p.cards {
				var err error
				x[i], err = c.d.Allocate(driver.Local, uint64(4*rows*width))
				require.NoError(b, err)
				b.Cleanup(func() { c.d.Free(x[i]) })
				count[i], status[i] = p.told(c, uint32(rows)), of(c, uint32(0))
			}
			recordings := p.record(times, func(i int) kernel.Exchange {
				return kernel.Exchange{Part: x[i].Address, PartStride: width, Y: x[i].Address, YStride: width, Width: width,
					Rows: rows, Count: count[i].Address, Status: status[i].Address}
			})
			for range listed + 1 {
				p.run(times, recordings)
			}
			b.ResetTimer()
			for b.Loop() {
				p.run(times, recordings)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*times), "µs/exchange")
		})
	}
}
