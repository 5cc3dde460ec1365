package main

import (
	"bytes"
	"fmt"
	"strings"
)

// isa is an instruction set. A tile of 16 rows takes 16/lanes vectors side by side.
type isa struct {
	name, suffix string
	lanes        int  // rows in a vector: 8 in ymm, 16 in zmm
	vnni         bool // VPDPBUSD and VPDPWSSD
	amx          bool // tiles of int8; all else is VNNI's
}

func (s isa) wide() bool { return s.lanes == 16 }

// width is the bytes of a vector.
func (s isa) width() int { return 4 * s.lanes }

// emitter collects the text of one file. Registers belong to the routine being written:
//
//	BX  the tile                    DX  activations of row 0, moves along k
//	R8  from row 0 of activations to row 1, and to row 2 twice; R9 to row 3
//	DI  activations within a block  SI   in ymm form: half of the tile, times 2
//	R10, R11, R13  places in the tile  R12  float sums in the frame
//
// Panel routines have more rows, see panel.go: SI and R14 lead to rows 5 and 7 in zmm form; R15 moves in the panel. Where
// no panel is read, R15 leads to the lines to ask for; DI where there are no activations.
type emitter struct {
	isa
	text bytes.Buffer
	used int               // vector registers
	regs map[string]string // constants and named vectors
}

// line writes a line as it is.
func (e *emitter) line(format string, args ...any) { fmt.Fprintf(&e.text, format+"\n", args...) }

// f writes an instruction or a label.
func (e *emitter) f(format string, args ...any) {
	if !strings.HasSuffix(format, ":") && format != "" {
		format = "\t" + format
	}
	e.line(format, args...)
}

// constantWords are vectors of one repeated 32-bit word.
var constantWords = []struct {
	name string
	word uint32
}{
	{"low4", 0x0f0f0f0f},
	{"high4", 0xf0f0f0f0},
	{"bits45", 0x30303030},
	{"low6", 0x3f3f3f3f},
	{"bits23", 0x0c0c0c0c},
	{"bits67", 0xc0c0c0c0},
	{"bit4", 0x10101010},
	{"bit7", 0x80808080},
	{"ones", 0x00010001},
	{"sixteens", 0x00100010},
	{"even", 0x00ff00ff},
	{"byte0", 0x000000ff},
	{"low16", 0x0000ffff},
	{"low2", 0x03030303},
	{"bit2", 0x04040404},
	{"bytes32", 0x20202020},
	{"nibble0", 0x0000000f},
	{"bits45of0", 0x00000030},
	{"int32", 32},
	{"bytes1", 0x01010101},
	{"bytes2", 0x02020202},
	{"bytes16", 0x10101010},
	{"e4m3", 0x7f},
	{"bytes7", 0x07070707},
	{"bytes8", 0x08080808},
	{"bit8", 0x100},
	{"bits89", 0x300},
	{"bits8to10", 0x700},
	{"bits13", 0xe},         // 1 to 3
	{"notLast", 0x55ffffff}, // of evenSigns: all bits but those of every eighth sign
	{"last", 0xaa000000},
	{"even7", 0x55},
	{"pairs6", 0x33},
	{"eighth", (127 - 3) << 23},
	{"quarter", (127 - 2) << 23},
	{"float2m10", (127 - 10) << 23},
	{"int1", 1},
	{"bytes85", 85 * 0x01010101},
	{"bytes170", 170 * 0x01010101},
	{"minus1", 0xffffffff}, // pairs of int16
	{"bit21", 1 << 21},
	{"bit23", 1 << 23},
	{"less128x0", 0x0000ff80}, // -128 as the low int16
	{"less128x1", 0xff800000}, // and as the high one
	{"low7", 0x7f7f7f7f},
	{"bytes4", 0x04040404},
	{"bytes64", 0x40404040},
}

func (e *emitter) constants() {
	e.f("")
	for _, c := range constantWords {
		for at := 0; at < e.width(); at += 8 {
			e.line("DATA %s<>+%d(SB)/8, $0x%08x%08x", c.name, at, c.word, c.word)
		}
		e.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d", c.name, e.width())
	}
	for _, t := range tables {
		for at := 0; at < e.width(); at += 8 {
			var word uint64
			for i := range 8 {
				word |= uint64(byte(t.values[(at+i)%16]+t.excess)) << (8 * i)
			}
			e.line("DATA %s<>+%d(SB)/8, $0x%016x", t.name, at, word)
		}
		e.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d", t.name, e.width())
	}
	if e.wide() {
		return
	}
	e.f("")
	e.line("// 16 set words, then 16 clear ones: the 16 from word 16-n on are a mask of n lanes.")
	for at := 0; at < 128; at += 8 {
		e.line("DATA lanes<>+%d(SB)/8, $%d", at, map[bool]int{true: -1}[at < 64])
	}
	e.line("GLOBL lanes<>(SB), RODATA|NOPTR, $128")
}

// enter starts a routine with a frame and arguments of the given bytes.
func (e *emitter) enter(name string, frame, args int, contract string) {
	e.used, e.regs = 0, map[string]string{}
	e.f("")
	e.line("// %s\nTEXT ·%s(SB), 0, $%d-%d", contract, name, frame, args)
}

// begin starts a kernel.
func (e *emitter) begin(name string, frame int, contract string) {
	e.enter(name, frame, 72, contract)
	e.f("MOVQ w+32(FP), BX")
	e.f("MOVQ x+40(FP), DX")
	e.f("MOVQ xStride+48(FP), R8")
	e.f("MOVQ xLast+56(FP), R9")
}

// reg takes a free vector register.
func (e *emitter) reg() string {
	n := e.used
	e.used++
	if e.wide() && n < 32 {
		return fmt.Sprintf("Z%d", n)
	}
	if !e.wide() && n < 16 {
		return fmt.Sprintf("Y%d", n)
	}
	panic("out of registers")
}

