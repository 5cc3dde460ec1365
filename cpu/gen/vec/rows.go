package main

import "github.com/sluice-ai/sluice/cpu/gen/asm"

// beginSum begins a routine that adds up rows by lanes. In zmm form it also adds the lanes; in ymm form it leaves that to
// who adds the elements beyond the last row.
func (w writer) beginSum(name string) (sums asm.Vec) {
	if w.Wide() {
		w.Begin(name, "(x *float32, n int) float32")
	} else {
		w.Begin(name, "(l *[Lanes]float32, x *float32, n int)")
	}
	return w.Zero(16).Partial()
}

func (w writer) endSum(sums asm.Vec) {
	if w.Wide() {
		w.Return("ret", w.Fold("VADDPS", sums))
	} else {
		w.Op("VMOVUPS", sums, w.At("l", 0, 16))
	}
	w.End()
}

func (w writer) sum() {
	sums := w.beginSum("sum")
	w.Rows(func() { w.Op("VADDPS", w.Row("x"), sums, sums) })
	w.endSum(sums)
}

func (w writer) sumSquares() {
	sums := w.beginSum("sumSquares")
	v := w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("x"), v)
		w.Op("VMULPS", v, v, v)
		w.Op("VADDPS", v, sums, sums)
	})
	w.endSum(sums)
}

// largest compares magnitudes by their bits.
func (w writer) largest() {
	w.Begin("largest", "(x *float32, n int) float32")
	w.Hold("VBROADCASTSS", "magnitude")
	v, most := w.Vec(16), w.Zero(16)
	w.Rows(func() {
		w.Op("VANDPS", w.Row("x"), w.Constant("magnitude"), v)
		w.Op("VPMAXUD", v, most, most)
	})
	w.Return("ret", w.Fold("VPMAXUD", most))
	w.End()
}

func (w writer) ofTwo(name, op string) {
	w.Begin(name, "(y, a, b *float32, n int)")
	v := w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("a"), v)
		w.Op(op, w.Row("b"), v, v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) scale() {
	w.Begin("scale", "(y, x *float32, s float32, n int)")
	s, v := w.Broadcast("s"), w.Vec(16)
	w.Rows(func() {
		w.Op("VMULPS", w.Row("x"), s, v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) divide() {
	w.Begin("divide", "(y, x *float32, s float32, n int)")
	s, v := w.Broadcast("s"), w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("x"), v)
		w.Op("VDIVPS", s, v, v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) merge() {
	w.Begin("merge", "(acc, o *float32, alpha, beta float32, n int)")
	alpha, beta := w.Broadcast("alpha"), w.Broadcast("beta")
	acc, o := w.Vec(16), w.Vec(16)
	w.Rows(func() {
		w.Op("VMULPS", w.Row("acc"), alpha, acc)
		w.Op("VMULPS", w.Row("o"), beta, o)
		w.Op("VADDPS", o, acc, acc)
		w.Op("VMOVUPS", acc, w.Row("acc"))
	})
	w.End()
}

func (w writer) rotate() {
	w.Begin("rotate", "(a, b, cos, sin *float32, n int)")
	a, b, cos, sin, ac, bs := w.Vec(16), w.Vec(16), w.Vec(16), w.Vec(16), w.Vec(16), w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("a"), a)
		w.Op("VMOVUPS", w.Row("b"), b)
		w.Op("VMOVUPS", w.Row("cos"), cos)
		w.Op("VMOVUPS", w.Row("sin"), sin)
		w.Op("VMULPS", cos, a, ac)
		w.Op("VMULPS", sin, b, bs)
		w.Op("VMULPS", sin, a, a)
		w.Op("VMULPS", cos, b, b)
		w.Op("VSUBPS", bs, ac, ac)
		w.Op("VADDPS", b, a, a)
		w.Op("VMOVUPS", ac, w.Row("a"))
		w.Op("VMOVUPS", a, w.Row("b"))
	})
	w.End()
}

