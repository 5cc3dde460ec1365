package main

import "fmt"

const (
	xNeg    = 256 // places in a block of 256 activations, see acts.go
	xSums   = 320
	xScale  = 336
	x32Dx   = 32 // and of 32
	x32Neg  = 36
	perTile = 64 // bytes between vectors of 4-byte units
)

// blocks writes a routine for formats of blocks: for every block an exact integer sum, then one FMA. Its frame has
// the slots of the body; then, in ymm form, 16 float sums for each row.
type blocks struct {
	*emitter
	rows           int
	isum           []string // the block's sums, a vector for each row, if sub-blocks have scales
	acc            []string // a sub-block's sums, else the block's
	pairs          []string // sums of products as int16; without VNNI
	codes, tmp, t  string
	total          []string // float sums; zmm only
	frame, totalAt int      // bytes
}

func (s source) emitBlocks(e *emitter, name string, rows int) {
	b := &blocks{emitter: e, rows: rows, totalAt: s.slots * e.width()}
	b.frame = b.totalAt
	if !e.wide() {
		b.frame += 64 * rows
	}
	e.begin(name, b.frame, fmt.Sprintf("%s is a kernel for %s, rows of activations: %d.", name, s.name, rows))
	if s.subs {
		b.isum = e.take(rows)
	}
	b.acc = e.take(rows)
	if !e.vnni {
		b.pairs = e.take(rows)
	}
	b.codes, b.tmp, b.t = e.reg(), e.reg(), e.reg()
	if e.wide() {
		b.total = e.take(rows)
		for _, r := range b.total {
			e.zero(r)
		}
		e.keep(s.keep...)
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

// nibbles puts half of the bytes of vector i at R10 into codes.
func (b *blocks) nibbles(i int, high bool) {
	from := fmt.Sprintf("%d(R10)", perTile*i)
	if !high {
		b.ahead(perTile*i, "R10")
		b.and(from, b.c("low4"), b.codes)
		return
	}
	if b.wide() {
		b.f("VPSRLD $4, %s, %s", from, b.codes)
	} else {
		b.load(from, b.codes)
		b.f("VPSRLD $4, %s, %s", b.codes, b.codes)
	}
	b.and(b.c("low4"), b.codes, b.codes)
}

// merge sets those bits of codes that are set in v and in the constant; v is destroyed.
func (b *blocks) merge(v, constant string) {
	if b.wide() {
		b.f("VPTERNLOGD $0xf8, %s, %s, %s", b.c(constant), v, b.codes) // codes | v&constant
		return
	}
	b.and(b.c(constant), v, v)
	b.or(v, b.codes, b.codes)
}

// bits sets those bits of codes that are set in the constant and in the vector in memory, shifted to the left.
func (b *blocks) bits(from string, shift int, constant string) {
	if !b.wide() || shift == 0 {
		b.load(from, b.tmp)
		from = b.tmp
	}
	if shift != 0 {
		b.f("%s $%d, %s, %s", shiftName(shift), max(shift, -shift), from, b.tmp)
	}
	b.merge(b.tmp, constant)
}

func shiftName(n int) string {
	if n < 0 {
		return "VPSRLD"
	}
	return "VPSLLD"
}

// A vector writes code that puts 4 codes of each row into b.codes; x is the place of their activations.
type vector struct {
	codes func()
	x     int
}

// dots sets acc to Σ codes·x for unsigned codes up to most. started says that acc already holds what to add to.
func (b *blocks) dots(vectors []vector, most int, started bool) {
	chunk := len(vectors)
	if !b.vnni {
		chunk = chunkOf(most)
	}
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
		if !b.vnni && ((i+1)%chunk == 0 || i+1 == len(vectors)) {
			b.widen(b.pairs, started || i >= chunk)
		}
	}
}

// chunkOf is how many sums of two products are added in int16 without VNNI: a power of two, with
// chunk·2·127·most < 2¹⁵.
func chunkOf(most int) int {
	chunk := 1
	for 2*chunk*2*127*most < 1<<15 {
		chunk *= 2
	}
	if chunk*2*127*most >= 1<<15 {
		panic("codes are too large for VPMADDUBSW")
	}
	return chunk
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

// halves loads what addBlock multiplies: the half-precision scales of the tile at offset.
func (b *blocks) halves(offset int) { b.f("VCVTPH2PS %s, %s", b.lane2(offset), b.tmp) }

// addBlock adds tmp·dx·sums to the float sums; sums are destroyed. fma is VFMADD231PS or VFNMADD231PS.
func (b *blocks) addBlock(fma string, dx int, sums []string) {
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
