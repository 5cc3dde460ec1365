package main

import "fmt"

// Formats of codes of two to four values, with one scale. Codes are 1 too large.

func (b *blocks) q1_0() {
	b.eachBlock32(4, 1, func(block, i int) {
		if i == 0 {
			b.ahead()
		}
		b.cut(perTile*block, i-1, "bytes2")
	}, 2)
}

func (b *blocks) q2_0() {
	b.eachBlock32(2, 2, func(block, i int) { b.twoBits(i%4, 2*block+i/4) }, 3)
}

// eachBlock32 multiplies the parts of a block, of so many vectors, that meet one block of 32 activations each.
func (b *blocks) eachBlock32(blocks, vectors int, codes func(block, i int), most int) {
	b.lane4(32, "R10")
	b.activations()
	b.each("block32", blocks, func(block int) {
		b.startAt("DX", x32*block+x32Neg, 0)
		var v []vector
		for i := range 8 {
			v = append(v, vector{func() { codes(block, i) }, x32*block + 4*i})
		}
		b.dots(v, most, true)
		b.halves(0)
		b.addBlock("VFMADD231PS", x32*block+x32Dx, b.acc)
	}, func() { b.nextBlock32(vectors) })
	b.firstBlock32(blocks)
}

// nextBlock32 moves by so many vectors of codes, and to the next block of 32 activations.
func (b *blocks) nextBlock32(vectors int) {
	b.advance(vectors*perTile, "R10")
	if !b.stage.unpacking() {
		b.advance(x32, "DI")
		b.advance(x32, "DX")
	}
}

// firstBlock32 goes back by so many blocks.
func (b *blocks) firstBlock32(blocks int) {
	if b.loops() && !b.stage.unpacking() {
		b.advance(-blocks*x32, "DX")
	}
}

func (b *blocks) tq2_0() {
	b.startLessSum()
	b.lane4(0, "R10")
	b.activations()
	b.loop("half128", 2, func() {
		var v []vector
		for run := range 4 {
			for i := range 8 {
				v = append(v, vector{func() { b.twoBits(run, i) }, 32*run + 4*i})
			}
		}
		b.dots(v, 3, true)
		b.F("ADDQ $%d, R10", 8*perTile)
		b.nextActivations(128)
	})
	b.halves(1024)
	b.addBlock("VFMADD231PS", xScale, b.acc)
}

// tq1_0 has 5 digits of base 3 in a byte, see unpackTQ1_0 in package kernels.
func (b *blocks) tq1_0() {
	b.startLessSum()
	b.lane4(0, "R10")
	b.activations()
	q := b.Reg()
	parts := []digits{{0, 8, 5, 0}, {8, 4, 5, 160}, {12, 1, 4, 240}}
	if b.stage == fused {
		var v []vector
		for _, d := range parts {
			for i := range d.vectors {
				v = append(v, d.of(b, d.from+i, d.k+4*i, q)...)
			}
		}
		b.dots(v, 2, true)
	} else {
		b.startLong()
		for _, d := range parts {
			b.loop(fmt.Sprintf("from%d", d.from), d.vectors, func() {
				b.addLong(d.of(b, 0, d.k-4*d.from, q))
				b.advance(perTile, "R10")
				b.nextActivations(4)
			})
		}
		b.endLong(2, 64)
	}
	b.halves(832)
	b.addBlock("VFMADD231PS", xScale, b.acc)
}

// digits are a part of a block of TQ1_0: so many vectors, whose first digits have the activations from k on, the second
// the next as many.
type digits struct{ from, vectors, digits, k int }

// of are the digits of the vector at place i, the first of which has activations at x.
func (d digits) of(b *blocks, i, x int, q string) (v []vector) {
	for n := range d.digits {
		v = append(v, vector{func() { b.digit(i, n, q) }, x + 4*n*d.vectors})
	}
	return v
}

// digit puts digit n of vector i at R10 into codes: how many of 256/3 and 512/3 are below the bytes of q, which keeps
// them from one digit to the next.
func (b *blocks) digit(i, n int, q string) {
	if n == 0 {
		b.ahead()
		b.load(fmt.Sprintf("%d(R10)", perTile*i), q)
	} else {
		b.F("VPADDB %s, %s, %s", q, q, b.tmp)
		b.F("VPADDB %s, %s, %s", b.tmp, q, q)
	}
	b.F("VPSUBUSB %s, %s, %s", b.Const("bytes85"), q, b.codes)
	b.F("VPMINUB %s, %s, %s", b.Const("bytes1"), b.codes, b.codes)
	b.F("VPSUBUSB %s, %s, %s", b.Const("bytes170"), q, b.tmp)
	b.F("VPMINUB %s, %s, %s", b.Const("bytes1"), b.tmp, b.tmp)
	b.F("VPADDB %s, %s, %s", b.tmp, b.codes, b.codes)
}

// startLessSum sets acc to -Σx of the block, from int16 sums of 32.
func (b *blocks) startLessSum() {
	if b.stage == expand {
		return
	}
	minus := b.Const("minus1")
	for r, acc := range b.acc {
		if b.VNNI {
			b.zero(acc)
		}
		for p := range 4 {
			sums := b.x("DX", xSums+4*p, r)
			switch {
			case b.VNNI:
				b.F("VPDPWSSD.BCST %s, %s, %s", sums, minus, acc)
			case p == 0:
				b.F("VPBROADCASTD %s, %s", sums, acc)
				b.F("VPMADDWD %s, %s, %s", minus, acc, acc)
			default:
				b.F("VPBROADCASTD %s, %s", sums, b.t)
				b.F("VPMADDWD %s, %s, %s", minus, b.t, b.t)
				b.F("VPADDD %s, %s, %s", b.t, acc, acc)
			}
		}
	}
}
