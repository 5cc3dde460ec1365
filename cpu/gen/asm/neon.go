package asm

import (
	"fmt"
	"strconv"
	"strings"
)

// Vector instructions for arm64, most of which Go's assembler does not know: their words, with their names beside.
// Arm Architecture Reference Manual, C7.2. A vector has 4 lanes of 32 bits; V28 to V31 are free in every spelling.

const neonRegisters = 28 // for routines

// three are instructions with two operands and a result, by amd64's names: the word, the name and the arrangement. Those of
// amd64 take the second operand from the left; crossed says that the order matters. Several read their result, too.
var three = map[string]struct {
	word        uint32
	name, lanes string
	crossed     bool
}{
	"VPADDD": {0x4ea08400, "ADD", "4S", false}, "VPADDB": {0x4e208400, "ADD", "16B", false},
	"VPADDW": {0x4e608400, "ADD", "8H", false},
	"VPSUBD": {0x6ea08400, "SUB", "4S", true}, "VPSUBB": {0x6e208400, "SUB", "16B", true},
	"VPSUBUSB": {0x6e202c00, "UQSUB", "16B", true},
	"VPMULLD":  {0x4ea09c00, "MUL", "4S", false}, "MLA": {0x4ea09400, "MLA", "4S", false},
	"VPAND": {0x4e201c00, "AND", "16B", false}, "VANDPS": {0x4e201c00, "AND", "16B", false},
	"VPOR": {0x4ea01c00, "ORR", "16B", false}, "VPXOR": {0x6e201c00, "EOR", "16B", false},
	"VXORPS": {0x6e201c00, "EOR", "16B", false},
	"VPANDN": {0x4e601c00, "BIC", "16B", false}, "VPCMPEQD": {0x6ea08c00, "CMEQ", "4S", false},
	"VPMAXSD": {0x4ea06400, "SMAX", "4S", false}, "VPMAXUD": {0x6ea06400, "UMAX", "4S", false},
	"VPMINUD": {0x6ea06c00, "UMIN", "4S", false}, "VPMINUB": {0x6e206c00, "UMIN", "16B", false},
	"VPSLLVD": {0x6ea04400, "USHL", "4S", true}, "VPSHUFB": {0x4e000000, "TBL", "16B", true},
	"VADDPS": {0x4e20d400, "FADD", "4S", false}, "VSUBPS": {0x4ea0d400, "FSUB", "4S", true},
	"VMULPS": {0x6e20dc00, "FMUL", "4S", false}, "VDIVPS": {0x6e20fc00, "FDIV", "4S", true},
	"VMAXPS": {0x4e20f400, "FMAX", "4S", false}, "VMINPS": {0x4ea0f400, "FMIN", "4S", false},
	"VFMADD231PS": {0x4e20cc00, "FMLA", "4S", false}, "VFNMADD231PS": {0x4ea0cc00, "FMLS", "4S", false},
}

// shifts have the word of a shift by nothing; right ones count down from it.
var shifts = map[string]struct {
	word  uint32
	name  string
	lanes string
	right bool
}{
	"VPSLLD": {0x4f205400, "SHL", "4S", false}, "VPSRLD": {0x6f400400, "USHR", "4S", true},
	"VPSRAD": {0x4f400400, "SSHR", "4S", true},
	"VPSLLW": {0x4f105400, "SHL", "8H", false}, "VPSRLW": {0x6f200400, "USHR", "8H", true},
}

// widened are loads of 4 elements that become words: how they are loaded, then what widens them.
var widened = map[string]struct {
	load  string
	words []uint32
	names []string
}{
	"VPMOVZXBD": {"FMOVS", []uint32{0x2f08a400, 0x2f10a400}, []string{"USHLL 8H 8B", "USHLL 4S 4H"}},
	"VPMOVSXBD": {"FMOVS", []uint32{0x0f08a400, 0x0f10a400}, []string{"SSHLL 8H 8B", "SSHLL 4S 4H"}},
	"VPMOVZXWD": {"FMOVD", []uint32{0x2f10a400}, []string{"USHLL 4S 4H"}},
	"VPMOVZXDQ": {"FMOVD", []uint32{0x2f20a400}, []string{"USHLL 2D 2S"}},
	"VCVTPH2PS": {"FMOVD", []uint32{0x0e217800}, []string{"FCVTL 4S 4H"}},
}