func (w writer) rotatePairs() {
	w.Begin("rotatePairs", "(x, cos, sin *float32, n int)")
	w.HalfAsMany("cos")
	w.HalfAsMany("sin")
	x, others, cos, sin := w.Vec(16), w.Vec(16), w.Vec(16), w.Vec(16)
	w.Rows(func() {
		w.Op("VPMOVZXDQ", w.Row("cos"), cos)
		w.Op("VPMOVZXDQ", w.Row("sin"), sin)
		w.Op("VMOVSLDUP", cos, cos) // each twice
		w.Op("VMOVSLDUP", sin, sin)
		w.Op("VMOVUPS", w.Row("x"), x)
		w.Op("VPERMILPS", asm.Imm(0xb1), x, others) // the points' other halves
		w.Op("VMULPS", cos, x, x)
		w.Op("VMULPS", sin, others, others)
		w.Op("VADDSUBPS", others, x, x)
		w.Op("VMOVUPS", x, w.Row("x"))
	})
	w.End()
}

// load makes floats of elements of so many bytes: int8, halves or floats.
func (w writer) load(size int, from, to asm.Vec) {
	switch size {
	case 1:
		w.Op("VPMOVSXBD", from, to)
		w.Op("VCVTDQ2PS", to, to)
	case 2:
		w.Op("VCVTPH2PS", from, to)
	case 4:
		w.Op("VMOVUPS", from, to)
	}
}

func (w writer) widen(name, signature string, size int) {
	w.Begin(name, signature)
	v := w.Vec(16)
	w.Rows(func() {
		w.load(size, w.Row("x"), v)
		w.Op("VMOVUPS", v, w.Row("y"))
	})
	w.End()
}

func (w writer) halve() {
	w.Begin("halve", "(y *uint16, x *float32, n int)")
	v := w.Vec(16)
	w.Rows(func() {
		w.Op("VMOVUPS", w.Row("x"), v)
		w.Op("VCVTPS2PH", asm.Imm(0), v, w.Row("y"))
	})
	w.End()
}

func (w writer) round() {
	w.Begin("round", "(y *int8, x *float32, s float32, n int)")
	s, v := w.Broadcast("s"), w.Vec(16)
	w.Rows(func() {
		w.Op("VMULPS", w.Row("x"), s, v)
		w.Op("VCVTPS2DQ", v, v)
		w.storeBytes(v, w.Row("y"))
	})
	w.End()
}

// storeBytes stores the low bytes of small integers, and uses them up. Packing interleaves the halves of ymm registers.
func (w writer) storeBytes(v, to asm.Vec) {
	if w.Wide() {
		w.Op("VPMOVSDB", v, to)
		return
	}
	if w.ARM {
		w.F("VMOVDQU %s, %s", w.Bytes(v), to.Part(0))
		return
	}
	low, high := v.Part(0)[1:], v.Part(1)[1:]
	w.F("VPACKSSDW Y%s, Y%s, Y%[2]s", high, low)
	w.F("VPERMQ $0xd8, Y%s, Y%[1]s", low)
	w.F("VEXTRACTI128 $1, Y%s, X%s", low, high)
	w.F("VPACKSSWB X%s, X%s, X%[2]s", high, low)
	w.F("VMOVDQU X%s, %s", low, to.Part(0))
}

// together is how many elements of a block there are registers for, beside those of another.
func (w writer) together() int {
	if w.ARM {
		return 16
	}
	return block
}

// some is what works on together elements from one on.
func (w writer) some(v asm.Vec, at int) asm.Vec { return v.Some(at/w.Lanes, w.together()/w.Lanes) }

func (w writer) mulRows() {
	w.Begin("mulRows", "(x *float32, s *[Block]float32, rows int)")
	s, v := w.Vec(block), w.Vec(w.together())
	w.Op("VMOVUPS", w.At("s", 0, block), s)
	w.Times("rows", func() {
		for at := 0; at < block; at += w.together() {
			x := w.At("x", at, w.together())
			w.Op("VMULPS", x, w.some(s, at), v)
			w.Op("VMOVUPS", v, x)
		}
		w.Advance("x", block)
	})
	w.End()
}

func (w writer) mulAddRows() {
	w.Begin("mulAddRows", "(y, x *float32, s *[Block]float32, rows int)")
	s, v := w.Vec(block), w.Vec(w.together())
	w.Op("VMOVUPS", w.At("s", 0, block), s)
	w.Times("rows", func() {
		for at := 0; at < block; at += w.together() {
			y := w.At("y", at, w.together())
			w.Op("VMULPS", w.At("x", at, w.together()), w.some(s, at), v)
			w.Op("VADDPS", y, v, v)
			w.Op("VMOVUPS", v, y)
		}
		w.Advance("y", block)
		w.Advance("x", block)
	})
	w.End()
}
