package main

import (
	"fmt"
	"maps"
	"strings"
)

const (
	xNeg    = 256 // places in a block of 256 activations, see acts.go
	xSums   = 320
	xScale  = 336
	x32Dx   = 32 // and of 32
	x32Neg  = 36
	perTile = 64 // bytes between vectors of 4-byte units
)

// A stage is what a body is written for.
type stage int

const (
	fused    stage = iota // codes are multiplied as they are unpacked
	expand                // codes and scales go to the panel
	multiply              // and come from there
	planes                // AMX: products of codes and scales go to the panel
	readOut               // AMX: a block's sums come from a tile
)

// unpacking says whether the stage reads codes and multiplies no activations.
func (s stage) unpacking() bool { return s == expand || s == planes }

// unpacked says whether a stage before has unpacked codes and what bodies keep in the frame.
func (s stage) unpacked() bool { return s == multiply || s == readOut }

// blocks writes a routine for formats of blocks: for every block an exact integer sum, then one FMA. Its frame has
// the slots of the body; then, in ymm form, 16 float sums for each row.
type blocks struct {
	*emitter
	stage   stage
	at      int // bytes from R15 to the next vector of the panel
	vectors int // in the panel
	asking
	planar         // with AMX
	rows           int
	isum           []string // the block's sums, a vector for each row, if sub-blocks have scales
	acc            []string // a sub-block's sums, else the block's
	pairs          []string // sums of products as int16; without VNNI
	xs             []string // arm64: 16 activations of each row
	codes, tmp, t  string
	held           map[string]string // vectors of the tile that are used again: place to register, see vector
	total          []string          // float sums; zmm only
	frame, totalAt int               // bytes
}

// emitBlocks writes a kernel: four rows by one strip.
func (s source) emitBlocks(e *emitter, name string) {
	const rows = 4
	b := &blocks{emitter: e, rows: rows, totalAt: s.slots * e.Width()}
	b.frame = b.totalAt
	if !e.Wide() {
		b.frame += 64 * rows
	}
	e.begin(name, b.frame, s.name)
	b.registers(s.subs)
	if e.Wide() {
		b.total = e.take(rows)
		for _, r := range b.total {
			e.zero(r)
		}
		e.keep(s.keep...)
	} else {
		e.clearFrame(b.totalAt, 64*rows)
		e.keepSome(s.keep)
	}
	e.F("")
	if !e.Wide() {
		e.F("LEAQ %d(SP), R12", b.totalAt)
	}
	e.F("block:")
	s.block(b)
	e.F("ADDQ $%d, BX", s.tile)
	e.F("ADDQ $%d, DX", s.x)
	e.F("DECQ blocks+64(FP)")
	e.F("JNZ block")
	e.F("")
	totals := b.total
	if !e.Wide() {
		totals = make([]string, rows)
	}
	e.finish(totals, b.totalAt)
}

// block writes the body for a tile; where registers are smaller for its halves or quarters, one after the other, whose
// sums are at R12.
func (s source) block(b *blocks) {
	if b.Wide() {
		b.tileBody(s)
		return
	}
	if b.ARM && s.small() {
		b.askTile(s)
	}
	b.eachHalf(func() {
		b.tileBody(s)
		b.F("ADDQ $%d, R12", b.Width())
	})
	b.F("SUBQ $64, R12")
}

// eachHalf repeats body for the parts of a tile that fill a register.
func (e *emitter) eachHalf(body func()) {
	e.F("XORL SI, SI")
	e.F("half:")
	body()
	e.F("ADDQ $%d, SI", e.Lanes/4)
	e.F("CMPQ SI, $4")
	e.F("JLT half")
}

// tileBody writes the body for the tile at BX.
func (b *blocks) tileBody(s source) {
	defer b.hold()()
	b.ask(s)
	s.body(b)
	b.askRest()
}

