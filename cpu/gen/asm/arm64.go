package asm

import (
	"fmt"
	"strconv"
	"strings"
)

// Routines for arm64 are those of amd64: the words of both are amd64's instructions, which this file spells with
// arm64's for general registers, and neon.go for vectors. A register of amd64 stands for one of arm64; an operand in
// memory is loaded first, one of a shape that arm64 has no address for by way of R19. R20 to R22 are free as well.

var generalRegisters = map[string]string{
	"AX": "R0", "BX": "R1", "CX": "R2", "DX": "R3", "SI": "R4", "DI": "R5", "R8": "R8", "R9": "R9", "R10": "R10",
	"R11": "R11", "R12": "R12", "R13": "R13", "R14": "R14", "R15": "R15", "SP": "RSP",
}

// linkBytes are what lies below a frame's first byte, with what keeps it aligned to 16.
const linkBytes = 16

var branches = map[string]string{
	"JMP": "B", "JZ": "BEQ", "JNZ": "BNE", "JLT": "BLT", "JLE": "BLE", "JGE": "BGE", "JGT": "BGT", "JB": "BLO", "JAE": "BHS"}

// moves says how what is wider or narrower than a register is moved.
var moves = map[string]string{"MOVQ": "MOVD", "MOVL": "MOVWU", "MOVB": "MOVB"}

// spell writes an instruction of amd64 for arm64.
func (e *Emitter) spell(line string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	var args []string
	if rest != "" {
		args = strings.Split(rest, ", ")
	}
	switch {
	case name == "//", name == "RET":
		e.Line("\t%s", strings.TrimSpace(line))
	case name == "VZEROUPPER":
	case branches[name] != "":
		e.Line("\t%s %s", branches[name], args[0])
	case moves[name] != "":
		e.move(moves[name], args[0], args[1])
	case strings.HasPrefix(name, "PREFETCH"):
		e.prefetch(name[len(name)-1:], args[0])
	case name[0] == 'V':
		e.spellVector(name, args)
	default:
		e.spellGeneral(name, args)
	}
}

func (e *Emitter) spellGeneral(name string, args []string) {
	to := args[len(args)-1]
	switch {
	case name == "LEAQ":
		e.leave(e.place(args[0]), generalRegisters[to])
	case name == "XORL":
		e.Line("\tMOVD ZR, %s", generalRegisters[to])
	case name == "IMUL3Q":
		e.Line("\tMOVD %s, R19", args[0])
		e.Line("\tMUL R19, %s, %s", generalRegisters[args[1]], generalRegisters[to])
	case name == "CMPQ":
		e.Line("\tCMP %s, %s", e.value(args[1], "R20"), e.value(args[0], "R19"))
	case strings.HasPrefix(name, "CMOVQ"):
		to := generalRegisters[to]
		e.Line("\tCSEL %s, %s, %s, %s", name[5:], e.value(args[0], "R19"), to, to)
	case name == "SHRQ":
		e.Line("\tLSR %s, %[2]s, %[2]s", args[0], generalRegisters[to])
		e.Line("\tCMP $0, %s", generalRegisters[to])
	case name == "ANDQ":
		e.change("AND", args[0], to)
	case name == "ADDQ":
		e.change("ADDS", args[0], to)
	case name == "SUBQ":
		e.change("SUBS", args[0], to)
	case name == "INCQ":
		e.change("ADDS", "$1", to)
	case name == "DECQ", name == "DECL":
		e.change("SUBS", "$1", to)
	default:
		panic(name + " has no spelling for arm64")
	}
}

// change writes an operation on a register, or on a word in memory.
func (e *Emitter) change(operation, by, to string) {
	if r, ok := generalRegisters[to]; ok {
		e.Line("\t%s %s, %s, %[3]s", operation, e.value(by, "R20"), r)
		return
	}
	by = e.value(by, "R20")
	place := e.memory(to)
	e.Line("\tMOVD %s, R19", place)
	e.Line("\t%s %s, R19, R19", operation, by)
	e.Line("\tMOVD R19, %s", place)
}