func (e *emitter) take(n int) []string {
	r := make([]string, n)
	for i := range r {
		r[i] = e.reg()
	}
	return r
}

// keep loads a constant into a register for the whole routine.
func (e *emitter) keep(names ...string) {
	for _, name := range names {
		r := e.reg()
		e.load(name+"<>(SB)", r)
		e.regs[name] = r
	}
}

// c is a constant: its register, else its memory.
func (e *emitter) c(name string) string {
	if r, ok := e.regs[name]; ok {
		return r
	}
	return name + "<>(SB)"
}

// op writes an instruction whose zmm form has another name, as bitwise ones do.
func (e *emitter) op(name, zmm string, args ...string) {
	if e.wide() {
		name = zmm
	}
	e.f("%s %s", name, strings.Join(args, ", "))
}

func (e *emitter) load(from, to string)  { e.op("VMOVDQU", "VMOVDQU32", from, to) }
func (e *emitter) store(from, to string) { e.op("VMOVDQU", "VMOVDQU32", from, to) }
func (e *emitter) and(a, b, to string)   { e.op("VPAND", "VPANDD", a, b, to) }
func (e *emitter) or(a, b, to string)    { e.op("VPOR", "VPORD", a, b, to) }
func (e *emitter) xor(a, b, to string)   { e.op("VPXOR", "VPXORD", a, b, to) }
func (e *emitter) zero(r string)         { e.op("VPXOR", "VPXORD", r, r, r) }

// x is a place in the current block of activations of row r.
func (e *emitter) x(base string, offset, r int) string {
	index := [...]string{"", "(R8*1)", "(R8*2)", "(R9*1)", "(R8*4)", "(SI*1)", "(R9*2)", "(R14*1)"}
	return fmt.Sprintf("%d(%s)", offset, base) + index[r]
}

// lane2 is a vector of 2-byte units of the tile, such as its scales.
func (e *emitter) lane2(offset int) string {
	if e.wide() {
		return fmt.Sprintf("%d(BX)", offset)
	}
	return fmt.Sprintf("%d(BX)(SI*8)", offset)
}

// lane1 is a vector of bytes of the tile.
func (e *emitter) lane1(offset int) string {
	if e.wide() {
		return fmt.Sprintf("%d(BX)", offset)
	}
	return fmt.Sprintf("%d(BX)(SI*4)", offset)
}

// lane4 sets a pointer to the first vector of 4-byte units at offset; the next one is 64 bytes further.
func (e *emitter) lane4(offset int, to string) {
	e.f("LEAQ %d(BX), %s", offset, to)
	if !e.wide() {
		e.f("LEAQ (%s)(SI*8), %s", to, to)
		e.f("LEAQ (%s)(SI*8), %s", to, to)
	}
}

// broadcast32 computes op(word at mem for all lanes, a) into to; op takes a broadcast operand in AVX-512.
func (e *emitter) broadcast32(op, mem, a, to string) {
	if e.wide() {
		e.f("%s.BCST %s, %s, %s", op, mem, a, to)
		return
	}
	e.f("VPBROADCASTD %s, %s", mem, to)
	e.f("%s %s, %s, %s", op, to, a, to)
}

// finish stores the accumulators of rows, lanes outputs each, and returns. In ymm form they lie in the frame.
func (e *emitter) finish(acc []string, frame int) {
	e.f("MOVQ out+0(FP), DI")
	e.f("MOVQ stride+8(FP), R8")
	e.f("MOVQ last+16(FP), R9")
	e.f("MOVQ lanes+24(FP), CX")
	e.lanesMask()
	for r, a := range acc {
		if e.wide() {
			e.f("VMOVUPS %s, K1, %s", a, e.x("DI", 0, r))
		} else {
			e.storeLanes(r, fmt.Sprintf("%d(SP)", frame+64*r), fmt.Sprintf("%d(SP)", frame+64*r+32))
		}
	}
	e.f("VZEROUPPER")
	e.f("RET")
}

// lanesMask sets K1, or Y0 and Y1, to the first CX lanes.
func (e *emitter) lanesMask() {
	if e.wide() {
		e.f("MOVL $1, AX")
		e.f("SHLL CX, AX")
		e.f("DECL AX")
		e.f("KMOVW AX, K1")
		return
	}
	e.f("LEAQ lanes<>+64(SB), AX")
	e.f("SHLQ $2, CX")
	e.f("SUBQ CX, AX")
	e.f("VMOVDQU (AX), Y0")
	e.f("VMOVDQU 32(AX), Y1")
}

// storeSums copies the masked lanes of 16 sums at R12 to DI.
func (e *emitter) storeSums() {
	if e.wide() {
		e.load("(R12)", "Z0")
		e.f("VMOVUPS Z0, K1, (DI)")
		return
	}
	e.storeLanes(0, "(R12)", "32(R12)")
}

// clearFrame clears bytes of the frame.
func (e *emitter) clearFrame(at, bytes int) {
	zero := "Z0"
	if !e.wide() {
		zero = "Y0"
	}
	e.zero(zero)
	for end := at + bytes; at < end; at += e.width() {
		e.store(zero, fmt.Sprintf("%d(SP)", at))
	}
}

// storeLanes copies two halves to the masked lanes of row r at DI.
func (e *emitter) storeLanes(r int, low, high string) {
	e.f("VMOVUPS %s, Y2", low)
	e.f("VMOVUPS %s, Y3", high)
	e.f("VMASKMOVPS Y2, Y0, %s", e.x("DI", 0, r))
	e.f("VMASKMOVPS Y3, Y1, %s", e.x("DI", 32, r))
}