// registers takes those that every body uses.
func (b *blocks) registers(subs bool) {
	if subs {
		b.isum = b.take(b.rows)
	}
	b.acc = b.take(b.rows)
	switch {
	case b.ARM:
		b.xs = b.take(b.rows)
	case !b.VNNI:
		b.pairs = b.take(b.rows)
	}
	b.codes, b.tmp, b.t = b.Reg(), b.Reg(), b.Reg()
}

// loop repeats body, which must leave AX alone, but where the sums come from a tile.
func (b *blocks) loop(name string, times int, body func()) {
	if b.stage != readOut {
		b.repeat(name, times, body)
	}
}

// each repeats body for parts of a tile and of its activations. Where that is a loop, body gets 0, and move goes on to
// the next part.
func (b *blocks) each(name string, times int, body func(part int), move func()) {
	if !b.loops() {
		for part := range times {
			body(part)
		}
		return
	}
	b.loop(name, times, func() {
		body(0)
		move()
	})
}

// loops says whether each is a loop: only in the panels of ymm form is there so much to do for a part that it costs
// nothing, elsewhere up to 7 %.
func (b *blocks) loops() bool { return b.stage != fused && !b.Wide() }

func (b *blocks) repeat(name string, times int, body func()) {
	label := name + [...]string{
		fused: "", expand: "Expand", multiply: "Multiply", planes: "Planes", readOut: "ReadOut"}[b.stage]
	b.F("MOVL $%d, AX", times)
	b.F("%s:", label)
	before, release, repeat := b.vectors, b.hold(), b.askAgain()
	body()
	repeat(times)
	release()
	b.vectors = before + times*(b.vectors-before)
	b.step()
	b.F("DECL AX")
	b.F("JNZ %s", label)
}

// clear starts the block's sums, or with AMX takes them as they are.
func (b *blocks) clear() {
	switch b.stage {
	case fused, multiply:
		for _, s := range b.isum {
			b.zero(s)
		}
	case readOut:
		b.joinPlanes()
	}
}

// step moves R15 behind the vectors of the panel that were used since it moved last.
func (b *blocks) step() {
	if b.at > 0 {
		b.F("ADDQ $%d, R15", b.at)
	}
	b.at = 0
}

// unpacked leaves what code computes in register r: at once, or by way of the panel.
func (b *blocks) unpacked(r string, code func()) {
	if b.stage != multiply {
		code()
	}
	place := fmt.Sprintf("%d(R15)", b.at)
	switch b.stage {
	case expand:
		b.store(r, place)
		b.vectors++
	case multiply:
		b.load(place, r)
	}
	if b.stage == expand || b.stage == multiply {
		b.at += b.Width()
	}
}

// activations sets DI to the block's activations.
func (b *blocks) activations() {
	if !b.stage.unpacking() {
		b.F("MOVQ DX, DI")
	}
}

func (b *blocks) nextActivations(bytes int) {
	if !b.stage.unpacking() {
		b.F("ADDQ $%d, DI", bytes)
	}
}

func (b *blocks) slot(vector int) string { return fmt.Sprintf("%d(SP)", vector*b.Width()) }

// nibbles puts half of the bytes of vector i at R10 into codes.
func (b *blocks) nibbles(i int, high bool) {
	if !high {
		b.ahead()
		b.cut(perTile*i, 0, "low4")
		return
	}
	b.cut(perTile*i, 4, "low4")
}

// twoBits puts the codes of a run, of vector i at R10, into codes.
func (b *blocks) twoBits(run, i int) {
	if run == 0 {
		b.ahead()
	}
	b.cut(perTile*i, 2*run, "low2")
}

// cut is field for a vector at R10, to codes.
func (b *blocks) cut(offset, right int, constant string) {
	b.field(b.vector("R10", offset), right, constant, b.codes)
}

