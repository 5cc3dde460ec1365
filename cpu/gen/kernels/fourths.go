package main

import "fmt"

// fourths writes a transposer of the codes of Q6_K that recodes them, see fourthCodes in package kernels: 12 columns,
// three of which at a time, 16 values of three runs, make three of the tile.
func (e *emitter) fourths(stream bool) string {
	name, what, store := transposerName("Fourths", "fourthCodes", stream)
	masks := map[string]string{}
	begin := func() {
		for i, mask := range []string{"low2", "low4", "bits45", "bits67"} {
			masks[mask] = fmt.Sprintf("Y%d", 12+i)
			e.F("VMOVDQU %s<>(SB), %s", mask, masks[mask])
		}
	}
	const second, half, third = 32, 64, 128 // bytes of ql, in a half; qh
	e.transposerOf(name, what, 4, 2*256, begin, func() {
		for h := range 2 {
			qh := third - h*(half-second)
			again := fmt.Sprintf("half%d", h)
			e.F("MOVL $2, AX")
			e.F("%s:", again)
			e.kept(0, 0)
			e.kept(second, 256)
			e.sixteenRows(qh)
			for k := range 4 {
				e.fourth(masks, store, [3]int{64 * k, 64*k + 16*second, 64*k + 16*qh}, 64*k, 8+k)
				e.fourth(masks, store, [3]int{64*k + 32, 64*k + 32 + 16*second, 64*k + 32 + 16*qh}, 64*k+32, k)
			}
			e.advanceRows("$16")
			e.F("ADDQ $256, DI")
			e.F("DECL AX")
			e.F("JNZ %s", again)
			e.advanceRows(fmt.Sprintf("$%d", half-second))
			e.F("ADDQ $%d, DI", 16*(half-second))
		}
		e.advanceRows(fmt.Sprintf("$%d", half)) // qh
		e.F("ADDQ $%d, DI", 16*half)
	}, stream)
	return name
}

// kept leaves a transposed column in the frame.
func (e *emitter) kept(offset, at int) {
	e.sixteenRows(offset)
	for k := range 4 {
		e.F("VMOVDQU Y%d, %d(SP)", 8+k, at+64*k)
		e.F("VMOVDQU Y%d, %d(SP)", k, at+64*k+32)
	}
}

// fourth recodes 32 bytes of three columns: two in the frame, from a place on, and Yz.
func (e *emitter) fourth(masks map[string]string, store string, to [3]int, at, z int) {
	const sum, t = "Y4", "Y5"
	add := func(shift string, n int, from, mask string) {
		if n > 0 {
			e.F("%s $%d, %s, %s", shift, n, from, t)
			from = t
		}
		e.F("VPAND %s, %s, %s", from, masks[mask], t)
		e.F("VPOR %s, %s, %s", t, sum, sum)
	}
	x, y := "Y6", "Y7"
	e.F("VMOVDQU %d(SP), %s", at, x)
	e.F("VMOVDQU %d(SP), %s", at+256, y)
	from := fmt.Sprintf("Y%d", z)
	e.F("VPAND %s, %s, %s", from, masks["low2"], sum)
	e.F("VPSLLD $4, %s, %s", sum, sum)
	add("", 0, x, "low4")
	add("", 0, from, "bits67")
	e.F("%s %s, %d(DI)", store, sum, to[0])
	e.F("VPANDN %s, %s, %s", y, masks["bits45"], sum)
	add("VPSLLD", 2, from, "bits45")
	e.F("%s %s, %d(DI)", store, sum, to[1])
	e.F("VPAND %s, %s, %s", from, masks["bits45"], sum)
	add("VPSRLD", 4, x, "low4")
	add("VPSLLD", 2, y, "bits67")
	e.F("%s %s, %d(DI)", store, sum, to[2])
}
