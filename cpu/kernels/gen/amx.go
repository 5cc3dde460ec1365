package main

import "fmt"

// AMX multiplies 16 rows of activations, just as they lie in memory, by the 16 vectors of a panel that hold 64 k of
// the strip's 16 rows: one tile by another. Scales of sub-blocks are multiplied into the codes beforehand; a product
// p, |p| ≤ 4096, is p = low + 128·high, two signed bytes, so that a block of 256 is read out once, from two sums.
// Panels hold codes, or low bytes; 4096 bytes further high ones.
//
// Tile registers are set up, used and released within a routine: goroutines change threads only between calls.

// planar is what the stages of AMX know about the codes at hand.
type planar struct {
	excess  int // how much larger than the values of the format codes are
	pending int // vectors of codes in the panel that wait for their scale
}

const (
	planeBytes = 4096           // of a panel
	tileBytes  = 16 * 64        // a tile register
	sumsAt     = 2 * planeBytes // tiles of sums, from the base
	sumsBytes  = tileBytes      // for each block of 32
	tilesBytes = 8 * tileBytes  // all of them
	tileRows   = 16             // of activations
	tileK      = 64             // at once, in blocks of 256
	halfSums   = tileBytes / 2  // 8 rows
	halfRows   = tileRows / 2   // that are read out at once
	highSums   = tileBytes      // of blocks of 256, from the low ones
)

// excesses are constants of one repeated byte.
var excesses = map[int]string{4: "bytes4", 8: "bytes8", 16: "bytes16", 32: "bytes32", 64: "bytes64", 128: "bit7"}

// tileDots unpacks vectors to the panel, without their excess; or, where they stand for a whole block, reads its sums.
func (b *blocks) tileDots(vectors []vector) {
	if b.stage == readOut {
		for r, acc := range b.acc {
			b.load(fmt.Sprintf("%d(R15)", 64*r), acc)
		}
		return
	}
	for _, v := range vectors {
		v.codes()
		if b.excess != 0 {
			b.f("VPSUBB %s, %s, %s", b.c(excesses[b.excess]), b.codes, b.codes)
		}
		b.store(b.codes, fmt.Sprintf("%d(R15)", b.at))
		b.at += b.width()
		b.vectors++
	}
	b.excess, b.pending = 0, len(vectors)
}

// scalePlanes replaces the pending codes by the planes of their products with a scale, of which 16 bits count.
func (b *blocks) scalePlanes(scale string) {
	twice, even, odd, t := b.acc[0], b.acc[1], b.acc[2], b.acc[3]
	b.f("VPSLLD $16, %s, %s", scale, t)
	b.f("VPSRLD $16, %s, %s", t, twice)
	b.or(t, twice, twice)
	for at := b.at - b.pending*b.width(); at < b.at; at += b.width() {
		low, high := fmt.Sprintf("%d(R15)", at), fmt.Sprintf("%d(R15)", at+planeBytes)
		b.f("VPSRAW $8, %s, %s", low, odd)
		b.f("VPSLLW $8, %s, %s", low, even)
		b.f("VPSRAW $8, %s, %s", even, even)
		b.f("VPMULLW %s, %s, %s", twice, even, even)
		b.f("VPMULLW %s, %s, %s", twice, odd, odd)
		b.f("VPSLLW $8, %s, %s", odd, t)
		b.f("VPTERNLOGD $0xd8, %s, %s, %s", b.c("even"), even, t) // even bytes of even, odd ones of t
		b.and(b.c("low7"), t, t)
		b.store(t, low)
		b.f("VPSRLW $7, %s, %s", even, even)
		b.f("VPSLLW $1, %s, %s", odd, odd)
		b.f("VPTERNLOGD $0xd8, %s, %s, %s", b.c("even"), even, odd)
		b.store(odd, high)
	}
}

// joinPlanes sets the block's sums to low + 128·high.
func (b *blocks) joinPlanes() {
	for r, sum := range b.isum {
		b.f("VPSLLD $7, %d(R15), %s", highSums+64*r, sum)
		b.f("VPADDD %d(R15), %s, %s", 64*r, sum, sum)
	}
}

// tiled says whether a block is one of 32 with one sum, or one of 256 with scales.
func (s source) tiled() bool { return s.x == x32 || s.subs }