// vector is the operand for a vector at R10 or R11. Bodies read most of them several times, for some bits each time; with
// one row of activations there are registers left to keep them in, and loading is what such a routine does most.
func (b *blocks) vector(base string, offset int) string {
	const spare = 2 // registers
	place := fmt.Sprintf("%d(%s)", offset, base)
	if r, ok := b.held[place]; ok {
		return r
	}
	if b.Registers() == 16 || b.rows != 1 || b.stage != fused || b.Used() >= b.Registers()-spare {
		return place
	}
	r := b.Reg()
	b.load(place, r)
	b.held[place] = r
	return r
}

// hold begins code in which vectors are held: what R10 and R11 lead to must stay where it is. The code ends with the
// function that hold returns.
func (b *blocks) hold() (release func()) {
	used := b.Used()
	b.held = map[string]string{}
	return func() {
		b.Free(used)
		b.held = map[string]string{}
	}
}

// lane4 forgets what is held of the places that the register led to.
func (b *blocks) lane4(offset int, to string) {
	maps.DeleteFunc(b.held, func(place, _ string) bool { return strings.HasSuffix(place, "("+to+")") })
	b.emitter.lane4(offset, to)
}

// field puts those bits of a register or vector in memory, shifted to the right, into to that the constant has.
func (b *blocks) field(from string, right int, constant, to string) {
	_, kept := b.Held(constant)
	memory := strings.HasSuffix(from, ")")
	if right == 0 && (kept || !memory) {
		b.and(from, b.Const(constant), to)
		return
	}
	if memory && (right == 0 || !b.Wide()) {
		b.load(from, to)
		from = to
	}
	if right != 0 {
		b.F("%s $%d, %s, %s", shiftName(-right), max(right, -right), from, to)
	}
	b.and(b.Const(constant), to, to)
}

// merge sets those bits of codes, which has none of the constant's, that are set in v and in the constant; in ymm form v is
// destroyed.
func (b *blocks) merge(v, constant string) {
	if b.ARM {
		b.Insert(v, b.Const(constant), b.codes)
		return
	}
	if b.Wide() {
		b.F("VPTERNLOGD $0xf8, %s, %s, %s", b.Const(constant), v, b.codes) // codes | v&constant
		return
	}
	b.and(b.Const(constant), v, v)
	b.or(v, b.codes, b.codes)
}

// bits sets those bits of codes that are set in the constant and in the vector, shifted to the left. In ymm form the
// vector is in memory.
func (b *blocks) bits(from string, shift int, constant string) {
	if memory := strings.HasSuffix(from, ")"); memory && (!b.Wide() || shift == 0) {
		b.load(from, b.tmp)
		from = b.tmp
	}
	if shift != 0 {
		b.F("%s $%d, %s, %s", shiftName(shift), max(shift, -shift), from, b.tmp)
		from = b.tmp
	}
	b.merge(from, constant)
}

func shiftName(n int) string {
	if n < 0 {
		return "VPSRLD"
	}
	return "VPSLLD"
}

// halves loads what addBlock multiplies: the half-precision scales of the tile at offset.
func (b *blocks) halves(offset int) {
	if !b.stage.unpacking() {
		b.F("VCVTPH2PS %s, %s", b.lane2(offset), b.tmp)
	}
}

// addBlock adds tmp·dx·sums to the float sums; sums are destroyed. fma is VFMADD231PS or VFNMADD231PS.
func (b *blocks) addBlock(fma string, dx int, sums []string) {
	if b.stage.unpacking() {
		return
	}
	for r, sum := range sums {
		b.F("VCVTDQ2PS %s, %s", sum, sum)
		b.broadcast32("VMULPS", b.x("DX", dx, r), b.tmp, b.t)
		if b.total != nil {
			b.F("%s %s, %s, %s", fma, b.t, sum, b.total[r])
			continue
		}
		b.F("VMOVUPS %d(R12), %s", 64*r, b.codes)
		b.F("%s %s, %s, %s", fma, b.t, sum, b.codes)
		b.F("VMOVUPS %s, %d(R12)", b.codes, 64*r)
	}
}
