package main

import "fmt"

// A panel routine multiplies many rows: it unpacks 256 k of the strip into its frame once, and multiplies groups of
// rows by them. Bodies are written twice for it, once for each stage.
//
// Frame: what bodies keep there; then, from a multiple of 64 on, the panel and the float sums of all rows; at its end
// the words below.
const (
	panelVectors = 64 + 64 // codes and scales, or two for each code
	panelK       = 256
)

// words at the end of the frame, bytes.
const (
	wordBase   = 8 * iota // address of the panel
	wordTiles             // in this panel
	wordTile              // tiles to go
	wordRows              // rows to go
	wordGroup             // activations of the group's first row
	wordNext              // AMX: and of the unit's to be multiplied next
	wordsBytes            // all of them
)

// group is how many rows a panel routine multiplies at once, and how many it is given at most. That of AMX takes any
// number, and time for multiples of 16 or 32.
func (s isa) group() (rows, most int) {
	switch {
	case s.amx:
		return 1, 256
	case s.wide():
		return 8, 64
	}
	return 4, 64
}

// panel writes one panel routine.
type panel struct {
	*blocks
	source
	most         int // rows
	bytes, words int // of the panel; where the words are
}

func (s source) emitPanel(e *emitter, name string) {
	rows, most := e.group()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: rows}, most: most, bytes: panelVectors * e.width()}
	p.begin(name)
	p.eachPanel(func() {
		if !e.wide() {
			e.f("XORL SI, SI")
			e.f("half:")
		}
		p.expand()
		p.multiply()
		if !e.wide() {
			e.f("ADDQ $2, SI")
			e.f("CMPQ SI, $4")
			e.f("JLT half")
		}
	})
	p.finish()
}

// begin enters the routine and takes registers.
func (p *panel) begin(name string) {
	p.words = p.slots*p.width() + 64 + p.bytes + 64*p.most
	p.enter(name, p.words+wordsBytes, 64, fmt.Sprintf("%s is a panelKernel for %s.", name, p.source.name))
	p.registers(p.subs)
	if p.vnni {
		p.total = p.take(p.rows)
	}
	if p.wide() {
		p.emitter.keep(p.source.keep[:min(len(p.source.keep), 32-p.used)]...)
	} else {
		p.emitter.keep(p.source.keep[0])
	}
	p.place(64)
}

// place aligns the panel, sets distances of rows and clears the sums, of size bytes for each row.
func (p *panel) place(size int) {
	p.f("LEAQ %d(SP), R15", p.slots*p.width()+63)
	p.f("ANDQ $-64, R15")
	p.f("MOVQ R15, %s", p.word(wordBase))
	if p.amx {
		p.f("MOVL $%d, R8", p.metaBytes())
	} else {
		p.f("MOVQ xStride+48(FP), R8")
	}
	p.f("LEAQ (R8)(R8*2), R9")
	if p.wide() {
		p.f("LEAQ (R8)(R8*4), SI")
		p.f("LEAQ (R8)(R9*2), R14")
	}
	p.f("LEAQ %d(R15), R12", p.bytes)
	p.f("MOVQ rows+16(FP), CX")
	if p.amx { // whole units
		p.f("ADDQ $31, CX")
		p.f("ANDQ $-32, CX")
	}
	p.zero(p.tmp)
	p.f("clear:")
	for at := 0; at < size; at += p.width() {
		p.store(p.tmp, fmt.Sprintf("%d(R12)", at))
	}
	p.f("ADDQ $%d, R12", size)
	p.f("DECQ CX")
	p.f("JNZ clear")
}

// eachPanel repeats body for each panel of the strip.
func (p *panel) eachPanel(body func()) {
	count := ""
	if p.tiles() > 1 {
		count = p.word(wordTiles)
	}
	p.f("")
	p.eachPart(p.emitter, p.tiles(), p.xBytes(), count, body)
}

// eachPart repeats body for parts of the blocks, of at most so many tiles, which it counts in the word count if they can
// be more than one. Blocks of activations are xBytes apart.
func (s source) eachPart(e *emitter, tiles, xBytes int, count string, body func()) {
	e.f("part:")
	if tiles == 1 {
		body()
		e.f("ADDQ $%d, w+32(FP)", s.tile)
		e.f("ADDQ $%d, x+40(FP)", xBytes)
		e.f("DECQ blocks+56(FP)")
		e.f("JNZ part")
		return
	}
	e.f("MOVQ blocks+56(FP), AX")
	e.f("MOVQ $%d, CX", tiles)
	e.f("CMPQ AX, CX")
	e.f("CMOVQGT CX, AX")
	e.f("MOVQ AX, %s", count)
	body()
	e.f("MOVQ %s, AX", count)
	e.f("IMUL3Q $%d, AX, CX", s.tile)
	e.f("ADDQ CX, w+32(FP)")
	e.f("IMUL3Q $%d, AX, CX", xBytes)
	e.f("ADDQ CX, x+40(FP)")
	e.f("SUBQ AX, blocks+56(FP)")
	e.f("JNZ part")
}

