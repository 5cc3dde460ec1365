package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// AMX multiplies 16 rows of activations, in the form of Acts.Tiles, by the 16 vectors of a panel that hold 64 k of the
// strip's 16 rows: one tile by another. Scales of sub-blocks are multiplied into the codes beforehand; a product
// p, |p| < 2¹⁴ in every format, is p = low + 128·high, two signed bytes, so that a block of 256 is read out once.
// Panels hold codes, or low bytes; 4096 bytes further high ones.
//
// A unit of work has four tiles of sums: two groups of 16 rows with low and high sums of a block of 256, or one group
// with four blocks of 32. While one unit's tiles are multiplied, the sums of the one before are read out of memory.
//
// Tile registers are set up, used and released within a routine: goroutines change threads only between calls.

// planar is what the stages of AMX know about the codes at hand.
type planar struct {
	excess  int // how much larger than the values of the format codes are
	pending int // vectors of codes in the panel that wait for their scale
}

const (
	tileRows   = 16             // of activations
	tileBytes  = 64 * tileRows  // a tile register
	unitTiles  = 4              // of sums: registers 0 to 3
	planeBytes = 4 * tileBytes  // of a panel
	sumsAt     = 2 * planeBytes // a unit's sums, from the base
	sumsBytes  = unitTiles * tileBytes
	halfRows   = tileRows / 2 // that are read out at once
)

// excesses are constants of one repeated byte.
var excesses = map[int]string{4: "bytes4", 8: "bytes8", 16: "bytes16", 32: "bytes32", 64: "bytes64", 128: "bit7"}

// tileDots unpacks vectors to the panel, without their excess if they have no scale; or, where they stand for a whole
// block, reads its sums.
func (b *blocks) tileDots(vectors []vector) {
	if b.stage == readOut {
		for r, acc := range b.acc {
			b.load(fmt.Sprintf("%d(R15)", 64*r), acc)
		}
		return
	}
	for _, v := range vectors {
		v.codes()
		if b.isum == nil && b.excess != 0 {
			b.F("VPSUBB %s, %s, %s", b.Const(excesses[b.excess]), b.codes, b.codes)
		}
		b.store(b.codes, fmt.Sprintf("%d(R15)", b.at))
		b.at += b.Width()
		b.vectors++
	}
	b.pending = len(vectors)
}

// scalePlanes replaces the pending codes by the planes of their products with a scale, an int8. One byte of two is
// multiplied at a time; what codes exceed their values by is taken off the products.
func (b *blocks) scalePlanes(scale string) {
	forEven, forOdd, excess, codes, even, odd, t := b.acc[0], b.acc[1], b.acc[2], b.acc[3], b.acc[4], b.acc[5], b.acc[6]
	b.F("VPSLLD $16, %s, %s", scale, t)
	b.F("VPSRLD $16, %s, %s", t, even)
	b.or(t, even, even)
	b.and(b.Const("even"), even, forEven)
	b.F("VPSLLW $8, %s, %s", even, forOdd)
	if b.excess != 0 {
		b.F("VPSLLW $%d, %s, %s", bits.TrailingZeros(uint(b.excess)), even, excess)
	}
	for at := b.at - b.pending*b.Width(); at < b.at; at += b.Width() {
		low, high := fmt.Sprintf("%d(R15)", at), fmt.Sprintf("%d(R15)", at+planeBytes)
		b.load(low, codes)
		b.F("VPMADDUBSW %s, %s, %s", forEven, codes, even)
		b.F("VPMADDUBSW %s, %s, %s", forOdd, codes, odd)
		if b.excess != 0 {
			b.F("VPSUBW %s, %s, %s", excess, even, even)
			b.F("VPSUBW %s, %s, %s", excess, odd, odd)
		}
		b.F("VPSLLW $8, %s, %s", odd, t)
		b.F("VPTERNLOGD $0xd8, %s, %s, %s", b.Const("even"), even, t) // even bytes of even, odd ones of t
		b.and(b.Const("low7"), t, t)
		b.store(t, low)
		b.F("VPSRLW $7, %s, %s", even, even)
		b.F("VPSLLW $1, %s, %s", odd, odd)
		b.F("VPTERNLOGD $0xd8, %s, %s, %s", b.Const("even"), even, odd)
		b.store(odd, high)
	}
	b.excess = 0
}

