//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/kvcode"
	"github.com/sluice-ai/sluice/internal/quant"
)

// sealedScene is sequences of random keys and values, whose full blocks were sealed, and a row at the end of each.
type sealedScene struct {
	*gpu
	h            kernel.Heads
	rows, recent []kernel.Row
	a            kernel.Attention
	q            []float32
	keys, values [][][]float32 // by sequence and KV head, all positions': as the cache must return them
	open, kept   [2]*vk.Buffer // K, V
	blocks       [][2]uint32   // of each block of all sequences: where it is open, and where it is sealed
}

// sealedHeads is a shape in two types of caches.
func sealedHeads(t testing.TB, h kernel.Heads, k, v string) kernel.Heads {
	t.Helper()
	kv, err := backend.MixKV(k, v)
	require.NoError(t, err)
	h.Cache = kv.Format
	return h
}

// sealed makes a scene: a sequence a position.
func (g *gpu) sealed(h kernel.Heads, positions ...int) *sealedScene {
	s := &sealedScene{gpu: g, h: h}
	rnd := rand.New(rand.NewPCG(6, 6))
	total := 0
	for _, p := range positions {
		total += blocksOf(p)
	}
	var tables []uint32
	for _, p := range positions {
		n := blocksOf(p)
		s.rows = append(s.rows, kernel.Row{Position: uint32(p), Table: uint32(len(tables))})
		s.recent = append(s.recent, kernel.Row{Position: uint32(p), Table: uint32(len(tables) + n)})
		for range 2 {
			for i := range n { // sealed blocks in one order, open ones in another
				tables = append(tables, uint32(len(s.blocks)+i))
			}
		}
		for i := range n {
			s.blocks = append(s.blocks, [2]uint32{tables[len(tables)-n+i], tables[len(tables)-2*n+i]})
		}
		s.q = append(s.q, randomRow(h.Query*h.Features, rnd.Uint64())...)
		for i := h.Features; i < h.Query*h.Features; i++ { // all heads are smaller than the first: none may be taken for it
			s.q[len(s.q)-h.Query*h.Features+i] /= 4
		}
	}
	open := h.Recent()
	s.open = [2]*vk.Buffer{g.room(open.KeyBytes(total)), g.room(open.ValueBytes(total))}
	s.kept = [2]*vk.Buffer{g.room(h.KeyBytes(total)), g.room(h.ValueBytes(total))}
	block := 0
	for _, p := range positions {
		s.fill(rnd, p, block)
		block += blocksOf(p)
	}
	out := h.Query * h.ValueFeatures()
	s.a = kernel.Attention{X: g.floats(s.q).Address, Y: g.room(uint64(4 * out * len(s.rows))).Address,
		Keys: s.kept[0].Address, Values: s.kept[1].Address, Parts: g.room(h.PartBytes(len(s.rows))).Address,
		Rows: s.list(s.rows), Tables: g.words(tables...).Address, XStride: h.Query * h.Features, YStride: out,
		N: len(s.rows), Scale: 0.03, Depth: slices.Max(positions),
		Recent: kernel.Recent{Keys: s.open[0].Address, Values: s.open[1].Address, Rows: s.list(s.recent)}}
	s.seal()
	return s
}

func (s *sealedScene) list(rows []kernel.Row) uint64 {
	b := s.room(uint64(8 * len(rows)))
	copy(view[kernel.Row](b.Bytes), rows)
	return b.Address
}

// fill has a sequence's open blocks hold random rows, as the form of open blocks keeps them, and lists what the cache
// must return.
func (s *sealedScene) fill(rnd *rand.Rand, position, block int) {
	var all [2][][]float32
	for side := range 2 {
		form, n := s.h.Format().K, s.h.Features
		if side == 1 {
			form, n = s.h.Format().V, s.h.ValueFeatures()
		}
		each := form.Open.Bytes(n)
		for head := range s.h.KV {
			var rows []float32
			for b := range blocksOf(position) {
				open := s.open[side].Bytes[((block+b)*s.h.KV+head)*each:][:each]
				one := randomRow(64*n, rnd.Uint64())
				for i := 0; i < 64*n; i += n {
					one[i+rnd.IntN(n)] *= 8 // as keys have it
				}
				form.Open.Put(open, n, 0, one)
				form.Open.Get(one, open, n, 0)
				if form.Sealed != nil && (b+1)*64 <= position {
					sealed := make([]byte, form.Sealed.Bytes(n))
					form.Sealed.Put(sealed, n, 0, one)
					form.Sealed.Get(one, sealed, n, 0)
				}
				rows = append(rows, one...)
			}
			all[side] = append(all[side], rows)
		}
	}
	s.keys, s.values = append(s.keys, all[0]), append(s.values, all[1])
}