func (e *Emitter) spellVector(name string, args []string) {
	to := args[len(args)-1]
	if op, ok := three[name]; ok {
		n, m := e.vector(args[0], 31), e.vector(args[1], 30)
		if op.crossed {
			n, m = m, n
		}
		e.three(op.word, op.name, op.lanes, number(to), n, m)
		return
	}
	if op, ok := shifts[name]; ok {
		n, _ := strconv.ParseUint(strings.TrimPrefix(args[0], "$"), 0, 8)
		by := uint32(n) << 16
		if op.right {
			by = -by
		}
		if n == 0 { // a right shift has no such word
			e.moveVector(args[1], to)
			return
		}
		from := e.vector(args[1], 31)
		e.word(op.word+by|from<<5|number(to), "%s $%d, V%d.%s, V%d.%[4]s", op.name, n, from, op.lanes, number(to))
		return
	}
	if op, ok := widened[name]; ok {
		from := number(to)
		if r, ok := register(args[0]); ok {
			from = r
		} else {
			e.Line("\t%s %s, F%d", op.load, e.memory(args[0]), from)
		}
		for i, word := range op.words {
			e.word(word|from<<5|number(to), "%s V%d, V%d", op.names[i], number(to), from)
			from = number(to)
		}
		return
	}
	e.spellOther(name, args)
}

func (e *Emitter) spellOther(name string, args []string) {
	to := args[len(args)-1]
	switch name {
	case "VMOVDQU", "VMOVUPS":
		e.moveVector(args[0], to)
	case "VPBROADCASTD", "VBROADCASTSS":
		e.broadcast(args[0], number(to))
	case "VCVTDQ2PS":
		e.word(0x4e21d800|e.vector(args[0], 31)<<5|number(to), "SCVTF V%d.4S, %s", number(to), args[0])
	case "VPMADDWD": // products of pairs of int16, added
		x, y := e.vector(args[0], 31), e.vector(args[1], 30)
		e.pairs(x, y, number(to))
	case "VCVTPS2DQ":
		e.word(0x4e21a800|e.vector(args[0], 31)<<5|number(to), "FCVTNS V%d.4S, %s", number(to), args[0])
	case "VCVTPS2PH":
		e.word(0x0e216800|number(args[1])<<5|31, "FCVTN V31.4H, %s.4S", args[1])
		e.Line("\tFMOVD F31, %s", e.memory(to))
	case "VFMADD213PS": // the result is a factor
		e.moveVector(args[0], "V28")
		e.three(three["VFMADD231PS"].word, "FMLA", "4S", 28, number(args[1]), number(to))
		e.moveVector("V28", to)
	case "VCMPPS": // $5: not less, or NaN
		e.three(0x6ea0e400, "FCMGT", "4S", 31, e.vector(args[1], 31), number(args[2]))
		e.word(0x6e205800|31<<5|number(to), "NOT V%d.16B, V31.16B", number(to))
	case "VMOVSS":
		e.Line("\tFMOVS F%d, %s", number(args[0]), e.memory(to))
	case "VMOVSLDUP":
		e.three(0x4e802800, "TRN1", "4S", number(to), number(args[0]), number(args[0]))
	case "VPERMILPS": // $0xb1: neighbours change places
		e.word(0x4ea00800|number(args[1])<<5|number(to), "REV64 V%d.4S, %s.4S", number(to), args[1])
	case "VADDSUBPS": // a difference in even lanes, a sum in odd ones
		x, y := number(args[1]), number(args[0])
		e.three(three["VADDPS"].word, "FADD", "4S", 28, x, y)
		e.three(three["VSUBPS"].word, "FSUB", "4S", number(to), x, y)
		e.word(0x6f07e600|31, "MOVI V31.2D, $0xffffffff00000000")
		e.three(insert, "BIT", "16B", number(to), 28, 31)
	case "VPGATHERDD":
		e.gather(args[0], number(to))
	default:
		panic(name + " has no spelling for NEON")
	}
}

// moveVector copies 16 bytes.
func (e *Emitter) moveVector(from, to string) {
	f, fromRegister := register(from)
	t, toRegister := register(to)
	switch {
	case fromRegister && toRegister:
		e.three(three["VPOR"].word, "ORR", "16B", t, f, f)
	case toRegister:
		e.Line("\tFMOVQ %s, F%d", e.memory(from), t)
	default:
		e.Line("\tFMOVQ F%d, %s", f, e.memory(to))
	}
}

// pairs sets words to sums of two products of int16.
func (e *Emitter) pairs(x, y, to uint32) {
	e.word(0x0e60c000|y<<16|x<<5|28, "SMULL V28.4S, V%d.4H, V%d.4H", x, y)
	e.word(0x4e60c000|y<<16|x<<5|29, "SMULL2 V29.4S, V%d.8H, V%d.8H", x, y)
	e.three(0x4ea0bc00, "ADDP", "4S", to, 28, 29)
}

// gather loads a word for each lane of an index.
func (e *Emitter) gather(operand string, to uint32) {
	base, index, _ := strings.Cut(strings.Trim(operand, "()"), ")(")
	index, _, _ = strings.Cut(index, "*")
	for lane := range 4 {
		e.Line("\tVMOV %s.S[%d], R20", index, lane)
		e.Line("\tADD R20<<2, %s, R19", generalRegisters[base])
		e.Line("\tMOVWU (R19), R20")
		e.Line("\tVMOV R20, V29.S[%d]", lane)
	}
	e.three(three["VPOR"].word, "ORR", "16B", to, 29, 29)
}

