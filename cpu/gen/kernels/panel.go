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
	wordSums              // AMX: sums of the rows to be read out
	wordHalves            // AMX: and how many halves of groups to go
	wordsBytes            // all of them
)

// group is how many rows it takes for panels to pay, how many a routine multiplies at once, and how many it is given at
// most. That of AMX takes any number, and time for multiples of 16 or 32.
func (e *emitter) group() (least, rows, most int) {
	switch {
	case e.AMX:
		return tileRows, 1, 256
	case e.Wide():
		return 8, 8, 64
	}
	return 4, 4, 64
}

// panel writes one panel routine.
type panel struct {
	*blocks
	source
	most         int // rows
	bytes, words int // of the panel; where the words are
}

func (s source) emitPanel(e *emitter, name string) {
	_, rows, most := e.group()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: rows}, most: most, bytes: panelVectors * e.Width()}
	p.begin(name)
	p.eachPanel(func() {
		both := func() {
			p.expand()
			p.multiply()
		}
		if e.Wide() {
			both()
		} else {
			e.eachHalf(both)
		}
	})
	p.finish()
}

// begin enters the routine and takes registers.
func (p *panel) begin(name string) {
	p.words = p.slots*p.Width() + 64 + p.bytes + 64*p.most
	p.Enter(name, "panelKernel for "+p.source.name, p.words+wordsBytes, panelled)
	p.registers(p.subs)
	if p.Direct() {
		p.total = p.take(p.rows)
	}
	if p.Wide() {
		p.emitter.keep(p.source.keep[:min(len(p.source.keep), 32-p.Used())]...)
	} else {
		p.keepSome(p.source.keep)
	}
	p.place(64)
}

// place aligns the panel, sets distances of rows and clears the sums, of size bytes for each row.
func (p *panel) place(size int) {
	p.F("LEAQ %d(SP), R15", p.slots*p.Width()+63)
	p.F("ANDQ $-64, R15")
	p.F("MOVQ R15, %s", p.word(wordBase))
	if p.AMX {
		p.F("MOVL $%d, R8", p.metaBytes())
	} else {
		p.F("MOVQ xStride+48(FP), R8")
	}
	p.F("LEAQ (R8)(R8*2), R9")
	if p.Wide() {
		p.F("LEAQ (R8)(R8*4), SI")
		p.F("LEAQ (R8)(R9*2), R14")
	}
	p.F("LEAQ %d(R15), R12", p.bytes)
	p.F("MOVQ rows+16(FP), CX")
	if p.AMX { // whole units
		p.F("ADDQ $31, CX")
		p.F("ANDQ $-32, CX")
	}
	p.zero(p.tmp)
	p.F("clear:")
	for at := 0; at < size; at += p.Width() {
		p.store(p.tmp, fmt.Sprintf("%d(R12)", at))
	}
	p.F("ADDQ $%d, R12", size)
	p.F("DECQ CX")
	p.F("JNZ clear")
}

// eachPanel repeats body for each panel of the strip.
func (p *panel) eachPanel(body func()) {
	count := ""
	if p.tiles() > 1 {
		count = p.word(wordTiles)
	}
	p.F("")
	p.eachPart(p.emitter, p.tiles(), p.xBytes(), count, body)
}

// eachPart repeats body for parts of the blocks, of at most so many tiles, which it counts in the word count if they can
// be more than one. Blocks of activations are xBytes apart.
func (s source) eachPart(e *emitter, tiles, xBytes int, count string, body func()) {
	e.F("part:")
	if tiles == 1 {
		body()
		e.F("ADDQ $%d, w+32(FP)", s.tile)
		e.F("ADDQ $%d, x+40(FP)", xBytes)
		e.F("DECQ blocks+56(FP)")
		e.F("JNZ part")
		return
	}
	e.F("MOVQ blocks+56(FP), AX")
	e.F("MOVQ $%d, CX", tiles)
	e.F("CMPQ AX, CX")
	e.F("CMOVQGT CX, AX")
	e.F("MOVQ AX, %s", count)
	body()
	e.F("MOVQ %s, AX", count)
	e.F("IMUL3Q $%d, AX, CX", s.tile)
	e.F("ADDQ CX, w+32(FP)")
	e.F("IMUL3Q $%d, AX, CX", xBytes)
	e.F("ADDQ CX, x+40(FP)")
	e.F("SUBQ AX, blocks+56(FP)")
	e.F("JNZ part")
}