// joinPlanes sets the block's sums to low + 128·high.
func (b *blocks) joinPlanes() {
	for r, sum := range b.isum {
		b.F("VPSLLD $7, %d(R15), %s", unitTiles/2*tileBytes+64*r, sum)
		b.F("VPADDD %d(R15), %s, %s", 64*r, sum, sum)
	}
}

// tiled says whether a block is one of 32 with one sum, or one of 256 with scales.
func (s source) tiled() bool { return s.x == x32 || s.subs }

// metaBytes is what a block of activations has beside the values: sums and a scale.
func (s source) metaBytes() int {
	if s.x == x256 {
		return x256 - 256
	}
	return x32 - 32
}

// unitGroups is how many groups of rows a unit has.
func (s source) unitGroups() int {
	if s.x == x256 {
		return 2
	}
	return 1
}

// emitTiles writes a panel routine for AMX. Multiplying takes few instructions and long, reading out many: the
// processor does both at once where they alternate in the code.
func (s source) emitTiles(e *emitter, name string) {
	_, _, most := e.group()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: halfRows}, most: most, bytes: sumsAt + sumsBytes}
	p.begin(name)
	config := "blocks32"
	if s.x == x256 {
		config = "blocks256"
	}
	e.F("LEAQ %s<>(SB), AX", config)
	e.tileMem(ldtilecfg, 0, "AX", "", 0)
	p.eachPanel(func() {
		e.F("// unpack")
		p.eachTile(planes, "unpack", wordBase, 0)
		e.F("MOVQ rows+16(FP), AX")
		e.F("MOVQ AX, %s", p.word(wordRows))
		e.F("MOVQ x+40(FP), DX")
		e.F("MOVQ DX, %s", p.word(wordNext))
		e.F("MOVQ $0, %s", p.word(wordGroup))
		e.F("MOVQ %s, R12", p.word(wordBase))
		e.F("ADDQ $%d, R12", p.bytes)
		p.unitPointers()
		p.firstTiles()
		p.eachUnit()
	})
	e.bytes(0xc4, 0xe2, 0x78, 0x49, 0xc0) // TILERELEASE
	p.finish()
}

// eachUnit multiplies all rows by the panel. Those beyond the last fill its unit.
func (p *panel) eachUnit() {
	p.F("unit:")
	p.F("CMPQ %s, $0", p.word(wordRows))
	p.F("JLE read")
	p.unitPointers()
	if p.source.x == x256 {
		p.multiply256()
	} else {
		p.multiply32()
	}
	p.F("read:")
	p.F("CMPQ %s, $0", p.word(wordGroup))
	p.F("JEQ store")
	p.readOut()
	p.F("CMPQ %s, $0", p.word(wordRows))
	p.F("JLE multiplied")
	p.F("store:")
	p.F("MOVQ %s, DX", p.word(wordNext))
	p.F("MOVQ DX, %s", p.word(wordGroup))
	for range p.unitGroups() {
		p.F("ADDQ xStride+48(FP), DX")
	}
	p.F("MOVQ DX, %s", p.word(wordNext))
	p.unitPointers()
	p.F("SUBQ $%d, %s", p.unitGroups()*tileRows, p.word(wordRows))
	p.F("JLE last")
	p.firstTiles()
	p.F("last:")
	for t := range unitTiles {
		p.tileMem(tilestore, t, "R15", "R13", sumsAt+tileBytes*t)
	}
	p.F("JMP unit")
	p.F("multiplied:")
}

// unitPointers sets DX and R11 to the activations of the next unit's groups, R15 to the panel; R13 and, for activations
// in blocks of 32, R10 to the distance of lines of tiles.
func (p *panel) unitPointers() {
	p.F("MOVQ %s, DX", p.word(wordNext))
	p.F("MOVQ %s, R15", p.word(wordBase))
	p.F("MOVL $64, R13")
	if p.source.x == x256 {
		p.F("MOVQ DX, R11")
		p.F("ADDQ xStride+48(FP), R11")
	} else {
		p.F("MOVL $32, R10")
	}
}

// firstTiles loads the four tiles that a unit begins with. That is done before the sums of the unit before are stored,
// since a load waits for stores before it that look like its own address by the lowest 12 bits.
func (p *panel) firstTiles() {
	if p.source.x == x256 {
		p.tiles256(0)
		return
	}
	p.tiles32(0)
	p.tiles32(1)
}

