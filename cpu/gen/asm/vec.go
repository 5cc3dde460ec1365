package asm

import (
	"fmt"
	"strings"
)

// Vec is an operand of some lanes: parts side by side, each as wide as a register. One of a single part serves all parts
// of the others.
type Vec struct {
	parts   []string
	partial bool
}

// Partial is the Vec of which in zmm form only some lanes exist: those of mask K1, in the second part K2 and so on. Who
// reads the others reads zero; they are not written.
func (v Vec) Partial() Vec { return Vec{v.parts, true} }

// Part is the text of a part.
func (v Vec) Part(i int) string { return v.parts[min(i, len(v.parts)-1)] }

// Some is so many parts, from one on.
func (v Vec) Some(first, parts int) Vec { return Vec{v.parts[first : first+parts], v.partial} }

// Imm is an immediate operand.
func Imm(value int) Vec { return Vec{parts: []string{fmt.Sprintf("$%#x", value)}} }

// Mem is memory from offset(place) on, with elements of so many bytes.
func (e *Emitter) Mem(offset int, place string, size, lanes int) Vec {
	var v Vec
	for i := 0; i < lanes; i += e.Lanes {
		v.parts = append(v.parts, fmt.Sprintf("%d%s", offset+i*size, place))
	}
	return v
}

// Vec takes free registers.
func (e *Emitter) Vec(lanes int) Vec {
	var v Vec
	for range lanes / e.Lanes {
		v.parts = append(v.parts, e.Reg())
	}
	return v
}

// Scalar takes a register for what is the same in all lanes.
func (e *Emitter) Scalar() Vec { return Vec{parts: []string{e.Reg()}} }

// Op writes an instruction for each part.
func (e *Emitter) Op(name string, args ...Vec) {
	to := args[len(args)-1]
	parts, masked := 1, false
	for _, a := range args {
		parts = max(parts, len(a.parts))
		masked = masked || a.partial && e.Wide()
	}
	if masked && !to.partial {
		name += ".Z"
	}
	if e.ARM && parts > 1 {
		args = e.loadConstants(args)
	}
	for i := range parts {
		var texts []string
		for _, a := range args {
			texts = append(texts, a.Part(i))
		}
		if masked {
			texts = append(texts[:len(args)-1], fmt.Sprintf("K%d", 1+i), to.Part(i))
		}
		e.F("%s %s", name, strings.Join(texts, ", "))
	}
}

// loadConstants loads a constant of many parts once, where no instruction takes it from memory.
func (e *Emitter) loadConstants(args []Vec) []Vec {
	args = append([]Vec{}, args...)
	for i, a := range args {
		if strings.HasSuffix(a.parts[0], "(SB)") {
			args[i] = Vec{parts: []string{"V29"}}
			e.F("VMOVDQU %s, V29", a.parts[0])
		}
	}
	return args
}

// Zero takes registers and clears them.
func (e *Emitter) Zero(lanes int) Vec {
	v := e.Vec(lanes)
	e.Op("VXORPS", v, v, v)
	return v
}

// Masks says, by the bits of a word in memory, which lanes of partial Vecs exist.
func (e *Emitter) Masks(word string, lanes int) {
	if !e.Wide() {
		return
	}
	e.F("MOVQ %s, AX", word)
	for i := range lanes / 16 {
		e.F("KMOVW AX, K%d", 1+i)
		e.F("SHRQ $16, AX")
	}
}

// NotLess is a mask for Where: the lanes in which x is not less than a bound, or is NaN.
func (e *Emitter) NotLess(x, bound Vec) Vec {
	var mask Vec
	for i := range x.parts {
		if e.Wide() {
			mask.parts = append(mask.parts, fmt.Sprintf("K%d", 7-i)) // Partial counts from K1 on
		} else {
			mask.parts = append(mask.parts, e.Reg())
		}
	}
	e.Op("VCMPPS", Imm(5), bound, x, mask)
	return mask
}

// Where writes an instruction of floats, and clears the lanes of its result that are not in the mask.
func (e *Emitter) Where(mask Vec, name string, args ...Vec) {
	to := args[len(args)-1]
	if e.Wide() {
		e.Op(name+".Z", append(args[:len(args)-1:len(args)-1], mask, to)...)
		return
	}
	e.Op(name, args...)
	e.Op("VANDPS", mask, to, to)
}

// Fold brings 16 lanes together by an operation, halves onto halves, and returns an X register with the result in front.
// It uses up v.
func (e *Emitter) Fold(op string, v Vec) Vec {
	if e.ARM {
		return e.foldLanes(op, v)
	}
	defer e.Free(e.used)
	low, high, quarter := v.Part(0)[1:], v.Part(1)[1:], "VEXTRACTF128"
	if e.Wide() {
		high, quarter = e.Reg()[1:], "VEXTRACTF32X4"
		e.F("VEXTRACTF64X4 $1, Z%s, Y%s", low, high)
	}
	e.F("%s Y%s, Y%s, Y%[3]s", op, high, low)
	e.F("%s $1, Y%s, X%s", quarter, low, high)
	e.F("%s X%s, X%s, X%[3]s", op, high, low)
	for _, order := range []string{"0x4e", "0xb1"} {
		e.F("VPERMILPS $%s, X%s, X%s", order, low, high)
		e.F("%s X%s, X%s, X%[3]s", op, high, low)
	}
	return Vec{parts: []string{"X" + low}}
}

// Constant is a constant for all lanes.
func (e *Emitter) Constant(name string) Vec { return Vec{parts: []string{e.Const(name)}} }
