package null

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	host "github.com/sluice-ai/sluice/stages/sample"
)

// bench is a card with what tests need of it.
type bench struct {
	*Device
	t    *testing.T
	line driver.Timeline
	last uint64
}

func open(t *testing.T, o Options) *bench {
	b := &bench{Device: Open(o), t: t}
	t.Cleanup(func() { require.NoError(t, b.Close(true)) })
	var err error
	b.line, err = b.Timeline()
	require.NoError(t, err)
	return b
}

// take is memory that the host reaches.
func (b *bench) take(size int) *driver.Buffer {
	x, err := b.Allocate(driver.Staging, uint64(size))
	require.NoError(b.t, err)
	return x
}

// of is memory with numbers.
func of[T any](b *bench, v ...T) *driver.Buffer {
	x := b.take(len(v) * int(unsafe.Sizeof(v[0])))
	copy(words[T](x), v)
	return x
}

// words is memory as numbers.
func words[T any](b *driver.Buffer) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&b.Bytes[0])), len(b.Bytes)/int(unsafe.Sizeof(*new(T))))
}

func (b *bench) record(q driver.Queue, stamps int, fill func(r driver.Recording)) driver.Recording {
	b.t.Helper()
	r, err := b.Record(q, stamps)
	require.NoError(b.t, err)
	fill(r)
	require.NoError(b.t, r.End())
	return r
}

func (b *bench) launch(r driver.Recording, all ...kernel.Launch) {
	b.t.Helper()
	for _, l := range all {
		require.NoError(b.t, b.Kernels().Launch(r, l))
	}
}

// submit runs recordings, which raise the card's timeline by one.
func (b *bench) submit(waits []driver.Point, all ...driver.Recording) uint64 {
	b.t.Helper()
	b.last++
	require.NoError(b.t, b.Submit(all, waits, driver.Point{Timeline: b.line, Value: b.last}))
	return b.last
}

// run records, submits and waits.
func (b *bench) run(fill func(r driver.Recording)) error {
	b.t.Helper()
	return b.line.Wait(b.submit(nil, b.record(driver.Compute, 0, fill)), time.Minute)
}

// double is a launch that doubles n numbers.
func double(from, to *driver.Buffer, n int) *kernel.Each {
	return &kernel.Each{Formula: kernel.Scaled, Factor: 2, A: from.Address, Y: to.Address, Width: n, AStride: n,
		YStride: n, Rows: 1}
}

// TestMemory: what lies in no buffer loses the device, with an error that names the kernel.
func TestMemory(t *testing.T) {
	for name, change := range map[string]func(e *kernel.Each){
		"beyond its end": func(e *kernel.Each) { e.Width = 5 },
		"before it":      func(e *kernel.Each) { e.A -= 4 },
		"nowhere":        func(e *kernel.Each) { e.Y = 12 },
	} {
		b := open(t, Options{})
		x := of[float32](b, 1, 2, 3, 4)
		require.NoError(t, b.run(func(r driver.Recording) { b.launch(r, double(x, x, 4)) }))
		require.Equal(t, []float32{2, 4, 6, 8}, words[float32](x))
		e := double(x, x, 4)
		change(e)
		err := b.run(func(r driver.Recording) { b.launch(r, e) })
		require.ErrorIs(t, err, driver.ErrLost, name)
		require.ErrorContains(t, err, "Each: ", name)
		require.ErrorContains(t, err, "lie in no buffer", name)
		_, err = b.Record(driver.Compute, 0)
		require.ErrorIs(t, err, driver.ErrLost)
	}
}

