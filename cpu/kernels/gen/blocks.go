package main

import "fmt"

// source is one format of weights.
type source struct {
	name, stem string
	tile, x    int // bytes of a tile and of a block of activations; of one k for float formats
	body       func(b *blocks)
	convert    func(e *emitter, from, to string) // float formats
}

var formats = []source{
	{name: "F32", stem: "f32", tile: 64, x: 4, convert: (*emitter).convertF32},
	{name: "F16", stem: "f16", tile: 32, x: 4, convert: (*emitter).convertF16},
	{name: "BF16", stem: "bf16", tile: 32, x: 4, convert: (*emitter).convertBF16},
	{name: "Q8_0", stem: "q8_0", tile: 544, x: 40, body: (*blocks).q8_0},
	{name: "Q4_0", stem: "q4_0", tile: 288, x: 40, body: (*blocks).q4_0},
	{name: "Q4_K", stem: "q4_K", tile: 2304, x: 352, body: (*blocks).q4_K},
	{name: "Q5_K", stem: "q5_K", tile: 2816, x: 352, body: (*blocks).q5_K},
	{name: "Q6_K", stem: "q6_K", tile: 3360, x: 352, body: (*blocks).q6_K},
}

// emit writes the routine of a format for 1 or 4 rows. Float formats need no VNNI: they share a set's routine.
func (s source) emit(e *emitter, rows int) (name string, own bool) {
	suffix := e.suffix
	if own = s.convert == nil || !e.vnni; !own {
		suffix = "AVX512"
	}
	name = fmt.Sprintf("%s%sx%d", s.stem, suffix, rows)
	switch {
	case !own:
	case s.convert != nil:
		s.emitFloat(e, name, rows)
	default:
		s.emitBlocks(e, name, rows)
	}
	return name, own
}

// Frame of a block routine, in vectors: 8 scales and 4 pairs of minima as int32 and int16 pairs, 8 of bits;
// then, in ymm form, 16 accumulators for each row.
const (
	minsAt  = 8
	bitsAt  = 12
	accsAt  = 20
	xNeg    = 256 // places in a block of 256 activations, see acts.go
	xSums   = 320
	xScale  = 336
	x32Dx   = 32 // and of 32
	x32Neg  = 36
	perTile = 64 // bytes between vectors of 4-byte units
)

// blocks writes a routine for formats of blocks: for every block an exact integer sum, then one FMA.
type blocks struct {
	*emitter
	rows           int
	isum           []string // the block's sums, a vector for each row
	acc            []string // a sub-block's sums
	pairs          []string // sums of products as int16; without VNNI
	codes, tmp, t  string
	total          []string // float sums; zmm only
	frame, totalAt int      // bytes
}

func (s source) emitBlocks(e *emitter, name string, rows int) {
	b := &blocks{emitter: e, rows: rows, totalAt: accsAt * e.width()}
	b.frame = b.totalAt
	if !e.wide() {
		b.frame += 64 * rows
	}
	e.begin(name, b.frame, fmt.Sprintf("%s is a kernel for %s, rows of activations: %d.", name, s.name, rows))
	b.isum, b.acc = e.take(rows), e.take(rows)
	if !e.vnni {
		b.pairs = e.take(rows)
	}
	b.codes, b.tmp, b.t = e.reg(), e.reg(), e.reg()
	if e.wide() {
		b.total = e.take(rows)
		for _, r := range b.total {
			e.zero(r)
		}
		e.keep("low4", "bits45", "bit4", "bit7", "ones", "even", "byte0")
	} else {
		e.keep("low4")
		e.zero(b.t)
		for at := 0; at < 64*rows; at += 32 {
			e.store(b.t, fmt.Sprintf("%d(SP)", b.totalAt+at))
		}
	}
	e.f("")
	e.f("block:")
	if !e.wide() {
		e.f("XORL SI, SI")
		e.f("LEAQ %d(SP), R12", b.totalAt)
		e.f("half:")
	}
	s.body(b)
	if !e.wide() {
		e.f("ADDQ $2, SI")
		e.f("ADDQ $32, R12")
		e.f("CMPQ SI, $4")
		e.f("JLT half")
	}
	e.f("ADDQ $%d, BX", s.tile)
	e.f("ADDQ $%d, DX", s.x)
	e.f("DECQ blocks+64(FP)")
	e.f("JNZ block")
	e.f("")
	totals := b.total
	if !e.wide() {
		totals = make([]string, rows)
	}
	e.finish(totals, b.totalAt)
}

func (b *blocks) slot(vector int) string { return fmt.Sprintf("%d(SP)", vector*b.width()) }