// seal seals all full blocks, by their last rows, among rows that fill none.
func (s *sealedScene) seal() {
	var rows, recent []kernel.Row
	for i, r := range s.rows {
		for p := uint32(62); p <= r.Position; p += 1 + p%64%2*63 {
			rows = append(rows, kernel.Row{Position: p, Table: r.Table})
			recent = append(recent, kernel.Row{Position: p, Table: s.recent[i].Table})
			if p%64 == 62 && p+1 > r.Position {
				break
			}
		}
	}
	s.run(func(r *vk.Recording) {
		require.NoError(s.t, s.k.Seal(r, &kernel.Seal{Heads: s.h, Keys: s.a.Keys, Values: s.a.Values, Tables: s.a.Tables,
			Rows: s.list(rows), N: len(rows), Recent: kernel.Recent{Keys: s.a.Recent.Keys, Values: s.a.Recent.Values,
				Rows: s.list(recent)}}))
	})
}

// attend computes the rows [from, to).
func (s *sealedScene) attend(from, to int) []float32 {
	a, out := s.a, s.h.Query*s.h.ValueFeatures()
	y := s.room(uint64(4 * out * (to - from)))
	a.Y, a.N, a.X = y.Address, to-from, a.X+uint64(4*from*a.XStride)
	a.Rows, a.Recent.Rows = a.Rows+uint64(8*from), a.Recent.Rows+uint64(8*from)
	s.run(func(r *vk.Recording) { require.NoError(s.t, s.k.Attend(r, &s.h, &a)) })
	return floats(y.Bytes)
}

// want is a query head's result, in float64.
func (s *sealedScene) want(row, head int) []float64 {
	n, kv, f := s.h.ValueFeatures(), head/(s.h.Query/s.h.KV), s.h.Features
	y, total, from, position := make([]float64, n), 0.0, 0, int(s.rows[row].Position)
	if s.a.Window > 0 {
		from = max(0, position+1-s.a.Window)
	}
	q := s.q[(row*s.h.Query+head)*f:][:f]
	for p := from; p <= position; p++ {
		score := 0.0
		for i, k := range s.keys[row][kv][p*f:][:f] {
			score += float64(k) * float64(q[i])
		}
		w := math.Exp(score * float64(s.a.Scale))
		total += w
		for i, v := range s.values[row][kv][p*n:][:n] {
			y[i] += w * float64(v)
		}
	}
	for i := range y {
		y[i] /= total
	}
	return y
}

// TestAttentionSealed: rows see sealed blocks as the forms keep them, whatever else is in the step, and however the
// device multiplies bytes.
func TestAttentionSealed(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		h         kernel.Heads
		k, v      string
		positions []int
		window    int
	}{
		{kernel.Heads{Query: 4, KV: 2, Features: 64}, "tq4", "tq4", []int{530, 63, 64}, 0},
		{kernel.Heads{Query: 2, KV: 1, Features: 80, Values: 40}, "q4", "tq3", []int{300, 5}, 77},
		{kernel.Heads{Query: 3, KV: 1, Features: 36, Values: 24}, "q5", "q4", []int{200}, 0},
		{kernel.Heads{Query: 2, KV: 1, Features: 48, Values: 72}, "tq3", "q5", []int{200}, 90},
		{kernel.Heads{Query: 1, KV: 1, Features: 40, Values: 18}, "q8", "tq2", []int{4200}, 0}, // splits of several turns
	} {
		t.Run(c.k+" "+c.v, func(t *testing.T) {
			if testing.Short() && c.k != "tq4" && c.k != "q8" {
				t.Skip("compiles kernels for seconds")
			}
			s := g.with(t).sealed(sealedHeads(t, c.h, c.k, c.v), c.positions...)
			s.a.Window = c.window
			y, n := s.attend(0, len(s.rows)), s.h.ValueFeatures()
			apart, whole := 0.0, 0.0
			for row := range s.rows {
				for head := range s.h.Query {
					for i, v := range s.want(row, head) {
						d := v - float64(y[(row*s.h.Query+head)*n+i])
						require.False(t, math.IsNaN(d))
						apart, whole = apart+d*d, whole+v*v
					}
				}
			}
			require.Less(t, math.Sqrt(apart/whole), 0.01) // queries are rounded to bytes
			var alone []float32
			for row := range s.rows {
				alone = append(alone, s.attend(row, row+1)...)
			}
			require.True(t, s.sameBits(y, alone), "a row alone")
			f, shared := &s.k.d.Facts, s.k.d.Facts.Shared
			defer func() { f.Shared = shared }()
			one, err := s.k.codedConstants(&s.h)
			require.NoError(t, err)
			one.AtOnce, one.Copies = 1, 1
			f.Shared = codedShared(&one)
			require.True(t, s.sameBits(y, s.attend(0, len(s.rows))), "a head at a time")
		})
	}
}

