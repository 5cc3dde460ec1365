package main

// Formats whose codes number the points of a grid, groups of 8 or 4 values. A point's word, which is gathered for 16
// rows at once, has the levels of its values; with their signs these index a table of codes. Tiles and grids are
// described in package kernels, formats.go and twin_grid.go.
type grid struct {
	points  string // a grid of package kernels
	four    bool   // values of a point, not 8
	codes   string // the table, whose excess is a power of two
	numbers int    // offset of their low 8 bits
	step    int    // vectors at R10 for each 32 values
	d       int    // offset
	factor  string // of d

	begin func(b *blocks)                             // sets R11 and R13
	sub   func(b *blocks)                             // begins 32 values
	high  func(b *blocks, k int)                      // puts the other bits of number k into t; or nil
	sign  func(b *blocks, v int) (from string, n int) // bit n of bytes is set for negative values of vector v
	scale func(b *blocks, part int)                   // puts the scale of 16 values into codes
	next  func(b *blocks)                             // moves R11 and R13
}

// Slots: the point that two vectors share, signs, scales; what a format needs besides.
const pointAt, signsAt, scaleAt, moreAt = 0, 1, 2, 3

// grid writes a block of 256. Besides the usual registers, R14 leads to the points, or where rows need it, CX.
func (b *blocks) grid(g *grid) {
	g.begin(b)
	b.clear()
	b.lane4(g.numbers, "R10")
	points := "R14"
	if b.stage.unpacking() {
		points = "CX"
	} else {
		b.activations()
		b.F("LEAQ %d(DX), CX", xNeg)
	}
	if !b.stage.unpacked() {
		b.F("LEAQ ·%s(SB), %s", g.points, points)
	}
	shift, most := tableRange(g.codes)
	b.loop("sub", 8, func() {
		if !b.stage.unpacked() {
			for range g.step {
				b.ahead()
			}
			g.sub(b)
		}
		for part := range 2 {
			var v []vector
			for i := 4 * part; i < 4*part+4; i++ {
				v = append(v, vector{func() { b.gridCodes(g, i, points) }, 4 * i})
			}
			b.offsetDots(v, most, 0, "CX", 4*part, shift, func() { g.scale(b, part) })
		}
		b.F("ADDQ $%d, R10", g.step*perTile)
		g.next(b)
		if !b.stage.unpacking() {
			b.nextActivations(32)
			b.F("ADDQ $8, CX")
		}
	})
	b.halves(g.d)
	if g.factor != "" && !b.stage.unpacking() {
		b.F("VMULPS %s, %s, %s", b.Const(g.factor), b.tmp, b.tmp)
	}
	b.addBlock("VFMADD231PS", xScale, b.isum)
}

// gridCodes puts the codes of vector v into codes.
func (b *blocks) gridCodes(g *grid, v int, points string) {
	switch {
	case g.four:
		b.gather(g, v, points)
		b.and(b.Const("bytes7"), b.tmp, b.codes)
	case v%2 == 0:
		b.gather(g, v/2, points)
		b.store(b.tmp, b.slot(pointAt))
		b.and(b.Const("bytes7"), b.tmp, b.codes)
	default:
		b.field(b.slot(pointAt), 4, "bytes7", b.codes)
	}
	from, n := g.sign(b, v)
	b.bits(from, 3-n, "bytes8")
	b.lookUp(g.codes)
}

// gather puts point k of 32 values into tmp.
func (b *blocks) gather(g *grid, k int, points string) {
	b.cut(k/4*perTile, 8*(k%4), "byte0")
	if g.high != nil {
		g.high(b, k)
		b.or(b.t, b.codes, b.codes)
	}
	if b.ARM {
		b.F("VPGATHERDD (%s)(%s*4), %s", points, b.codes, b.tmp)
		return
	}
	if b.Wide() {
		b.F("KXNORW K2, K2, K2")
		b.F("VPGATHERDD (%s)(%s*4), K2, %s", points, b.codes, b.tmp)
		return
	}
	b.F("VPCMPEQD %s, %s, %s", b.t, b.t, b.t)
	b.F("VPGATHERDD %s, (%s)(%s*4), %s", b.t, points, b.codes, b.tmp)
}

// evenSigns puts 32 signs into their slot, of which the word has 28: the number in each 8 is even.
func (b *blocks) evenSigns(from string) {
	b.field(from, 0, "notLast", b.codes)
	for _, n := range []int{8, 16, 1} { // the bytes come together in the highest one, then pairs of bits
		in := b.t
		if n == 8 {
			in = b.codes
		}
		b.F("VPSLLD $%d, %s, %s", n, in, b.tmp)
		b.xor(b.tmp, in, b.t)
	}
	b.and(b.Const("last"), b.t, b.t)
	b.or(b.t, b.codes, b.codes)
	b.store(b.codes, b.slot(signsAt))
}

// scaleOfSigns puts the scale into its slot whose bits stand where evenSigns' word has no signs.
func (b *blocks) scaleOfSigns(from string) {
	b.field(from, 25, "even7", b.codes) // 4 bits, two apart
	for n, mask := range []string{"pairs6", "nibble0"} {
		b.F("VPSRLD $%d, %s, %s", n+1, b.codes, b.tmp)
		b.or(b.tmp, b.codes, b.codes)
		b.and(b.Const(mask), b.codes, b.codes)
	}
	b.odd()
	b.store(b.codes, b.slot(scaleAt))
}

// odd turns scales into twice themselves and 1.
func (b *blocks) odd() {
	b.F("VPADDD %s, %s, %s", b.codes, b.codes, b.codes)
	b.or(b.Const("int1"), b.codes, b.codes)
}

// nibbleScale puts the scale of a part into codes, from bytes of two at R13.
func (b *blocks) nibbleScale(offset, part int) {
	if part == 0 {
		b.ahead()
	}
	b.F("VPMOVZXBD %d(R13), %s", offset, b.codes)
	if part == 0 {
		b.and(b.Const("nibble0"), b.codes, b.codes)
	} else {
		b.F("VPSRLD $4, %s, %s", b.codes, b.codes)
	}
	b.odd()
}

// highBits puts those bits of bytes or words at R13 into t that the constant has, shifted to the right.
func (b *blocks) highBits(widen string, right int, constant string) {
	b.F("%s 0(R13), %s", widen, b.t)
	b.field(b.t, right, constant, b.t)
}

// slotScale puts the scale of 32 values into codes.
func slotScale(b *blocks, _ int) { b.load(b.slot(scaleAt), b.codes) }

func slotSigns(b *blocks, v int) (string, int) { return b.slot(signsAt), v }

func (b *blocks) advance(bytes int, pointer string) { b.F("ADDQ $%d, %s", bytes, pointer) }

// pointer1 and pointer2 lead to units of 1 and 2 bytes.
func (b *blocks) pointer1(offset int, to string) { b.F("LEAQ %s, %s", b.lane1(offset), to) }
func (b *blocks) pointer2(offset int, to string) { b.F("LEAQ %s, %s", b.lane2(offset), to) }