// unpackScales puts scales and minima of Q4_K and Q5_K into the frame; see packScales in package kernels.
func (b *blocks) unpackScales() {
	b.f("// scales and minima, 6 bits each")
	high, word, v := b.codes, b.acc[0], b.isum[0]
	b.lane4(64, "R10")
	for at := -64; at < 192; at += 64 {
		b.ahead(at, "R10")
	}
	b.load("128(R10)", high)
	first := func(shift string, n int, to int) { // low nibbles of the word, high bits shifted
		b.and(b.c("low4"), word, v)
		if n != 0 {
			b.f("%s $%d, %s, %s", shift, n, high, b.tmp)
			b.and(b.c("bits45"), b.tmp, b.tmp)
		} else {
			b.and(b.c("bits45"), high, b.tmp)
		}
		b.or(b.tmp, v, v)
		if to < minsAt {
			b.spreadScales(v, to)
		} else {
			b.spreadMins(v, to)
		}
	}
	b.load("0(R10)", word)
	first("VPSLLD", 4, 0)
	b.f("VPSRLD $4, %s, %s", word, word)
	first("VPSLLD", 2, 1)
	b.load("64(R10)", word)
	first("VPSLLD", 0, minsAt)
	b.f("VPSRLD $4, %s, %s", word, word)
	first("VPSRLD", 2, minsAt+2)
}

// spreadScales widens the bytes of v to scales of sub-blocks first, first+2, ….
func (b *blocks) spreadScales(v string, first int) {
	for j := range 4 {
		to := b.tmp
		switch j {
		case 0:
			b.and(b.c("byte0"), v, to)
		case 3:
			b.f("VPSRLD $24, %s, %s", v, to)
		default:
			b.f("VPSRLD $%d, %s, %s", 8*j, v, to)
			b.and(b.c("byte0"), to, to)
		}
		b.store(to, b.slot(first+2*j))
	}
}

// spreadMins widens the bytes of v to two pairs of int16.
func (b *blocks) spreadMins(v string, to int) {
	b.and(b.c("even"), v, b.tmp)
	b.store(b.tmp, b.slot(to))
	b.f("VPSRLW $8, %s, %s", v, v)
	b.store(v, b.slot(to+1))
}

// A vector writes code that puts 4 codes of each row into b.codes; x is the place of their activations.
type vector struct {
	codes func()
	x     int
}

// dots sets acc to Σ codes·x for unsigned codes. chunk is how many products of pairs fit in int16 without VNNI:
// chunk·2·127·(largest code) < 2¹⁵. started says that acc already holds what to add to.
func (b *blocks) dots(vectors []vector, chunk int, started bool) {
	if !started && b.vnni {
		for _, a := range b.acc {
			b.zero(a)
		}
	}
	for i, v := range vectors {
		v.codes()
		for r, acc := range b.acc {
			x := b.x("DI", v.x, r)
			switch {
			case b.vnni:
				b.f("VPDPBUSD.BCST %s, %s, %s", x, b.codes, acc)
			case i%chunk == 0:
				b.f("VPBROADCASTD %s, %s", x, b.pairs[r])
				b.f("VPMADDUBSW %s, %s, %s", b.pairs[r], b.codes, b.pairs[r])
			default:
				b.f("VPBROADCASTD %s, %s", x, b.t)
				b.f("VPMADDUBSW %s, %s, %s", b.t, b.codes, b.t)
				b.f("VPADDW %s, %s, %s", b.t, b.pairs[r], b.pairs[r])
			}
		}
		if !b.vnni && (i+1)%chunk == 0 {
			b.widen(b.pairs, started || i+1 > chunk)
		}
	}
}

// widen adds pairs of int16 to acc, or sets acc.
func (b *blocks) widen(pairs []string, add bool) {
	for r, acc := range b.acc {
		if !add {
			b.f("VPMADDWD %s, %s, %s", b.c("ones"), pairs[r], acc)
			continue
		}
		b.f("VPMADDWD %s, %s, %s", b.c("ones"), pairs[r], pairs[r])
		b.f("VPADDD %s, %s, %s", pairs[r], acc, acc)
	}
}

// startAt sets acc to -2^shift·Σx, given the place of -Σx: codes are 2^shift too large.
func (b *blocks) startAt(base string, offset, shift int) {
	for r, acc := range b.acc {
		if b.wide() {
			b.f("VPSLLD.BCST $%d, %s, %s", shift, b.x(base, offset, r), acc)
			continue
		}
		b.f("VPBROADCASTD %s, %s", b.x(base, offset, r), acc)
		b.f("VPSLLD $%d, %s, %s", shift, acc, acc)
	}
}

// scaled adds acc·scale to isum.
func (b *blocks) scaled(scale string) {
	for r, acc := range b.acc {
		b.f("VPMULLD %s, %s, %s", scale, acc, acc)
		b.f("VPADDD %s, %s, %s", acc, b.isum[r], b.isum[r])
	}
}

// addBlock adds d·dx·sums to the float sums; sums are destroyed. fma is VFMADD231PS or VFNMADD231PS.
func (b *blocks) addBlock(fma string, d, dx int, sums []string) {
	b.f("VCVTPH2PS %s, %s", b.lane2(d), b.tmp)
	for r, sum := range sums {
		b.f("VCVTDQ2PS %s, %s", sum, sum)
		b.broadcast32("VMULPS", b.x("DX", dx, r), b.tmp, b.t)
		if b.wide() {
			b.f("%s %s, %s, %s", fma, b.t, sum, b.total[r])
			continue
		}
		b.f("VMOVUPS %d(R12), %s", 64*r, b.codes)
		b.f("%s %s, %s, %s", fma, b.t, sum, b.codes)
		b.f("VMOVUPS %s, %d(R12)", b.codes, 64*r)
	}
}
