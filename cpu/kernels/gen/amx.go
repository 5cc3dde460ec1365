package main

import "fmt"

// AMX multiplies 16 rows of activations, just as they lie in memory, by the 16 vectors of a panel that hold 64 k of
// the strip's 16 rows: one tile by another. Scales of sub-blocks are multiplied into the codes beforehand; a product
// p, |p| < 2¹⁴ in every format, is p = low + 128·high, two signed bytes, so that a block of 256 is read out once.
// Panels hold codes, or low bytes; 4096 bytes further high ones.
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
	planeBytes = 4 * tileBytes  // of a panel
	sumsAt     = 2 * planeBytes // tiles of sums, from the base
	sumsBytes  = 8 * tileBytes  // of 16 rows: of each block of 32, or low and high ones of a block of 256
	halfRows   = tileRows / 2   // that are read out at once
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
		b.f("VPSLLD $7, %d(R15), %s", tileBytes+64*r, sum)
		b.f("VPADDD %d(R15), %s, %s", 64*r, sum, sum)
	}
}

// tiled says whether a block is one of 32 with one sum, or one of 256 with scales.
func (s source) tiled() bool { return s.x == x32 || s.subs }

// emitTiles writes a panel routine for AMX. Two groups of 16 rows share the weights' tiles, and hide how long a sum
// takes.
func (s source) emitTiles(e *emitter, name string) {
	_, most := e.group()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: halfRows}, most: most, bytes: sumsAt + 2*sumsBytes}
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
		e.f("MOVQ rows+16(FP), AX")
		e.f("MOVQ AX, %s", p.word(wordRows))
		e.f("MOVQ x+40(FP), DX")
		e.f("MOVQ DX, %s", p.word(wordGroup))
		e.f("MOVQ %s, R12", p.word(wordBase))
		e.f("ADDQ $%d, R12", p.bytes)
		e.f("group:")
		e.f("CMPQ %s, $%d", p.word(wordRows), 2*tileRows)
		e.f("JLT last")
		p.rowsOfTiles(2)
		e.f("JNZ group")
		e.f("JMP multiplied")
		e.f("last:")
		p.rowsOfTiles(1)
		e.f("multiplied:")
	})
	e.bytes(0xc4, 0xe2, 0x78, 0x49, 0xc0) // TILERELEASE
	p.finish()
}

// rowsOfTiles multiplies groups of 16 rows by the panel, and counts them off.
func (p *panel) rowsOfTiles(groups int) {
	p.f("// multiply %d rows", groups*tileRows)
	p.f("MOVQ %s, DX", p.word(wordGroup))
	p.f("MOVQ %s, R15", p.word(wordBase))
	p.f("MOVQ R8, R11")
	p.f("SHLQ $4, R11")
	p.f("ADDQ DX, R11") // the second group
	p.f("MOVL $64, R13")
	if p.source.x == x256 {
		p.multiply256(groups)
	} else {
		p.multiply32(groups)
	}
	for g := range groups {
		for half := range 2 {
			p.readOut(fmt.Sprintf("out%dof%dhalf%d", g, groups, half), sumsAt+g*sumsBytes+half*64*halfRows)
		}
	}
	p.f("SUBQ $%d, %s", groups*tileRows, p.word(wordRows))
}

// multiply256 leaves the low and high sums of a block in tiles of memory. Tiles 0 to 3 are sums, 4 and 5 activations,
// 6 and 7 weights.
func (p *panel) multiply256(groups int) {
	for t := range 2 * groups {
		p.tileZero(t)
	}
	for i := range 4 {
		p.tileMem(tileload, 6, "R15", "R13", tileBytes*i)
		p.tileMem(tileload, 7, "R15", "R13", planeBytes+tileBytes*i)
		for g := range groups {
			p.tileMem(tileload, 4+g, []string{"DX", "R11"}[g], "R8", 64*i)
			p.tileDot(2*g, 4+g, 6)
			p.tileDot(2*g+1, 4+g, 7)
		}
	}
	for t := range 2 * groups {
		p.tileMem(tilestore, t, "R15", "R13", sumsAt+t/2*sumsBytes+t%2*tileBytes)
	}
}

// multiply32 leaves the sums of each block of the panel in a tile of memory. A full panel needs no loop.
func (p *panel) multiply32(groups int) {
	block := func(n, wAt, xAt, sumsAt int, sums string) {
		p.tileMem(tileload, 6+n%2, "R15", "R13", wAt)
		for g := range groups {
			t := (2*n + g) % 4
			p.tileZero(t)
			p.tileMem(tileload, 4+g, []string{"DX", "R11"}[g], "R8", xAt)
			p.tileDot(t, 4+g, 6+n%2)
			p.tileMem(tilestore, t, sums, "R13", sumsAt+g*sumsBytes)
		}
	}
	label := func(name string) string { return fmt.Sprintf("%s%d", name, groups) }
	p.f("MOVQ %s, CX", p.word(wordTiles))
	p.f("CMPQ CX, $%d", p.tiles())
	p.f("JNE %s", label("some"))
	for n := range p.tiles() {
		block(n, 512*n, x32*n, sumsAt+tileBytes*n, "R15")
	}
	p.f("JMP %s", label("read"))
	p.f("%s:", label("some"))
	p.f("LEAQ %d(R15), R10", sumsAt)
	p.f("%s:", label("blocks"))
	block(0, 0, 0, 0, "R10")
	p.f("ADDQ $%d, DX", x32)
	p.f("ADDQ $%d, R11", x32)
	p.f("ADDQ $512, R15")
	p.f("ADDQ $%d, R10", tileBytes)
	p.f("DECQ CX")
	p.f("JNZ %s", label("blocks"))
	p.f("%s:", label("read"))
}

// readOut adds the sums of 8 rows, from bytes after the base, to their totals, and moves to the next 8.
func (p *panel) readOut(label string, from int) {
	p.f("MOVQ %s, DX", p.word(wordGroup))
	for r, t := range p.total {
		p.load(fmt.Sprintf("%d(R12)", 64*r), t)
	}
	p.eachTile(readOut, label, from)
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