// TestFreed: memory that was given back is nobody's, and new memory is no number.
func TestFreed(t *testing.T) {
	b := open(t, Options{Free: 100})
	x, err := b.Allocate(driver.Local, 64)
	require.NoError(t, err)
	require.Nil(t, x.Bytes)
	_, err = b.Allocate(driver.Local, 64)
	require.ErrorIs(t, err, driver.ErrScarce)
	y := b.take(8)
	require.NoError(t, b.run(func(r driver.Recording) { r.Copy(y, 0, x, 0, 8) }))
	require.NotEqual(t, words[float32](y)[0], words[float32](y)[0])
	b.Free(x, nil)
	_, err = b.Allocate(driver.Local, 100)
	require.NoError(t, err)
	mine, err := b.Import([]byte("somebody's"))
	require.NoError(t, err)
	require.NoError(t, b.run(func(r driver.Recording) { r.Copy(y, 0, mine, 2, 8) }))
	require.Equal(t, "mebody's", string(y.Bytes))
	b.Free(mine)
	_, err = b.Allocate(driver.Local, 1)
	require.ErrorIs(t, err, driver.ErrScarce, "what was imported is none of the card's memory")
	err = b.run(func(r driver.Recording) { r.Copy(y, 0, x, 0, 8) })
	require.ErrorContains(t, err, "copy: 8 bytes at")
}

// TestDeclared: a loop that touches what its launch has not declared ends.
func TestDeclared(t *testing.T) {
	b := open(t, Options{})
	m := b.take(4096)
	at := m.Address
	uses := kernel.Uses{Reads: []kernel.Use{{At: at, Rows: 3, Stride: 100, Width: 40}},
		Writes: []kernel.Use{{At: at + 1000, Rows: 2, Stride: 8, Width: 8}, {At: at + 2000, Rows: 1, Stride: 1, Width: 1}}}
	for _, c := range []struct {
		name string
		loop func(x *access)
		want string
	}{
		{"a row", func(x *access) { in[float32](x, at+100, 10) }, ""},
		{"a part of the last row", func(x *access) { in[float32](x, at+220, 5) }, ""},
		{"between rows", func(x *access) { in[float32](x, at+40, 1) }, "it reads 4 bytes"},
		{"over the end of a row", func(x *access) { in[float32](x, at+136, 2) }, "it reads 8 bytes"},
		{"behind all rows", func(x *access) { in[float32](x, at+300, 1) }, "it reads 4 bytes"},
		{"what is written", func(x *access) { in[float32](x, at+1000, 1) }, "it reads 4 bytes"},
		{"two rows without a gap", func(x *access) { out[float32](x, at+1004, 3) }, ""},
		{"what is read", func(x *access) { out[float32](x, at, 1) }, "it writes 4 bytes"},
		{"a cache", func(x *access) { keeps[float32](x, at+2000, 500, 4) }, ""},
		{"a cache that is not written", func(x *access) { keeps[float32](x, at+3000, 0, 4) }, "it writes 1 bytes"},
		{"a cache that is not read", func(x *access) { kept[float32](x, at+2000, 0, 4) }, "it reads 1 bytes"},
		{"a weight", func(x *access) { told[float32](x, at+3000, 4) }, ""},
		{"a slice beyond its row", func(x *access) { _ = in[float32](x, at, 10)[10] }, "a loop of its driver broke"},
	} {
		err := (&access{memory: &b.memory, uses: uses}).try(c.loop)
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorContains(t, err, c.want, c.name)
	}
}