func (p *panel) word(n int) string { return fmt.Sprintf("%d(SP)", p.words+n) }

// tiles is how many a panel has.
func (p *panel) tiles() int {
	switch {
	case p.source.x != x32:
		return 1
	case p.AMX:
		return unitTiles
	}
	return panelK / 32
}

// xBytes is how far a block of activations is from the next one: those of 16 rows lie together for AMX.
func (p *panel) xBytes() int {
	if p.AMX {
		return tileRows * p.source.x
	}
	return p.source.x
}

// eachTile writes the body of one stage, for every tile of the panel. R15 begins bytes behind where a word says.
func (p *panel) eachTile(s stage, label string, word, bytes int) {
	p.stage = s
	p.F("MOVQ w+32(FP), BX")
	p.F("MOVQ %s, R15", p.word(word))
	if bytes > 0 {
		p.F("ADDQ $%d, R15", bytes)
	}
	if p.tiles() > 1 {
		p.F("MOVQ %s, AX", p.word(wordTiles))
		p.F("MOVQ AX, %s", p.word(wordTile))
		p.F("%s:", label)
	}
	p.tileBody(p.source)
	if p.tiles() > 1 {
		p.step()
		if s == readOut {
			p.F("ADDQ $%d, R15", tileBytes)
		}
		p.F("ADDQ $%d, BX", p.tile)
		p.F("ADDQ $%d, DX", p.xBytes())
		p.F("DECQ %s", p.word(wordTile))
		p.F("JNZ %s", label)
	}
	p.at = 0
}

func (p *panel) expand() {
	p.F("// unpack")
	p.eachTile(expand, "unpack", wordBase, 0)
	if p.vectors*p.tiles() > panelVectors {
		panic(p.name + " unpacks more than a panel")
	}
}

func (p *panel) multiply() {
	p.F("// multiply")
	p.F("MOVQ rows+16(FP), AX")
	p.F("MOVQ AX, %s", p.word(wordRows))
	p.F("MOVQ x+40(FP), DX")
	p.F("MOVQ %s, R12", p.word(wordBase))
	p.F("ADDQ $%d, R12", p.bytes)
	if !p.Wide() {
		p.F("LEAQ (R12)(SI*8), R12")
		p.F("LEAQ (R12)(SI*8), R12")
	}
	p.F("group:")
	p.F("MOVQ DX, %s", p.word(wordGroup))
	for r, t := range p.total {
		p.load(fmt.Sprintf("%d(R12)", 64*r), t)
	}
	p.eachTile(multiply, "tile", wordBase, 0)
	for r, t := range p.total {
		p.store(t, fmt.Sprintf("%d(R12)", 64*r))
	}
	p.F("ADDQ $%d, R12", 64*p.rows)
	p.F("MOVQ %s, DX", p.word(wordGroup))
	p.F("LEAQ (DX)(R8*%d), DX", p.rows)
	p.F("SUBQ $%d, %s", p.rows, p.word(wordRows))
	p.F("JNZ group")
}

// finish stores the float sums, lanes outputs of each row, and returns.
func (p *panel) finish() {
	p.results()
	p.F("row:")
	p.storeSums()
	p.nextRow(64)
	p.leave()
}

// results sets DI and R12 to the outputs and sums of row 0, R8 to the distance of outputs, R10 to the rows.
func (p *panel) results() {
	p.F("")
	p.F("MOVQ out+0(FP), DI")
	p.F("MOVQ stride+8(FP), R8")
	p.F("MOVQ rows+16(FP), R10")
	p.F("MOVQ lanes+24(FP), CX")
	if p.source.convert != nil { // there may be more, of another strip
		p.F("MOVL $16, AX")
		p.F("CMPQ CX, AX")
		p.F("CMOVQGT AX, CX")
	}
	p.F("MOVQ %s, R12", p.word(wordBase))
	p.F("ADDQ $%d, R12", p.bytes)
	p.lanesMask()
}

// nextRow goes on with the next row, whose sums are size bytes further.
func (p *panel) nextRow(size int) {
	p.F("ADDQ $%d, R12", size)
	p.F("ADDQ R8, DI")
	p.F("DECQ R10")
	p.F("JNZ row")
}

func (p *panel) leave() {
	p.F("VZEROUPPER")
	p.F("RET")
}