// emitTiles writes a panel routine for AMX.
func (s source) emitTiles(e *emitter, name string) {
	_, most := e.group()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: halfRows}, most: most, bytes: sumsAt + tilesBytes}
	p.begin(name)
	config := "blocks32"
	if s.x == x256 {
		config = "blocks256"
	}
	e.f("LEAQ %s<>(SB), AX", config)
	e.tileMem(ldtilecfg, 0, "AX", "", 0)
	p.eachPanel(func() {
		e.f("// unpack")
		p.eachTile(planes, "unpack", 0)
		e.f("// multiply")
		e.f("MOVQ rows+16(FP), AX")
		e.f("MOVQ AX, %s", p.word(wordRows))
		e.f("MOVQ x+40(FP), DX")
		e.f("MOVQ %s, R12", p.word(wordBase))
		e.f("ADDQ $%d, R12", p.bytes)
		e.f("group:")
		e.f("MOVQ DX, %s", p.word(wordGroup))
		e.f("MOVQ %s, R15", p.word(wordBase))
		e.f("MOVL $64, R13")
		if s.x == x256 {
			p.multiply256()
		} else {
			p.multiply32()
		}
		p.readOut("low", 0)
		p.readOut("high", halfSums)
		e.f("SUBQ $%d, %s", tileRows, p.word(wordRows))
		e.f("JNZ group")
	})
	e.bytes(0xc4, 0xe2, 0x78, 0x49, 0xc0) // TILERELEASE
	p.finish()
}

// multiply256 leaves the sums of a block in two tiles of memory.
func (p *panel) multiply256() {
	p.tileZero(0)
	p.tileZero(1)
	for i := range 256 / tileK {
		x := 2 + 3*(i%2)
		low, high := x+1, x+2
		p.tileMem(tileload, x, "DX", "R8", tileK*i)
		p.tileMem(tileload, low, "R15", "R13", tileBytes*i)
		p.tileMem(tileload, high, "R15", "R13", planeBytes+tileBytes*i)
		p.tileDot(0, x, low)
		p.tileDot(1, x, high)
	}
	p.tileMem(tilestore, 0, "R15", "R13", sumsAt)
	p.tileMem(tilestore, 1, "R15", "R13", sumsAt+highSums)
}

// multiply32 leaves the sums of each block of the panel in a tile of memory.
func (p *panel) multiply32() {
	p.f("LEAQ %d(R15), R10", sumsAt)
	p.f("MOVQ %s, CX", p.word(wordTiles))
	p.f("blocks:")
	p.tileZero(0)
	p.tileMem(tileload, 1, "DX", "R8", 0)
	p.tileMem(tileload, 2, "R15", "R13", 0)
	p.tileDot(0, 1, 2)
	p.tileMem(tilestore, 0, "R10", "R13", 0)
	p.f("ADDQ $%d, DX", p.source.x)
	p.f("ADDQ $%d, R15", 8*64)
	p.f("ADDQ $%d, R10", sumsBytes)
	p.f("DECQ CX")
	p.f("JNZ blocks")
}

// readOut adds the sums of 8 rows to their totals, and moves to the next 8.
func (p *panel) readOut(label string, from int) {
	p.f("MOVQ %s, DX", p.word(wordGroup))
	for r, t := range p.total {
		p.load(fmt.Sprintf("%d(R12)", 64*r), t)
	}
	p.eachTile(readOut, label, sumsAt+from)
	for r, t := range p.total {
		p.store(t, fmt.Sprintf("%d(R12)", 64*r))
	}
	p.f("ADDQ $%d, R12", 64*halfRows)
	p.f("MOVQ %s, DX", p.word(wordGroup))
	p.f("LEAQ (DX)(R8*%d), DX", halfRows)
	p.f("MOVQ DX, %s", p.word(wordGroup))
}

// tileConfigs writes how tile registers are cut for blocks of 256 and of 32.
func (e *emitter) tileConfigs() {
	for _, c := range []struct {
		name       string
		xK, wLines int
		x, w       []int // registers of activations and of weights; others have sums
	}{
		{"blocks256", 64, 16, []int{2, 5}, []int{3, 4, 6, 7}},
		{"blocks32", 32, 8, []int{1}, []int{2}},
	} {
		var config [64]byte
		config[0] = 1 // palette
		for t := range 8 {
			config[16+2*t], config[48+t] = 64, 16
		}
		for _, t := range c.x {
			config[16+2*t] = byte(c.xK)
		}
		for _, t := range c.w {
			config[48+t] = byte(c.wLines)
		}
		for at := 0; at < 64; at += 8 {
			var word uint64
			for i := range 8 {
				word |= uint64(config[at+i]) << (8 * i)
			}
			e.line("DATA %s<>+%d(SB)/8, $0x%016x", c.name, at, word)
		}
		e.line("GLOBL %s<>(SB), RODATA|NOPTR, $64", c.name)
	}
}