// TestSealed compares codes and scales with those that forms find: sums of squares have another order, so a few are
// others.
func TestSealed(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		h    kernel.Heads
		k, v string
	}{
		{kernel.Heads{Query: 1, KV: 2, Features: 80, Values: 64}, "q5", "q5"},
		{kernel.Heads{Query: 1, KV: 1, Features: 128, Values: 96}, "tq3", "tq3"},
		{kernel.Heads{Query: 1, KV: 1, Features: 36, Values: 320}, "tq4", "q4"},
		{kernel.Heads{Query: 1, KV: 1, Features: 16, Values: 72}, "q8", "tq2"},
	} {
		t.Run(fmt.Sprint(c.k, " ", c.v), func(t *testing.T) {
			s := g.with(t).sealed(sealedHeads(t, c.h, c.k, c.v), 64)
			for head := range s.h.KV {
				s.same(t, head, 0, s.h.Features, s.h.Format().K)
				s.same(t, head, 1, s.h.ValueFeatures(), s.h.Format().V)
			}
		})
	}
}

// same compares the first block of a head with what its form makes of the open block.
func (s *sealedScene) same(t *testing.T, head, side, n int, of backend.Side) {
	open, each := of.Open.Bytes(n), len(s.kept[side].Bytes)/s.h.KV/blocksOf(int(s.rows[0].Position))
	from, run := s.open[side].Bytes[head*open:][:open], s.kept[side].Bytes[head*each:][:each]
	form, ok := of.Sealed.(backend.Coded)
	if !ok {
		require.Equal(t, from, run, "kept as it is")
		return
	}
	rows, want := make([]float32, 64*n), make([]byte, form.Bytes(n))
	of.Open.Get(rows, from, n, 0)
	form.Put(want, n, 0, rows)
	bytes, each, others := form.PackedBytes(n), n, 0
	if !form.Book {
		each = kvcode.Part
	}
	ours, theirs := newCodedRow(form, n), newCodedRow(form, n)
	for p := range 64 {
		form.Unpack(theirs.codes, want[p*bytes:][:bytes])
		for d := range n {
			ours.codes[d] = codeAt(run, form, n, side == 1, p, d)
		}
		for i := range form.Scales(n) {
			theirs.scales[i] = binary.LittleEndian.Uint16(want[64*bytes+2*(p*form.Scales(n)+i):])
			ours.scales[i] = binary.LittleEndian.Uint16(run[codeBytes(form, n, side == 1)+2*(64*i+p):])
		}
		row := rows[p*n:][:n]
		kvcode.Rotate(row)
		form.Decode(ours.row, ours.codes, ours.scales)
		form.Decode(theirs.row, theirs.codes, theirs.scales)
		for i := range form.Scales(n) {
			from, to := i*each, min((i+1)*each, n)
			scale := float64(quant.F16ToF32(theirs.scales[i]))
			if math.Abs(scale-float64(quant.F16ToF32(ours.scales[i]))) > 0.002*math.Abs(scale) {
				// Another try is as good: its codes have nothing in common with those of the form.
				require.InEpsilon(t, apart(theirs.row[from:to], row[from:to]), apart(ours.row[from:to], row[from:to]), 0.001)
				others++
				continue
			}
			for d := from; d < to; d++ {
				if ours.codes[d] != theirs.codes[d] {
					others++
				}
			}
		}
	}
	require.LessOrEqual(t, others, 64*n/250)
}

// codedRow is a row in codes, and what they stand for.
type codedRow struct {
	codes  []byte
	scales []uint16
	row    []float32
}

func newCodedRow(form backend.Coded, n int) *codedRow {
	return &codedRow{make([]byte, n), make([]uint16, form.Scales(n)), make([]float32, n)}
}

// apart is the squared distance of two vectors.
func apart(a, b []float32) (sum float64) {
	for i := range a {
		sum += math.Pow(float64(a[i])-float64(b[i]), 2)
	}
	return sum
}

// codeBytes is the memory of a run's codes.
func codeBytes(form backend.Coded, n int, values bool) int {
	if values {
		return 8 * form.Bits * n
	}
	words := n / 32 * form.Bits
	if rest := n % 32; rest > 0 {
		words += (rest*(form.Bits&^1)+31)/32 + form.Bits&1
	}
	return 256 * words
}

// codeAt is a code of a run, as lib/codes.glsl says where it lies.
func codeAt(run []byte, form backend.Coded, n int, values bool, position, feature int) byte {
	wide, narrow := form.Bits&^1, form.Bits&1
	part, lane, i, many := feature/32, position, feature%32, wide
	at := 64 * part * form.Bits
	if rest := n - 32*part; rest < 32 {
		many = (rest*wide + 31) / 32
	}
	narrowAt := at + 64*many + lane
	if values {
		part, lane, i = position/32, feature, position%32
		at, narrowAt, many = part*n*wide, (2*wide+part)*n+lane, wide
	}
	octet, b, h := i/8, i%4, i%8/4
	if form.Book {
		b, h = i%8/2, i%2
	}
	word, bit := octet, 8*b+4*h
	if wide == 2 {
		word, bit = octet/2, 8*b+octet%2*4+2*h
	}
	words := view[uint32](run)
	code := words[at+lane*many+word] >> bit & (1<<wide - 1)
	if narrow > 0 {
		code |= words[narrowAt] >> (8*b + 2*octet + h) & 1 << wide
	}
	return byte(code)
}