// TestHazards: two commands that have memory in common, and one of which writes it, need a barrier of the right kind.
func TestHazards(t *testing.T) {
	const n = 4
	for _, c := range []struct {
		name string
		fill func(b *bench, r driver.Recording, x, y, z *driver.Buffer)
		want string
	}{
		{"a result that is read", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			b.launch(r, double(x, y, n), double(y, z, n))
		}, "Each and Each"},
		{"a barrier before", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			r.Barrier()
			b.launch(r, double(x, y, n), double(y, z, n))
		}, "Each and Each"},
		{"a barrier between", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			b.launch(r, double(x, y, n))
			r.Barrier()
			b.launch(r, double(y, z, n))
		}, ""},
		{"an operand that is written", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			b.launch(r, double(x, y, n), double(z, x, n))
		}, "Each and Each"},
		{"one operand of two", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			b.launch(r, double(x, y, n), double(x, z, n))
		}, ""},
		{"a barrier between kernels, for a copy", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			b.launch(r, double(x, y, n))
			r.Barrier()
			r.Copy(z, 0, y, 0, 4*n)
		}, "Each and copy"},
		{"a barrier for a copy", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			b.launch(r, double(x, y, n))
			r.BarrierAll()
			r.Copy(z, 0, y, 0, 4*n)
		}, ""},
		{"memory that is filled", func(b *bench, r driver.Recording, x, y, z *driver.Buffer) {
			r.Fill(x, 0)
			b.launch(r, double(x, y, n))
		}, "fill and Each"},
	} {
		b := open(t, Options{})
		x, y, z := of[float32](b, 1, 2, 3, 4), b.take(4*n), b.take(4*n)
		err := b.run(func(r driver.Recording) { c.fill(b, r, x, y, z) })
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorIs(t, err, driver.ErrLost, c.name)
		require.ErrorContains(t, err, c.want+" have the byte", c.name)
	}
}

// TestQueues: what runs on two queues, or in two submissions of one, is ordered by a timeline that one waits for, by a
// host that waits, and by nothing else.
func TestQueues(t *testing.T) {
	const n = 4
	for _, c := range []struct {
		name             string
		behind, host, ok bool
		first            driver.Queue
	}{
		{name: "beside each other", first: driver.Copies},
		{name: "the second waits", first: driver.Copies, behind: true, ok: true},
		{name: "the host waits", first: driver.Copies, host: true, ok: true},
		{name: "one queue", first: driver.Compute},
		{name: "one queue, the second waits", first: driver.Compute, behind: true, ok: true},
		{name: "one queue, the host waits", first: driver.Compute, host: true, ok: true},
	} {
		b := open(t, Options{})
		x, y := of[float32](b, 1, 2, 3, 4), b.take(4*n)
		copies, err := b.Timeline()
		require.NoError(t, err)
		there := driver.Point{Timeline: copies, Value: 7}
		copied := b.record(c.first, 0, func(r driver.Recording) { r.Copy(y, 0, x, 0, 4*n) })
		doubled := b.record(driver.Compute, 0, func(r driver.Recording) { b.launch(r, double(y, y, n)) })
		require.NoError(t, b.Submit([]driver.Recording{copied}, nil, there))
		var waits []driver.Point
		if c.behind {
			waits = append(waits, there)
		}
		if c.host {
			require.NoError(t, copies.Wait(7, time.Minute))
		}
		value := b.submit(waits, doubled)
		err = errors.Join(b.line.Wait(value, time.Minute), copies.Wait(7, time.Minute))
		if c.ok {
			require.NoError(t, err, c.name)
			require.Equal(t, []float32{2, 4, 6, 8}, words[float32](y), c.name)
			continue
		}
		require.ErrorIs(t, err, driver.ErrLost, c.name)
	}
}

// TestOldValues: a submission that waits for what the host has seen to end long ago, after it was submitted, is ordered
// behind that.
func TestOldValues(t *testing.T) {
	b := open(t, Options{})
	x, y := of[float32](b, 1, 2, 3, 4), b.take(16)
	gate, err := b.Timeline()
	require.NoError(t, err)
	copies, err := b.Timeline()
	require.NoError(t, err)
	doubled := b.record(driver.Compute, 0, func(r driver.Recording) { b.launch(r, double(x, x, 4)) })
	empty := b.record(driver.Compute, 0, func(driver.Recording) {})
	first := b.submit(nil, doubled)
	copied := b.record(driver.Copies, 0, func(r driver.Recording) { r.Copy(y, 0, x, 0, 16) })
	shut := b.record(driver.Copies, 0, func(driver.Recording) {})
	require.NoError(t, b.Submit([]driver.Recording{shut}, []driver.Point{{Timeline: gate, Value: 1}},
		driver.Point{Timeline: copies, Value: 1}))
	require.NoError(t, b.Submit([]driver.Recording{copied}, []driver.Point{{Timeline: b.line, Value: first}},
		driver.Point{Timeline: copies, Value: 2}))
	require.NoError(t, b.line.Wait(b.submit(nil, empty), time.Minute))
	require.NoError(t, b.Submit([]driver.Recording{empty}, nil, driver.Point{Timeline: gate, Value: 1}))
	require.NoError(t, copies.Wait(2, time.Minute))
	require.Equal(t, []float32{2, 4, 6, 8}, words[float32](y))
}

