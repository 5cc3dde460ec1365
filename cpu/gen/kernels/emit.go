package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

// emitter writes one file. A tile of 16 rows takes 16/Lanes vectors side by side. Registers belong to the routine being
// written:
//
//	BX  the tile                    DX  activations of row 0, moves along k
//	R8  from row 0 of activations to row 1, and to row 2 twice; R9 to row 3
//	DI  activations within a block  SI   in ymm form: half of the tile, times 2
//	R10, R11, R13  places in the tile  R12  float sums in the frame
//
// Panel routines have more rows, see panel.go: SI and R14 lead to rows 5 and 7 in zmm form; R15 moves in the panel. Where
// no panel is read, R15 leads to the lines to ask for; DI where there are no activations.
type emitter struct{ *asm.Emitter }

// words are constants.
var words = []asm.Constant{
	{Name: "low4", Word: 0x0f0f0f0f},
	{Name: "high4", Word: 0xf0f0f0f0},
	{Name: "bits45", Word: 0x30303030},
	{Name: "low6", Word: 0x3f3f3f3f},
	{Name: "bits23", Word: 0x0c0c0c0c},
	{Name: "bits67", Word: 0xc0c0c0c0},
	{Name: "bit4", Word: 0x10101010},
	{Name: "bit7", Word: 0x80808080},
	{Name: "ones", Word: 0x00010001},
	{Name: "sixteens", Word: 0x00100010},
	{Name: "even", Word: 0x00ff00ff},
	{Name: "byte0", Word: 0x000000ff},
	{Name: "low16", Word: 0x0000ffff},
	{Name: "low2", Word: 0x03030303},
	{Name: "bit2", Word: 0x04040404},
	{Name: "bytes32", Word: 0x20202020},
	{Name: "nibble0", Word: 0x0000000f},
	{Name: "bits45of0", Word: 0x00000030},
	{Name: "int32", Word: 32},
	{Name: "bytes1", Word: 0x01010101},
	{Name: "bytes2", Word: 0x02020202},
	{Name: "bytes16", Word: 0x10101010},
	{Name: "e4m3", Word: 0x7f},
	{Name: "bytes7", Word: 0x07070707},
	{Name: "bytes8", Word: 0x08080808},
	{Name: "bit8", Word: 0x100},
	{Name: "bits89", Word: 0x300},
	{Name: "bits8to10", Word: 0x700},
	{Name: "bits13", Word: 0xe},         // 1 to 3
	{Name: "notLast", Word: 0x55ffffff}, // of evenSigns: all bits but those of every eighth sign
	{Name: "last", Word: 0xaa000000},
	{Name: "even7", Word: 0x55},
	{Name: "pairs6", Word: 0x33},
	{Name: "eighth", Word: (127 - 3) << 23},
	{Name: "quarter", Word: (127 - 2) << 23},
	{Name: "float2m10", Word: (127 - 10) << 23},
	{Name: "int1", Word: 1},
	{Name: "bytes85", Word: 85 * 0x01010101},
	{Name: "bytes170", Word: 170 * 0x01010101},
	{Name: "minus1", Word: 0xffffffff}, // pairs of int16
	{Name: "bit21", Word: 1 << 21},
	{Name: "bit23", Word: 1 << 23},
	{Name: "less128x0", Word: 0x0000ff80}, // -128 as the low int16
	{Name: "less128x1", Word: 0xff800000}, // and as the high one
	{Name: "low7", Word: 0x7f7f7f7f},
	{Name: "bytes4", Word: 0x04040404},
	{Name: "bytes64", Word: 0x40404040},
}

func (e *emitter) constants() {
	e.Constants(words, e.Width())
	for _, t := range tables {
		e.Data(t.name, t.words(e.Width())...)
	}
	if e.AMX {
		e.tileConfigs()
	}
	if e.Wide() || e.ARM {
		return
	}
	e.F("")
	e.Line("// 16 set words, then 16 clear ones: the 16 from word 16-n on are a mask of n lanes.")
	mask := make([]uint64, 16)
	for i := range 8 {
		mask[i] = math.MaxUint64
	}
	e.Data("lanes", mask...)
}

// begin starts a kernel.
func (e *emitter) begin(name string, frame int, format string) {
	e.Enter(name, "kernel for "+format, frame, kernel)
	e.Load("w", "BX")
	e.Load("x", "DX")
	e.Load("xStride", "R8")
	e.Load("xLast", "R9")
}

func (e *emitter) take(n int) []string {
	r := make([]string, n)
	for i := range r {
		r[i] = e.Reg()
	}
	return r
}

// keep loads constants into registers for the whole routine.
func (e *emitter) keep(names ...string) {
	load := "VMOVDQU"
	if e.Wide() {
		load = "VMOVDQU32"
	}
	e.Hold(load, names...)
}

// keepSome keeps the first constant, and as many more as there is room for.
func (e *emitter) keepSome(names []string) {
	const spare = 3 // for those that bodies take
	n := 1
	if e.Registers() > 16 {
		n = max(1, min(len(names), e.Registers()-e.Used()-spare))
	}
	e.keep(names[:n]...)
}

