package main

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

// constants are, but for the last two, those of exp in package vec.
var constants = []asm.Constant{
	{Name: "low", Word: 0xc2ae0000},    // -87
	{Name: "high", Word: 0x42b00000},   // 88
	{Name: "perLn2", Word: 0x3fb8aa3b}, // 1/ln 2
	{Name: "magic", Word: 0x4b400000},  // 1.5·2²³
	{Name: "ln2a", Word: 0xbf317200},   // -ln 2, upper bits
	{Name: "ln2b", Word: 0xb5bfbe8e},   // -ln 2, the rest
	{Name: "q4", Word: 0x3ab688bb},     // q, from the highest power on
	{Name: "q3", Word: 0x3c0905ed},
	{Name: "q2", Word: 0x3d2aaa8c},
	{Name: "q1", Word: 0x3e2aaa6e},
	{Name: "half", Word: 0x3f000000},
	{Name: "one", Word: 0x3f800000},
	{Name: "sign", Word: 0x80000000},
	{Name: "magnitude", Word: 0x7fffffff},
}

// tails are those of tail in package vec, the polynomial from the highest power on.
var tails = []asm.Constant{
	{Name: "perTwoRoots", Word: 0x3eb504f3}, // 1/(2·√2)
	{Name: "minusHalf", Word: 0xbf000000},
	{Name: "tail9", Word: 0x3e2ef945},
	{Name: "tail8", Word: 0xbf527892},
	{Name: "tail7", Word: 0x3fbe87b0},
	{Name: "tail6", Word: 0xbf914e5d},
	{Name: "tail5", Word: 0x3e8ec7cc},
	{Name: "tail4", Word: 0xbe3ec24c},
	{Name: "tail3", Word: 0x3dc636c9},
	{Name: "tail2", Word: 0x3ebf88fb},
	{Name: "tail1", Word: 0x3f8000c7},
	{Name: "tail0", Word: 0xbfa1fc4e},
}

// constantBytes are those of a constant, by lanes: an operand in ymm form; zmm form has the registers to hold all.
var constantBytes = map[int]int{4: 16, 8: 32, 16: 8}

// holdConstants holds those of exp, and others, where there are registers enough.
func (w writer) holdConstants(others ...asm.Constant) {
	if w.Wide() {
		for _, c := range slices.Concat(constants, others) {
			w.Hold("VBROADCASTSS", c.Name)
		}
	}
}

// exp replaces x by eˣ.
func (w writer) exp(x asm.Vec) {
	defer w.Free(w.Used())
	t, n := w.Vec(16), w.Vec(16)
	inRange := w.NotLess(x, w.Constant("low"))    // elsewhere it is 0
	w.Op("VMINPS", x, w.inRegister("high", t), x) // gives its last Intel operand for NaN: x
	w.Op("VMAXPS", x, w.inRegister("low", t), x)
	w.Op("VMOVUPS", w.Constant("perLn2"), t)
	w.Op("VFMADD213PS", w.Constant("magic"), x, t) // t = x/ln 2 + magic
	w.Op("VSUBPS", w.Constant("magic"), t, n)
	w.Op("VFMADD231PS", w.Constant("ln2a"), n, x)
	w.Op("VFMADD231PS", w.Constant("ln2b"), n, x) // x = r
	w.Op("VMOVUPS", w.Constant("q4"), n)
	for _, c := range []string{"q3", "q2", "q1", "half", "one", "one"} {
		w.Op("VFMADD213PS", w.Constant(c), x, n)
	}
	w.Op("VPSLLD", asm.Imm(23), t, t)
	w.Op("VPADDD", w.Constant("one"), t, t) // the bits of 2ⁿ
	w.Where(inRange, "VMULPS", t, n, x)
}

// inRegister is a constant in a register: in the given one, if it is not held.
func (w writer) inRegister(name string, to asm.Vec) asm.Vec {
	if w.Wide() {
		return w.Constant(name)
	}
	w.Op("VMOVUPS", w.Constant(name), to)
	return to
}