// TestTimelines: a submission begins when what it waits for has come, others run meanwhile, and whoever waits for too
// long hears so.
func TestTimelines(t *testing.T) {
	b := open(t, Options{})
	x, y := of[float32](b, 1, 2, 3, 4), b.take(16)
	copies, err := b.Timeline()
	require.NoError(t, err)
	first := b.submit([]driver.Point{{Timeline: copies, Value: 2}}, b.record(driver.Compute, 0, func(r driver.Recording) {
		b.launch(r, double(y, y, 4))
	}))
	require.ErrorIs(t, b.line.Wait(first, 0), driver.ErrTimeout)
	for i, from := range []*driver.Buffer{of[float32](b, 9, 9, 9, 9), x} {
		copied := b.record(driver.Copies, 0, func(r driver.Recording) {
			r.BarrierAll()
			r.Copy(y, 0, from, 0, 16)
		})
		require.NoError(t, b.Submit([]driver.Recording{copied}, nil, driver.Point{Timeline: copies, Value: uint64(i + 1)}))
	}
	require.NoError(t, b.line.Wait(first, time.Minute))
	value, err := copies.Value()
	require.NoError(t, err)
	require.EqualValues(t, 2, value)
	require.Equal(t, []float32{2, 4, 6, 8}, words[float32](y))
	err = b.Submit([]driver.Recording{b.record(driver.Compute, 0, func(driver.Recording) {})}, nil,
		driver.Point{Timeline: copies, Value: 2})
	require.ErrorContains(t, err, "a timeline is to come to 2, and then to 2")
}

// TestLost: whoever waits hears of it, and a card closes whatever it was given.
func TestLost(t *testing.T) {
	b := open(t, Options{})
	never, err := b.Timeline()
	require.NoError(t, err)
	value := b.submit([]driver.Point{{Timeline: never, Value: 1}}, b.record(driver.Compute, 0, func(driver.Recording) {}))
	waiting := make(chan error)
	go func() { waiting <- b.line.Wait(value, time.Minute) }()
	b.Lose(errors.New("somebody stumbled"))
	err = <-waiting
	require.ErrorIs(t, err, driver.ErrLost)
	require.ErrorContains(t, err, "somebody stumbled")
	require.ErrorIs(t, b.Submit(nil, nil, driver.Point{}), driver.ErrLost)

	c := Open(Options{})
	line, err := c.Timeline()
	require.NoError(t, err)
	r, err := c.Record(driver.Copies, 0)
	require.NoError(t, err)
	require.NoError(t, r.End())
	wait := []driver.Point{{Timeline: line, Value: 5}}
	require.NoError(t, c.Submit([]driver.Recording{r}, wait, driver.Point{Timeline: line, Value: 6}))
	require.NoError(t, c.Close(false), "what waits for nothing that comes is dropped")
}

