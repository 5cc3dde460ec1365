package grammar

import (
	"encoding/binary"
	"unicode/utf8"
)

// letter spells the words of a lexeme byte by byte. Its states are places: a state of the language, how many characters
// there were, and what there is of the next one.
type letter struct {
	*Lexeme
	number int   // of its rule
	safe   []int // by state of the language: so many plain characters may follow, whichever they are
}

// place is a place between two bytes of a word.
type place struct {
	q     int32 // the language's state; once the character is certain to lead there, the one after it
	n     int32 // characters, as far as it matters: at most Min where there is no Max
	phase phase
	left  uint8  // bytes, or digits, that the character lacks
	sum   uint32 // its bits so far, or 0 where all that may come leads to q
}

type phase uint8

const (
	between     phase = iota // characters
	fresh                    // the same, before the first: the empty text is not meant
	opening                  // JSON: before the quote
	closed                   // JSON: after the last quote
	trailing                 // in a character of several bytes
	decided                  // the same, and q is where any of them leads
	escape                   // after a backslash
	unicode                  // after \u
	unicodeSure              // the same, and q is where any of them leads
	lowSlash                 // after the escape of a high surrogate: a backslash must follow
	lowU                     // and a u
	lowHex                   // and the digits of a low surrogate
)

// longestPlain is how many plain characters a token may have to be found in a list by their number (trie.go).
const longestPlain = 16

func newLetter(l *Lexeme, number int) *letter {
	x := &letter{Lexeme: l, number: number}
	x.safe = l.Lang.KillDistance([]rune{' ', '"', '"' + 1, '\\', '\\' + 1}, longestPlain+1)
	return x
}

// some says whether there is a word that is not empty.
func (l *letter) some() bool {
	if l.Spelling == JSON {
		return true
	}
	found := false
	l.Lang.Runs(l.Lang.Start(), func(_, _ rune, _ int32) { found = true })
	return found && l.Max != 0
}

func (l *letter) first() place {
	if l.Spelling == JSON {
		return place{q: l.Lang.Start(), phase: opening}
	}
	return place{q: l.Lang.Start(), phase: fresh}
}

// count is n after one character more.
func (l *letter) count(n int32) int32 {
	if l.Max < 0 && int(n) >= l.Min {
		return n
	}
	return n + 1
}

func (l *letter) full(n int32) bool { return l.Max >= 0 && int(n) >= l.Max }

// after is the place after the characters lo to hi, all of which lead to q.
func (l *letter) after(at place, q int32) place { return place{q: q, n: l.count(at.n)} }

// letterState returns the state of a place.
func (p *Program) letterState(l *letter, at place) int32 {
	p.key = append(p.key[:0], 'l', byte(at.phase), at.left)
	p.key = binary.LittleEndian.AppendUint32(p.key, uint32(at.q))
	p.key = binary.LittleEndian.AppendUint32(p.key, uint32(at.n))
	p.key = binary.LittleEndian.AppendUint32(p.key, at.sum)
	p.key = binary.LittleEndian.AppendUint32(p.key, uint32(l.number))
	if s, ok := p.states.known[string(p.key)]; ok {
		return s
	}
	return p.newState(state{letter: l, place: at})
}

// expand calls yield for the bytes that may follow, ascending, and says whether the word may end.
func (l *letter) expand(at place, yield func(lo, hi byte, to place)) (accept bool) {
	switch at.phase {
	case between:
		return l.character(at, yield)
	case fresh:
		l.character(at, yield)
	case opening:
		yield('"', '"', place{q: at.q, n: at.n})
	case closed:
		return true
	case trailing, decided:
		l.trail(at, yield)
	case escape:
		l.escaped(at, yield)
	case unicode, unicodeSure, lowHex:
		l.digits(at, yield)
	case lowSlash:
		at.phase = lowU
		yield('\\', '\\', at)
	case lowU:
		at.phase, at.left = lowHex, 4
		yield('u', 'u', at)
	}
	return false
}

// joined merges ranges of bytes with equal ends before it yields them.
type joined struct {
	lo, hi int
	to     place
	yield  func(lo, hi byte, to place)
}

func (j *joined) add(b int, to place) {
	if j.lo >= 0 && j.hi+1 == b && j.to == to {
		j.hi = b
		return
	}
	j.flush()
	j.lo, j.hi, j.to = b, b, to
}

func (j *joined) flush() {
	if j.lo >= 0 {
		j.yield(byte(j.lo), byte(j.hi), j.to)
	}
	j.lo = -1
}

// character begins a character or ends the word.
func (l *letter) character(at place, yield func(lo, hi byte, to place)) (accept bool) {
	ends := l.Lang.Final(at.q) && int(at.n) >= l.Min
	j := joined{lo: -1, yield: yield}
	for b := 0; b < 0x80; b++ {
		if l.Spelling == JSON {
			switch {
			case b < ' ':
				continue
			case b == '"':
				if ends {
					j.add(b, place{phase: closed})
				}
				continue
			case b == '\\':
				if !l.full(at.n) && l.leads(at.q, 0, utf8.MaxRune) {
					j.add(b, place{q: at.q, n: at.n, phase: escape})
				}
				continue
			}
		}
		if q := l.Lang.Step(at.q, rune(b)); q >= 0 && !l.full(at.n) {
			j.add(b, l.after(at, q))
		}
	}
	for b := 0xC2; b <= 0xF4 && !l.full(at.n); b++ {
		switch {
		case b < 0xE0:
			l.lead(at, &j, b, 1, uint32(b&0x1F))
		case b < 0xF0:
			l.lead(at, &j, b, 2, uint32(b&0x0F))
		default:
			l.lead(at, &j, b, 3, uint32(b&0x07))
		}
	}
	j.flush()
	return ends && l.Spelling == Plain
}