func (w writer) exps() {
	w.Begin("exp", "(y, x *float32, n int)")
	w.holdConstants()
	v := w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("x"), v)
		w.exp(v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) gate() {
	w.Begin("gate", "(y, x *float32, c1, c3 float32, n int)")
	w.holdConstants()
	c1, c3 := w.Broadcast("c1"), w.Broadcast("c3")
	x, v := w.Vec(16), w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("x"), x)
		w.Op("VMULPS", x, x, v)
		w.Op("VMULPS", c3, v, v)
		w.Op("VADDPS", c1, v, v)
		w.Op("VMULPS", v, x, v) // z
		w.Op("VXORPS", w.Constant("sign"), v, v)
		w.exp(v)
		w.Op("VADDPS", w.Constant("one"), v, v)
		w.Op("VDIVPS", v, x, v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) normal() {
	w.Begin("normal", "(y, x *float32, n int)")
	w.holdConstants(tails...)
	x, m, t, v := w.Vec(16), w.Vec(16), w.Vec(16), w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("x"), x)
		w.Op("VANDPS", w.Constant("magnitude"), x, m)
		w.Op("VMOVUPS", w.Constant("perTwoRoots"), t)
		w.Op("VFMADD213PS", w.Constant("one"), m, t)
		w.Op("VMOVUPS", w.Constant("one"), v)
		w.Op("VDIVPS", t, v, t)
		w.Op("VMOVUPS", w.Constant("tail9"), v)
		for power := 8; power >= 0; power-- {
			w.Op("VFMADD213PS", w.Constant(fmt.Sprintf("tail%d", power)), t, v)
		}
		w.Op("VMULPS", m, t, t)
		w.Op("VMULPS", m, m, m)
		w.Op("VFMADD231PS", w.Constant("minusHalf"), m, v)
		w.exp(v)
		w.Op("VMULPS", v, t, v)
		w.Op("VXORPS", m, m, m)
		w.Op("VMAXPS", m, x, x) // 0 where x is NaN: v is NaN there
		w.Op("VFMADD231PS", w.Constant("minusHalf"), v, x)
		w.Op("VMOVUPS", x, w.Row("y"))
	})
	w.End()
}

func (w writer) softCap() {
	w.Begin("softCap", "(y, x *float32, limit, twice float32, n int)")
	w.holdConstants()
	w.Hold("VBROADCASTSS", "one")
	limit, twice := w.Broadcast("limit"), w.Broadcast("twice")
	one, two, v := w.Constant("one"), w.Scalar(), w.Vec(16)
	w.Op("VADDPS", one, one, two)
	w.Rows(func() {
		w.Op("VMULPS", w.Row("x"), twice, v)
		w.exp(v)
		w.Op("VADDPS", one, v, v)
		w.Op("VDIVPS", v, two, v)
		w.Op("VSUBPS", v, one, v)
		w.Op("VMULPS", limit, v, v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) softMax() {
	w.Begin("softMax", "(x *[Block]float32) (top, sum float32)")
	w.holdConstants()
	v, top := w.Vec(16), w.Scalar()
	w.Op("VMOVUPS", w.At("x", 0, 16), v)
	for i := 16; i < block; i += 16 {
		w.Op("VMAXPS", w.At("x", i, 16), v, v)
	}
	most := w.Fold("VMAXPS", v)
	w.Return("top", most)
	w.Op("VBROADCASTSS", most, top)
	sums := w.Zero(16)
	for i := 0; i < block; i += 16 {
		x := w.At("x", i, 16)
		w.Op("VMOVUPS", x, v)
		w.Op("VSUBPS", top, v, v)
		w.exp(v)
		w.Op("VMOVUPS", v, x)
		w.Op("VADDPS", v, sums, sums)
	}
	w.Return("sum", w.Fold("VADDPS", sums))
	w.End()
}