// TestOrder: kernels between two barriers run in many orders, others in one. The first of two broken kernels loses the
// card.
func TestOrder(t *testing.T) {
	orders := func(barrier bool) map[string]bool {
		seen := map[string]bool{}
		for seed := range uint64(20) {
			b := open(t, Options{Order: seed + 1})
			to, status, count := of[float32](b, 0), of[uint32](b, 0), of[uint32](b, 1)
			err := b.run(func(r driver.Recording) {
				b.launch(r, double(&driver.Buffer{Address: 8}, to, 1))
				if barrier {
					r.Barrier()
				}
				b.launch(r, &kernel.Finite{X: 8, Status: status.Address, Count: count.Address, Width: 1, Stride: 1,
					Rows: 1})
			})
			require.ErrorIs(t, err, driver.ErrLost)
			name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), driver.ErrLost.Error()+": "), ":")
			seen[name] = true
		}
		return seen
	}
	require.Equal(t, map[string]bool{"Each": true}, orders(true))
	require.Equal(t, map[string]bool{"Each": true, "Finite": true}, orders(false))
}

// TestStamps: timestamps ascend with what was done between them.
func TestStamps(t *testing.T) {
	b := open(t, Options{Stamps: 64})
	x := of[float32](b, 1)
	r := b.record(driver.Compute, 3, func(r driver.Recording) {
		r.Stamp()
		b.launch(r, double(x, x, 1))
		r.Stamp()
		r.Barrier()
		b.launch(r, double(x, x, 1))
		r.Stamp()
	})
	require.NoError(t, b.line.Wait(b.submit(nil, r), time.Minute))
	require.Equal(t, 3, r.Marks())
	ticks, err := r.Ticks(nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{0, 1, 2}, ticks)
	short, err := b.Record(driver.Compute, 0)
	require.NoError(t, err)
	short.Stamp()
	require.ErrorContains(t, short.End(), "1 timestamps in a recording that has room for 0")
}

// TestQuantised: bytes and sums are what gpu/kernel says, and NaN stays one.
func TestQuantised(t *testing.T) {
	v, bytes, back := make([]float32, 256), make([]byte, kernel.QuantisedBytes(256)), make([]float32, 256)
	for i := range v {
		v[i] = float32(i%37) - 11.3
	}
	v[70] = float32(math.NaN())
	quantise(bytes, v)
	dequantise(back, bytes)
	for b := 0; b < 256; b += 32 {
		if b == 64 {
			require.NotEqual(t, back[b], back[b])
			continue
		}
		sum := [2]int16{}
		for i := range 32 {
			require.InDelta(t, v[b+i], back[b+i], 25.7/254+1e-4)
			sum[i/16] += int16(int8(bytes[b+i]))
		}
		require.Equal(t, sum, [2]int16(unsafe.Slice((*int16)(unsafe.Pointer(&bytes[256+b/4+4])), 2)))
	}
}

// TestSample compares with the host's sampler, token by token.
func TestSample(t *testing.T) {
	b := open(t, Options{})
	for _, width := range []int{7, 300} {
		const rows = 64
		rnd := rand.New(rand.NewPCG(uint64(width), 1))
		logits, draws, want := make([]float32, width*rows), b.take(kernel.DrawBytes*rows), make([]uint32, rows)
		sampler := host.NewSampler(width)
		for r := range rows {
			row := logits[r*width:][:width]
			for i := range row {
				row[i] = float32(int(rnd.NormFloat64() * 9)) // many are equal
			}
			p := host.Defaults()
			p.Seed, p.Temp, p.TopK = rnd.Uint64(), 0.3+2*rnd.Float32(), 1+rnd.IntN(60)
			p.TopP, p.MinP = []float32{1, 0.95, 0.4, 0}[r%4], []float32{0, 0.05, 0.3, 1}[r/4%4]
			result, err := sampler.Sample(row, &p, nil, host.State{})
			require.NoError(t, err)
			want[r] = uint32(result.ID)
			d := p.Draw(0)
			if r == 5 {
				want[r] = 77777
				kernel.PutDraw(draws.Bytes[r*kernel.DrawBytes:], nil)
				continue
			}
			kernel.PutDraw(draws.Bytes[r*kernel.DrawBytes:], &d)
		}
		ids, second := b.take(4*rows), b.take(4*rows)
		words[uint32](ids)[5], words[uint32](second)[5] = 77777, 77777
		require.NoError(t, b.run(func(r driver.Recording) {
			b.launch(r, &kernel.Sample{Logits: of(b, logits...).Address, Draws: draws.Address, IDs: ids.Address,
				Second: second.Address, Scratch: b.take(int(kernel.SampleScratch(rows))).Address, Width: width, Stride: width,
				Rows: rows})
		}))
		require.Equal(t, want, words[uint32](ids), "of %d tokens", width)
		require.Equal(t, want, words[uint32](second))
	}
}