// value is an operand of a general instruction: what lies in memory is loaded.
func (e *Emitter) value(operand, spare string) string {
	switch r, ok := generalRegisters[operand]; {
	case ok:
		return r
	case operand[0] == '$':
		return operand
	}
	e.Line("\tMOVD %s, %s", e.memory(operand), spare)
	return spare
}

func (e *Emitter) move(name, from, to string) {
	if r, ok := generalRegisters[to]; ok {
		switch f, ok := generalRegisters[from]; {
		case ok:
			e.Line("\tMOVD %s, %s", f, r)
		case from[0] == '$':
			e.Line("\tMOVD %s, %s", from, r)
		default:
			e.Line("\t%s %s, %s", name, e.memory(from), r)
		}
		return
	}
	if from[0] == '$' && from != "$0" {
		e.Line("\tMOVD %s, R20", from)
		e.Line("\t%s R20, %s", strings.Replace(name, "U", "", 1), e.memory(to))
		return
	}
	e.Line("\t%s %s, %s", strings.Replace(name, "U", "", 1), e.value(from, "R20"), e.memory(to))
}

// place is an address: a register, bytes behind it, and a register that is added, shifted to the left.
type place struct {
	symbol, base, index string
	field               string // a name of go_asm.h for the offset
	offset, shift       int
}

func (e *Emitter) place(operand string) (p place) {
	if strings.HasSuffix(operand, "(SB)") {
		p.symbol = operand
		return p
	}
	at := strings.Index(operand, "(")
	if at > 0 {
		var err error
		if p.offset, err = strconv.Atoi(operand[:at]); err != nil {
			p.field = operand[:at]
		}
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(operand[at+1:], ")"), ")(") {
		register, factor, scaled := strings.Cut(part, "*")
		if !scaled {
			p.base = generalRegisters[register]
			continue
		}
		p.index = generalRegisters[register]
		p.shift = map[string]int{"1": 0, "2": 1, "4": 2, "8": 3}[factor]
	}
	if p.base == "RSP" {
		p.offset += linkBytes
	}
	return p
}

// memory is the text of an operand in memory.
func (e *Emitter) memory(operand string) string {
	if strings.HasSuffix(operand, "(FP)") {
		return operand
	}
	p := e.place(operand)
	if p.field != "" {
		return fmt.Sprintf("%s(%s)", p.field, p.base)
	}
	if p.index == "" && p.symbol == "" {
		return fmt.Sprintf("%d(%s)", p.offset, p.base)
	}
	offset := p.offset
	p.offset = 0
	e.leave(p, "R19")
	return fmt.Sprintf("%d(R19)", offset)
}

// leave leaves an address in a register.
func (e *Emitter) leave(p place, to string) {
	switch {
	case p.symbol != "":
		e.Line("\tMOVD $%s, %s", p.symbol, to)
		return
	case p.field != "":
		e.Line("\tADD $%s, %s, %s", p.field, p.base, to)
		return
	case p.base == "":
		e.Line("\tLSL $%d, %s, %s", p.shift, p.index, to)
	case p.index != "":
		e.Line("\tADD %s<<%d, %s, %s", p.index, p.shift, p.base, to)
	default:
		e.Line("\tADD $%d, %s, %s", p.offset, p.base, to)
		return
	}
	if p.offset != 0 {
		e.Line("\tADD $%d, %s, %[2]s", p.offset, to)
	}
}

// prefetch asks for a line, to be brought to L1 or, with level 1, to L2.
func (e *Emitter) prefetch(level, operand string) {
	p := e.place(operand)
	if p.index != "" {
		e.Line("\tADD %s<<%d, %s, R19", p.index, p.shift, p.base)
		p.base = "R19"
	}
	e.Line("\tPRFM %d(%s), PLDL%cKEEP", p.offset, p.base, level[0]+1)
}