func (p *panel) word(n int) string { return fmt.Sprintf("%d(SP)", p.words+n) }

// tiles is how many a panel has.
func (p *panel) tiles() int {
	switch {
	case p.source.x != x32:
		return 1
	case p.amx:
		return unitTiles
	}
	return panelK / 32
}

// xBytes is how far a block of activations is from the next one: those of 16 rows lie together for AMX.
func (p *panel) xBytes() int {
	if p.amx {
		return tileRows * p.source.x
	}
	return p.source.x
}

// eachTile writes the body of one stage, for every tile of the panel. R15 begins from bytes after the base.
func (p *panel) eachTile(s stage, label string, from int) {
	p.stage = s
	p.f("MOVQ w+32(FP), BX")
	p.f("MOVQ %s, R15", p.word(wordBase))
	if from > 0 {
		p.f("ADDQ $%d, R15", from)
	}
	if p.tiles() > 1 {
		p.f("MOVQ %s, AX", p.word(wordTiles))
		p.f("MOVQ AX, %s", p.word(wordTile))
		p.f("%s:", label)
	}
	p.tileBody(p.source)
	if p.tiles() > 1 {
		p.step()
		if s == readOut {
			p.f("ADDQ $%d, R15", tileBytes)
		}
		p.f("ADDQ $%d, BX", p.tile)
		p.f("ADDQ $%d, DX", p.xBytes())
		p.f("DECQ %s", p.word(wordTile))
		p.f("JNZ %s", label)
	}
	p.at = 0
}

func (p *panel) expand() {
	p.f("// unpack")
	p.eachTile(expand, "unpack", 0)
	if p.vectors*p.tiles() > panelVectors {
		panic(p.name + " unpacks more than a panel")
	}
}

func (p *panel) multiply() {
	p.f("// multiply")
	p.f("MOVQ rows+16(FP), AX")
	p.f("MOVQ AX, %s", p.word(wordRows))
	p.f("MOVQ x+40(FP), DX")
	p.f("MOVQ %s, R12", p.word(wordBase))
	p.f("ADDQ $%d, R12", p.bytes)
	if !p.wide() {
		p.f("LEAQ (R12)(SI*8), R12")
		p.f("LEAQ (R12)(SI*8), R12")
	}
	p.f("group:")
	p.f("MOVQ DX, %s", p.word(wordGroup))
	for r, t := range p.total {
		p.load(fmt.Sprintf("%d(R12)", 64*r), t)
	}
	p.eachTile(multiply, "tile", 0)
	for r, t := range p.total {
		p.store(t, fmt.Sprintf("%d(R12)", 64*r))
	}
	p.f("ADDQ $%d, R12", 64*p.rows)
	p.f("MOVQ %s, DX", p.word(wordGroup))
	p.f("LEAQ (DX)(R8*%d), DX", p.rows)
	p.f("SUBQ $%d, %s", p.rows, p.word(wordRows))
	p.f("JNZ group")
}

// finish stores the float sums, lanes outputs of each row, and returns.
func (p *panel) finish() {
	p.results()
	p.f("row:")
	p.storeSums()
	p.nextRow(64)
	p.leave()
}

// results sets DI and R12 to the outputs and sums of row 0, R8 to the distance of outputs, R10 to the rows.
func (p *panel) results() {
	p.f("")
	p.f("MOVQ out+0(FP), DI")
	p.f("MOVQ stride+8(FP), R8")
	p.f("MOVQ rows+16(FP), R10")
	p.f("MOVQ lanes+24(FP), CX")
	if p.source.convert != nil { // there may be more, of another strip
		p.f("MOVL $16, AX")
		p.f("CMPQ CX, AX")
		p.f("CMOVQGT AX, CX")
	}
	p.f("MOVQ %s, R12", p.word(wordBase))
	p.f("ADDQ $%d, R12", p.bytes)
	p.lanesMask()
}

// nextRow goes on with the next row, whose sums are size bytes further.
func (p *panel) nextRow(size int) {
	p.f("ADDQ $%d, R12", size)
	p.f("ADDQ R8, DI")
	p.f("DECQ R10")
	p.f("JNZ row")
}

func (p *panel) leave() {
	p.f("VZEROUPPER")
	p.f("RET")
}