// op writes an instruction whose zmm form has another name, as bitwise ones do.
func (e *emitter) op(name, zmm string, args ...string) {
	if e.Wide() {
		name = zmm
	}
	e.F("%s %s", name, strings.Join(args, ", "))
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
	if e.Wide() {
		return fmt.Sprintf("%d(BX)", offset)
	}
	return fmt.Sprintf("%d(BX)(SI*8)", offset)
}

// lane1 is a vector of bytes of the tile.
func (e *emitter) lane1(offset int) string {
	if e.Wide() {
		return fmt.Sprintf("%d(BX)", offset)
	}
	return fmt.Sprintf("%d(BX)(SI*4)", offset)
}

// lane4 sets a pointer to the first vector of 4-byte units at offset; the next one is 64 bytes further.
func (e *emitter) lane4(offset int, to string) {
	e.F("LEAQ %d(BX), %s", offset, to)
	if !e.Wide() {
		e.F("LEAQ (%s)(SI*8), %s", to, to)
		e.F("LEAQ (%s)(SI*8), %s", to, to)
	}
}

// broadcast32 computes op(word at mem for all lanes, a) into to; op takes a broadcast operand in AVX-512.
func (e *emitter) broadcast32(op, mem, a, to string) {
	if e.Wide() {
		e.F("%s.BCST %s, %s, %s", op, mem, a, to)
		return
	}
	e.F("VPBROADCASTD %s, %s", mem, to)
	e.F("%s %s, %s, %s", op, to, a, to)
}

// finish stores the accumulators of rows, lanes outputs each, and returns. In ymm form they lie in the frame.
func (e *emitter) finish(acc []string, frame int) {
	e.Load("out", "DI")
	e.Load("stride", "R8")
	e.Load("last", "R9")
	e.Load("lanes", "CX")
	e.lanesMask()
	for r, a := range acc {
		switch {
		case e.ARM:
			e.copyLanes(fmt.Sprintf("%d(SP)", frame+64*r), e.x("DI", 0, r), fmt.Sprint(r))
		case e.Wide():
			e.F("VMOVUPS %s, K1, %s", a, e.x("DI", 0, r))
		default:
			e.storeLanes(r, fmt.Sprintf("%d(SP)", frame+64*r), fmt.Sprintf("%d(SP)", frame+64*r+32))
		}
	}
	e.F("VZEROUPPER")
	e.F("RET")
}

// lanesMask sets K1, or Y0 and Y1, to the first CX lanes. There are no masks on arm64.
func (e *emitter) lanesMask() {
	if e.ARM {
		return
	}
	if e.Wide() {
		e.F("MOVL $1, AX")
		e.F("SHLL CX, AX")
		e.F("DECL AX")
		e.F("KMOVW AX, K1")
		return
	}
	e.F("LEAQ lanes<>+64(SB), AX")
	e.F("SHLQ $2, CX")
	e.F("SUBQ CX, AX")
	e.F("VMOVDQU (AX), Y0")
	e.F("VMOVDQU 32(AX), Y1")
}

// storeSums copies the masked lanes of 16 sums at R12 to DI.
func (e *emitter) storeSums() {
	if e.ARM {
		e.copyLanes("(R12)", "(DI)", "")
		return
	}
	if e.Wide() {
		e.load("(R12)", "Z0")
		e.F("VMOVUPS Z0, K1, (DI)")
		return
	}
	e.storeLanes(0, "(R12)", "32(R12)")
}

// clearFrame clears bytes of the frame.
func (e *emitter) clearFrame(at, bytes int) {
	zero := e.Register(0)
	e.zero(zero)
	for end := at + bytes; at < end; at += e.Width() {
		e.store(zero, fmt.Sprintf("%d(SP)", at))
	}
}

// copyLanes copies CX lanes of 16: what masks do elsewhere. It needs AX, BX, DX and SI.
func (e *emitter) copyLanes(from, to, label string) {
	e.F("LEAQ %s, BX", from)
	e.F("LEAQ %s, DX", to)
	e.F("MOVQ CX, AX")
	e.F("CMPQ AX, $16")
	e.F("JLT lane%s", label)
	for i := range 4 {
		e.load(fmt.Sprintf("%d(BX)", 16*i), e.Register(i))
	}
	for i := range 4 {
		e.store(e.Register(i), fmt.Sprintf("%d(DX)", 16*i))
	}
	e.F("JMP lanes%s", label)
	e.F("lane%s:", label)
	e.F("MOVL (BX), SI")
	e.F("MOVL SI, (DX)")
	e.F("ADDQ $4, BX")
	e.F("ADDQ $4, DX")
	e.F("DECQ AX")
	e.F("JNZ lane%s", label)
	e.F("lanes%s:", label)
}

// storeLanes copies two halves to the masked lanes of row r at DI.
func (e *emitter) storeLanes(r int, low, high string) {
	e.F("VMOVUPS %s, Y2", low)
	e.F("VMOVUPS %s, Y3", high)
	e.F("VMASKMOVPS Y2, Y0, %s", e.x("DI", 0, r))
	e.F("VMASKMOVPS Y3, Y1, %s", e.x("DI", 32, r))
}