// multiply256 leaves the low sums of two groups in tiles 0 and 1, the high ones in 2 and 3.
func (p *panel) multiply256() {
	p.F("// multiply two groups")
	for t := range unitTiles {
		p.tileZero(t)
	}
	for i := range 4 {
		if i > 0 {
			p.tiles256(i)
		}
		for t := range unitTiles {
			p.tileDot(t, 4+t%2, 6+t/2)
		}
	}
}

// tiles256 loads 64 k of the activations of two groups to tiles 4 and 5, and of low and high weights to 6 and 7.
func (p *panel) tiles256(i int) {
	p.tileMem(tileload, 6, "R15", "R13", tileBytes*i)
	p.tileMem(tileload, 4, "DX", "R13", tileBytes*i)
	p.tileMem(tileload, 5, "R11", "R13", tileBytes*i)
	p.tileMem(tileload, 7, "R15", "R13", planeBytes+tileBytes*i)
}

// multiply32 leaves the sums of four blocks in tiles 0 to 3. Of a panel that has fewer those of others are not read.
func (p *panel) multiply32() {
	p.F("// multiply four blocks")
	for n := range unitTiles {
		if n > 1 {
			p.tiles32(n)
		}
		p.tileZero(n)
		p.tileDot(n, 4+n%2, 6+n%2)
	}
}

// tiles32 loads the activations of a block to tile 4 or 5, and the weights to 6 or 7.
func (p *panel) tiles32(n int) {
	p.tileMem(tileload, 6+n%2, "R15", "R13", 512*n)
	p.tileMem(tileload, 4+n%2, "DX", "R10", p.xBytes()*n)
}

// readOut adds the sums of a unit to the totals, half of a group's rows at a time.
func (p *panel) readOut() {
	values, half := (tileRows-1)*(p.source.x-p.metaBytes()), halfRows*p.metaBytes()
	p.F("// read out")
	p.F("MOVQ %s, DX", p.word(wordGroup))
	if p.unitGroups() == 1 { // four blocks for each half: counting halves would cost 3 %
		p.F("ADDQ $%d, DX", values)
		p.readHalf("half0", wordBase, sumsAt)
		p.F("MOVQ %s, DX", p.word(wordGroup))
		p.F("ADDQ $%d, DX", values+half)
		p.readHalf("half1", wordBase, sumsAt+64*halfRows)
		return
	}
	p.F("ADDQ $%d, DX", values)
	p.F("MOVQ %s, R15", p.word(wordBase))
	p.F("ADDQ $%d, R15", sumsAt)
	p.F("MOVQ R15, %s", p.word(wordSums))
	p.F("MOVQ $%d, %s", 2*p.unitGroups(), p.word(wordHalves))
	p.F("half:")
	p.readHalf("", wordSums, 0)
	p.F("ADDQ $%d, DX", half)
	p.F("ADDQ $%d, %s", 64*halfRows, p.word(wordSums))
	p.F("DECQ %s", p.word(wordHalves))
	p.F("JZ readAll")
	p.F("TESTQ $1, %s", p.word(wordHalves))
	p.F("JNZ half")
	p.F("ADDQ xStride+48(FP), DX") // to the next group
	p.F("SUBQ $%d, DX", 2*half)
	p.F("JMP half")
	p.F("readAll:")
}

// readHalf adds the sums of half of a group's rows, bytes behind where a word says, and moves to the totals of the next
// half. Body finds the rows' sums and scales where they lie behind their values, see Acts.Tiles.
func (p *panel) readHalf(label string, word, bytes int) {
	for r, t := range p.total {
		p.load(fmt.Sprintf("%d(R12)", 64*r), t)
	}
	p.eachTile(readOut, label, word, bytes)
	for r, t := range p.total {
		p.store(t, fmt.Sprintf("%d(R12)", 64*r))
	}
	p.F("ADDQ $%d, R12", 64*halfRows)
}

// tileConfigs writes how tile registers are cut for blocks of 256 and of 32.
func (e *emitter) tileConfigs() {
	for _, c := range []struct {
		name       string
		xK, wLines int
	}{
		{"blocks256", 64, 16},
		{"blocks32", 32, 8},
	} {
		var config [64]byte
		config[0] = 1 // palette
		for t := range 8 {
			config[16+2*t], config[48+t] = 64, 16
		}
		for t := range 2 {
			config[16+2*(4+t)], config[48+6+t] = byte(c.xK), byte(c.wLines)
		}
		words := make([]uint64, 8)
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(config[8*i:])
		}
		e.Data(c.name, words...)
	}
}