// TestGroup: each expert's pairs are together, in as many entries as they fill.
func TestGroup(t *testing.T) {
	const none = kernel.NoExpert
	b := open(t, Options{})
	ids := of[uint32](b, 2, 0, 2, none, 2, 1)
	to := b.take(int(kernel.GroupBytes(3, 6, 2)))
	require.NoError(t, b.run(func(r driver.Recording) {
		b.launch(r, &kernel.Group{IDs: ids.Address, Entries: to.Address, Experts: 3, Pairs: 6, Size: 2})
	}))
	require.Equal(t, []uint32{0, 1, none, 1, 5, none, 2, 0, 2, 2, 4, none}, words[uint32](to)[:12])
	for _, v := range words[uint32](to)[12:] {
		require.EqualValues(t, none, v)
	}
}

// TestCacheTypes: rows that are stored in a block are read back, as near as the type is.
func TestCacheTypes(t *testing.T) {
	b := open(t, Options{})
	for kind, tolerance := range map[backend.Format]float64{backend.KVF32.Format: 0, backend.KVF16.Format: 2e-3,
		backend.KVQ8.Format: 2e-2} {
		h := &kernel.Heads{Query: 4, KV: 2, Features: 48, Values: 40, Cache: kind}
		keys, values := b.take(int(h.KeyBytes(3))), b.take(int(h.ValueBytes(3)))
		x := &access{memory: &b.memory}
		for _, m := range []*driver.Buffer{keys, values} {
			x.uses.Reads = append(x.uses.Reads, kernel.Use{At: m.Address, Rows: 1, Stride: 1, Width: 1})
			x.uses.Writes = append(x.uses.Writes, kernel.Use{At: m.Address, Rows: 1, Stride: 1, Width: 1})
		}
		runs := []run{keysOf(h, keys.Address, 2, 1), valuesOf(h, values.Address, 2, 1)}
		for _, r := range runs {
			want := make([]float32, 64*r.features)
			for i := range want {
				want[i] = float32(i%23)/10 - 1
			}
			for p := range 64 {
				r.store(x, p, want[p*r.features:(p+1)*r.features])
			}
			require.InDeltaSlice(t, want[5*r.features:9*r.features], r.load(x, 5, 4), tolerance, kind)
		}
	}
}

// TestNotes: of what launches note in one word, the largest stays.
func TestNotes(t *testing.T) {
	b := open(t, Options{})
	word := b.take(4)
	x := &access{memory: &b.memory}
	for _, n := range []uint32{2, 5, 3} {
		x.note(word.Address, n)
	}
	require.Equal(t, uint32(5), told[uint32](x, word.Address, 1)[0])
}

// TestRefused: launches and types that the card has no loop for are refused when they are recorded.
func TestRefused(t *testing.T) {
	b := open(t, Options{})
	copies, err := b.Record(driver.Copies, 0)
	require.NoError(t, err)
	x := b.take(16)
	require.ErrorContains(t, b.Kernels().Launch(copies, double(x, x, 4)), "a kernel on the queue of copies")
	type unknown struct{ kernel.Launch }
	compute, err := b.Record(driver.Compute, 0)
	require.NoError(t, err)
	require.ErrorContains(t, b.Kernels().Launch(compute, &unknown{double(x, x, 4)}), "has no loop")
	_, err = b.Kernels().Matrix(99, 32, 32, false)
	require.Error(t, err)
	require.InDelta(t, 0.0, ir.ReLU2.Of(-3), 0)
}
