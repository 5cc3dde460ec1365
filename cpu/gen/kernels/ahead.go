package main

import "fmt"

// Memory is asked for twice: long before its use, to be brought to L2; then to L1, which has room for little, and few
// requests at a time. Both distances were measured; beyond the matrix they have no effect, and no fault.
const near, far = 2 << 10, 8 << 10

const lineBytes = 64

// linesOf is how many lines hold so many bytes.
func linesOf(bytes int) int { return (bytes + lineBytes - 1) / lineBytes }

// ahead asks for lines far and distance bytes behind a place.
func (e *emitter) ahead(offset int, place string, distance int) {
	e.F("PREFETCHT0 %d%s", offset+distance, place)
	e.F("PREFETCHT1 %d%s", offset+far, place)
}

// small says whether the lines of a tile are asked for at once: its vectors are not aligned, and those of a body would be
// too few.
func (s source) small() bool { return s.tile <= 16*36 }

// distance is how far ahead lines are asked for into L1: what is used first was asked for last.
func (s source) distance() int {
	if s.small() {
		return near
	}
	return max(near, s.tile)
}

// asking is how a body asks for lines of the tiles that follow, while it uses those of its own. Striped, as in row
// routines, these are lines of all strips in turn, whichever it is that the body multiplies, so that memory is read in
// as many streams all the time: R15 goes on from one body to the next, and R14 leads three strips further.
type asking struct {
	striped  bool
	every    int // calls of ahead for a line; 0 asks for none
	distance int
	calls    int
	next     int // line to ask for, from aheadAt on
	repeated int // more lines that loops have asked for
	wanted   int
}

// ask begins a body.
func (b *blocks) ask(s source) {
	b.asking = asking{striped: b.striped, distance: s.distance()}
	switch {
	case b.stage.unpacked():
	case b.striped:
		b.every = 16 / b.Lanes // bodies for a tile
		b.wanted = maxStrips * linesOf(s.tile/maxStrips/b.every)
	case s.small():
		if !b.ARM { // quarters of a tile would each ask for all of it
			b.askTile(s)
		}
	default:
		b.every, b.wanted = 1, linesOf(s.tile)
		b.F("MOVQ BX, %s", b.aheadAt())
	}
}

// askTile asks for the lines of a small tile.
func (b *blocks) askTile(s source) {
	for i := range linesOf(s.tile) {
		b.emitter.ahead(lineBytes*i, "(BX)", s.distance())
	}
}

// ahead asks for the next line. Bodies call it once for each line of the tile, evenly spread: the hardware fetches ahead by
// itself where lines are asked for in order, in whatever order they are used.
func (b *blocks) ahead() {
	if b.every == 0 {
		return
	}
	if b.calls++; b.calls%b.every == 0 {
		b.request()
	}
}

func (b *blocks) request() {
	n, place := b.next, fmt.Sprintf("(%s)", b.aheadAt())
	if b.striped {
		place += [maxStrips]string{"", "(R8*1)", "(R8*2)", "(R14*1)"}[n%maxStrips]
		n /= maxStrips
	}
	b.emitter.ahead(lineBytes*n, place, b.distance)
	b.next++
}

// askAgain begins code that is repeated; repeat ends it.
func (b *blocks) askAgain() (repeat func(times int)) {
	first := b.next
	return func(times int) {
		n := b.asked(first)
		b.next, b.repeated = first, b.repeated+times*n
	}
}

// askRest ends a body: it asks for what is missing.
func (b *blocks) askRest() {
	for b.next+b.repeated < b.wanted {
		b.request()
	}
	if b.striped {
		b.asked(0)
	}
}

// asked moves aheadAt behind the lines asked for since the first, as many of each strip, and returns how many they are.
func (b *blocks) asked(first int) int {
	step := 1
	if b.striped {
		step = maxStrips
	}
	for (b.next-first)%step > 0 {
		b.request()
	}
	n := b.next - first
	if n > 0 {
		b.F("ADDQ $%d, %s", lineBytes*n/step, b.aheadAt())
	}
	return n
}

// aheadAt is a register that the stage does not need.
func (b *blocks) aheadAt() string {
	if b.stage.unpacking() {
		return "DI"
	}
	return "R15"
}