// MulAdd adds to the words of sum those of a times those of b.
func (e *Emitter) MulAdd(a, b, sum string) { e.spellVector("MLA", []string{a, b, sum}) }

// Insert sets those bits of to that the mask has to those of v.
func (e *Emitter) Insert(v, mask, to string) {
	m := e.vector(mask, 31)
	e.three(insert, "BIT", "16B", number(to), number(v), m)
}

const insert = 0x6ea01c00 // BIT

// Bytes leaves the low bytes of four vectors' words in the first of them.
func (e *Emitter) Bytes(v Vec) string {
	for i := range uint32(2) {
		to := number(v.Part(int(2 * i)))
		e.word(0x0e612800|to<<5|to, "XTN V%d.4H, V%[1]d.4S", to)
		e.word(0x4e612800|number(v.Part(int(2*i+1)))<<5|to, "XTN2 V%d.8H, %s.4S", to, v.Part(int(2*i+1)))
	}
	to := number(v.Part(0))
	e.word(0x0e212800|to<<5|to, "XTN V%d.8B, V%[1]d.8H", to)
	e.word(0x4e212800|number(v.Part(2))<<5|to, "XTN2 V%d.16B, %s.8H", to, v.Part(2))
	return v.Part(0)
}

// foldLanes brings four vectors together in the first one's first lane.
func (e *Emitter) foldLanes(op string, v Vec) Vec {
	first := v.Part(0)
	e.F("%s %s, %s, %[3]s", op, v.Part(2), first)
	e.F("%s %s, %s, %[3]s", op, v.Part(3), v.Part(1))
	e.F("%s %s, %s, %[3]s", op, v.Part(1), first)
	for _, bytes := range []uint32{8, 4} {
		n := number(first)
		e.word(0x6e004000|bytes<<11|n<<16|n<<5|31, "EXT V31.16B, V%d.16B, V%[1]d.16B, $%d", n, bytes)
		e.F("%s V31, %s, %[2]s", op, first)
	}
	return Vec{parts: []string{first}}
}

// broadcast sets all lanes to one: that in memory, or the first of a register.
func (e *Emitter) broadcast(from string, to uint32) {
	r, ok := register(from)
	switch {
	case ok:
	case strings.HasSuffix(from, "(FP)"):
		e.Line("\tFMOVS %s, F%d", from, to)
		r = to
	default:
		e.leave(e.place(from), "R19")
		e.Line("\tVLD1R (R19), [V%d.S4]", to)
		return
	}
	e.word(0x4e040400|r<<5|to, "DUP V%d.4S, V%d.S[0]", to, r)
}

// Dot adds to each word of sum the four products of the signed bytes of its lane in codes and of word i of x.
func (e *Emitter) Dot(codes, x string, i int, sum string) {
	c, v, s := number(codes), number(x), number(sum)
	if e.Dots {
		e.word(0x4f80e000|uint32(i&1)<<21|uint32(i>>1)<<11|v<<16|c<<5|s, "SDOT V%d.4S, V%d.16B, V%d.4B[%d]", s, c, v, i)
		return
	}
	e.word(0x4e040400|uint32(i)<<19|v<<5|31, "DUP V31.4S, V%d.S[%d]", v, i)
	e.word(0x0e20c000|31<<16|c<<5|28, "SMULL V28.8H, V%d.8B, V31.8B", c)
	e.word(0x4e20c000|31<<16|c<<5|29, "SMULL2 V29.8H, V%d.16B, V31.16B", c)
	e.three(0x4e60bc00, "ADDP", "8H", 28, 28, 29) // at most 2·128·127
	e.word(0x4e606800|28<<5|s, "SADALP V%d.4S, V28.8H", s)
}

// vector is the number of a register: what lies in memory is loaded into the spare one.
func (e *Emitter) vector(operand string, spare uint32) uint32 {
	if r, ok := register(operand); ok {
		return r
	}
	e.Line("\tFMOVQ %s, F%d", e.memory(operand), spare)
	return spare
}

// register is the number of a vector register.
func register(operand string) (n uint32, ok bool) {
	if operand[0] != 'V' {
		return 0, false
	}
	r, err := strconv.ParseUint(operand[1:], 10, 5)
	return uint32(r), err == nil
}

func number(operand string) uint32 {
	n, ok := register(operand)
	if !ok {
		panic(operand + " is no vector register")
	}
	return n
}

func (e *Emitter) three(word uint32, name, lanes string, to, n, m uint32) {
	e.word(word|m<<16|n<<5|to, "%s V%d.%s, V%d.%[3]s, V%[5]d.%[3]s", name, to, lanes, n, m)
}

// word writes an instruction as a word, and what it is.
func (e *Emitter) word(word uint32, format string, args ...any) {
	e.Line("\tWORD $0x%08x // %s", word, fmt.Sprintf(format, args...))
}