// lead adds byte b to edges if a character may go on with it: left bytes more, sum its bits so far.
func (l *letter) lead(at place, j *joined, b int, left uint8, sum uint32) {
	lo, hi, whole := scalars(rune(sum)<<(6*left), rune(sum+1)<<(6*left)-1, left)
	if lo > hi {
		return
	}
	q, same := l.Lang.Uniform(at.q, lo, hi)
	switch {
	case !same && !l.leads(at.q, lo, hi):
	case same && q < 0:
	case left == 0:
		j.add(b, l.after(at, q))
	case same && whole:
		j.add(b, place{q: q, n: at.n, phase: decided, left: left})
	default:
		j.add(b, place{q: at.q, n: at.n, phase: trailing, left: left, sum: sum})
	}
}

// leads says whether any character from lo to hi goes on from q.
func (l *letter) leads(q int32, lo, hi rune) bool {
	found := false
	l.Lang.Runs(q, func(a, b rune, _ int32) { found = found || a <= hi && b >= lo })
	return found
}

// scalars narrows a block of numbers whose UTF-8 form lacks left bytes to characters whose shortest form it is.
func scalars(lo, hi rune, left uint8) (first, last rune, whole bool) {
	first, last = lo, min(hi, utf8.MaxRune)
	if first < 0x800 && last >= 0x800 { // E0: shorter ones have two bytes
		first = 0x800
	}
	if first < 0x10000 && last > 0x10000 && left == 3 { // F0
		first = 0x10000
	}
	if first <= 0xDFFF && last >= 0xD800 { // ED
		if first >= 0xD800 {
			return 1, 0, false
		}
		last = 0xD7FF
	}
	return first, last, first == lo && last == hi
}

// trail takes a byte that is not a character's first.
func (l *letter) trail(at place, yield func(lo, hi byte, to place)) {
	if at.phase == decided {
		to := place{q: at.q, n: at.n, phase: decided, left: at.left - 1}
		if at.left == 1 {
			to = l.after(at, at.q)
		}
		yield(0x80, 0xBF, to)
		return
	}
	j := joined{lo: -1, yield: yield}
	for b := 0x80; b <= 0xBF; b++ {
		sum := at.sum<<6 | uint32(b&0x3F)
		if at.left == 2 && sum < 0x800>>6 || at.left == 3 && sum < 0x10000>>12 {
			continue // a longer form than need be
		}
		l.lead(at, &j, b, at.left-1, sum)
	}
	j.flush()
}

// escaped takes what follows a backslash.
func (l *letter) escaped(at place, yield func(lo, hi byte, to place)) {
	for _, e := range [...]struct {
		b byte
		r rune
	}{{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}} {
		if q := l.Lang.Step(at.q, e.r); q >= 0 {
			yield(e.b, e.b, l.after(at, q))
		}
	}
	at.phase, at.left, at.sum = unicode, 4, 0
	yield('u', 'u', at)
}

// digits takes a hexadecimal digit of an escape.
func (l *letter) digits(at place, yield func(lo, hi byte, to place)) {
	j := joined{lo: -1, yield: yield}
	for _, b := range "0123456789ABCDEFabcdef" {
		d := uint32(b - '0')
		if b >= 'A' {
			d = uint32(b&0xF) + 9
		}
		if to, ok := l.digit(at, d); ok {
			j.add(int(b), to)
		}
	}
	j.flush()
}

func (l *letter) digit(at place, d uint32) (place, bool) {
	left := at.left - 1
	if at.phase == unicodeSure {
		if left == 0 {
			return l.after(at, at.q), true
		}
		return place{q: at.q, n: at.n, phase: unicodeSure, left: left}, true
	}
	sum := at.sum<<4 | d
	lo, hi := rune(sum)<<(4*left), rune(sum+1)<<(4*left)-1
	if at.phase == lowHex { // sum: 1, ten bits of the high surrogate, the digits
		code := sum & (1<<(4*(4-left)) - 1)
		if a, b := code<<(4*left), (code+1)<<(4*left)-1; a > 0xDFFF || b < 0xDC00 {
			return place{}, false
		}
		high := rune(sum >> (4 * (4 - left)) & 0x3FF)
		lo = 0x10000 + high<<10 + max(rune(code)<<(4*left), 0xDC00) - 0xDC00
		hi = 0x10000 + high<<10 + min(rune(code+1)<<(4*left)-1, 0xDFFF) - 0xDC00
	}
	at.left, at.sum = left, sum
	if at.phase == unicode && left == 0 && sum >= 0xD800 && sum <= 0xDBFF {
		base := rune(0x10000 + (sum-0xD800)<<10)
		return place{q: at.q, n: at.n, phase: lowSlash, sum: 1<<10 | sum - 0xD800}, l.leads(at.q, base, base+0x3FF)
	}
	q, same := l.Lang.Uniform(at.q, lo, hi)
	if left == 0 {
		return l.after(at, q), same && q >= 0 && (at.phase == lowHex || lo < 0xD800 || lo > 0xDFFF)
	}
	if same && at.phase == unicode && (lo > 0xDFFF || hi < 0xD800) {
		return place{q: q, n: at.n, phase: unicodeSure, left: left}, q >= 0
	}
	if from, to := max(lo, 0xD800), min(hi, 0xDBFF); at.phase == unicode && from <= to &&
		l.leads(at.q, 0x10000+(from-0xD800)<<10, 0x10000+(to-0xD800)<<10+0x3FF) {
		return at, true // as the first half of two
	}
	return at, l.leads(at.q, lo, hi)
}
