package lang

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Full is the language of the texts that an expression in RE2's syntax matches from end to end.
func Full(expr string, left *Budget) (*DFA, error) { return compile(expr, false, left) }

// Search is the language of the texts in which an expression matches somewhere.
func Search(expr string, left *Budget) (*DFA, error) { return compile(expr, true, left) }

func compile(expr string, search bool, left *Budget) (*DFA, error) {
	if len(expr) > 1<<16 {
		return nil, fmt.Errorf("an expression of %d bytes: want at most %d", len(expr), 1<<16)
	}
	if err := left.Take(parsing(expr)); err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, shortened(err)
	}
	if err := left.Take(1000 + 20*instructions(tree)); err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	b := builder{prog: prog, search: search, left: left, known: map[string]int32{}}
	if err := b.letters(); err != nil {
		return nil, err
	}
	return b.build()
}

// shortened is the error of an expression that was not understood, without all of it.
func shortened(err error) error {
	const most = 80
	if e := (*syntax.Error)(nil); errors.As(err, &e) && len(e.Expr) > most {
		e.Expr = strings.ToValidUTF8(e.Expr[:most], "") + "…"
	}
	return err
}

// parsing is what reading an expression costs. Classes by a Unicode name are long lists, and where case does not
// matter each character of a range is looked up.
func parsing(expr string) (steps int) {
	const name, folded = 500, 5000
	steps = len(expr) + name*(strings.Count(expr, `\p`)+strings.Count(expr, `\P`))
	if ignoresCase(expr) {
		steps += folded * strings.Count(expr, "-")
	}
	return steps
}

// ignoresCase says whether an expression may have the flag i somewhere.
func ignoresCase(expr string) bool {
	for {
		_, after, found := strings.Cut(expr, "(?")
		if !found {
			return false
		}
		flags := strings.TrimLeft(after, "imsU-")
		if strings.Contains(after[:len(after)-len(flags)], "i") {
			return true
		}
		expr = after
	}
}

// instructions is how many a tree compiles to at most. It is known before anything of that size is made.
func instructions(tree *syntax.Regexp) (n int) {
	const most = 1 << 24
	for _, sub := range tree.Sub {
		n = min(n+1+instructions(sub), most)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		n = len(tree.Rune)
	case syntax.OpRepeat:
		n = min(n*max(tree.Max, tree.Min, 1), most)
	}
	return n + 1
}

// builder turns a program of regexp/syntax into an automaton: a state is a set of instructions that wait for a
// character, and what the character before it was, where an assertion asks for that.
type builder struct {
	prog    *syntax.Prog
	search  bool // a match may begin at any character and end at any
	asserts bool // the program has ^, $, \b or the like
	left    *Budget
	dfa     DFA
	takes   [][]bool // [pc]: by class, whether the instruction takes it; instructions of equal sets share one
	sample  []rune   // a character of each class
	known   map[string]int32
	queue   []position
	mark    []int // by pc: the number of the last walk that met it
	walk    int
}

// position is a state: instructions before the empty ones that lead on, and the character before.
type position struct {
	pcs    []uint32
	before rune // -1: none
	all    bool // whatever follows, it has matched
}

// letters cuts the alphabet by the classes that the program names.
func (b *builder) letters() error {
	sets, of := map[string][]rune{}, make([]string, len(b.prog.Inst))
	keys := map[*rune]string{} // of lists that many instructions share
	var starts []rune
	for pc := range b.prog.Inst {
		in := &b.prog.Inst[pc]
		if in.Op == syntax.InstEmptyWidth {
			b.asserts = true
		}
		ranges, ok := takes(in)
		if !ok {
			continue
		}
		of[pc] = keyOf(ranges, keys)
		if _, ok := sets[of[pc]]; !ok {
			sets[of[pc]] = ranges
			for i := 0; i < len(ranges); i += 2 {
				starts = append(starts, ranges[i], ranges[i+1]+1)
			}
		}
	}
	if b.asserts {
		starts = append(starts, '\n', '\n'+1, '0', '9'+1, 'A', 'Z'+1, '_', '_'+1, 'a', 'z'+1)
	}
	if err := b.left.Take((1 + len(starts)) * (1 + len(sets)) / 4); err != nil {
		return err
	}
	ordered := make([][]rune, 0, len(sets))
	for _, ranges := range sets {
		ordered = append(ordered, ranges)
	}
	b.dfa.alphabet = cut(starts, func(dst []byte, r rune) []byte {
		for _, ranges := range ordered {
			dst = append(dst, truth(within(ranges, r)))
		}
		return append(dst, truth(b.asserts && r == '\n'), truth(b.asserts && syntax.IsWordChar(r)))
	})
	b.sample = make([]rune, b.dfa.classes)
	for i, c := range b.dfa.class {
		if c != noClass {
			b.sample[c] = b.dfa.from[i]
		}
	}
	b.table(of, sets)
	return nil
}

// keyOf tells lists of ranges apart by what they say.
func keyOf(ranges []rune, known map[*rune]string) string {
	if len(ranges) == 0 {
		return ""
	}
	key, ok := known[&ranges[0]]
	if !ok {
		var list []byte
		for _, r := range ranges {
			list = binary.LittleEndian.AppendUint32(list, uint32(r))
		}
		key = string(list)
		known[&ranges[0]] = key
	}
	return key
}

// table notes which classes each instruction takes, given the key of its set and the sets.
func (b *builder) table(of []string, sets map[string][]rune) {
	b.takes, b.mark = make([][]bool, len(b.prog.Inst)), make([]int, len(b.prog.Inst))
	byClass := map[string][]bool{}
	for pc, key := range of {
		if _, ok := sets[key]; !ok {
			continue
		}
		if byClass[key] == nil {
			list := make([]bool, b.dfa.classes)
			for c, r := range b.sample {
				list[c] = within(sets[key], r)
			}
			byClass[key] = list
		}
		b.takes[pc] = byClass[key]
	}
}

// takes lists the characters of an instruction as pairs of first and last.
func takes(in *syntax.Inst) ([]rune, bool) {
	switch in.Op {
	case syntax.InstRune1, syntax.InstRune:
		if len(in.Rune) != 1 {
			return in.Rune, true
		}
		list := []rune{in.Rune[0], in.Rune[0]}
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
				list = append(list, r, r)
			}
		}
		return list, true
	case syntax.InstRuneAny:
		return []rune{0, unicode.MaxRune}, true
	case syntax.InstRuneAnyNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}, true
	}
	return nil, false
}

func within(ranges []rune, r rune) bool {
	if len(ranges) <= 8 { // the cases of a letter are not in order
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	lo, hi := 0, len(ranges)/2
	for lo < hi {
		if mid := (lo + hi) / 2; ranges[2*mid+1] < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(ranges)/2 && ranges[2*lo] <= r
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (b *builder) build() (*DFA, error) {
	b.state(position{pcs: []uint32{uint32(b.prog.Start)}, before: -1})
	for q := 0; q < len(b.queue); q++ {
		if len(b.queue) > b.left.States {
			return nil, &Exhausted{"states"}
		}
		known := len(b.queue)
		if err := b.arrows(q, b.queue[q]); err != nil {
			return nil, err
		}
		if err := b.left.Take((len(b.queue) - known) * (1 + b.dfa.classes)); err != nil { // those that are new
			return nil, err
		}
	}
	return b.dfa.trim(), nil
}

// arrows computes what follows state q.
func (b *builder) arrows(q int, p position) error {
	if p.all {
		b.dfa.final[q] = true
		for c := range b.dfa.classes {
			b.dfa.next[q*b.dfa.classes+c] = int32(q)
		}
		return nil
	}
	_, matched, err := b.closure(p, -1)
	if err != nil {
		return err
	}
	b.dfa.final[q] = matched
	var waiting []uint32
	if !b.asserts {
		if waiting, matched, err = b.closure(p, 'a'); err != nil {
			return err
		}
	}
	for c, r := range b.sample {
		if b.asserts { // what may be passed depends on the character that comes
			if waiting, matched, err = b.closure(p, r); err != nil {
				return err
			}
		}
		to := position{before: -1, all: b.search && matched}
		if b.asserts {
			to.before = kind(r)
		}
		for _, pc := range waiting {
			if err := b.left.Take(1); err != nil {
				return err
			}
			if b.takes[pc][c] {
				to.pcs = append(to.pcs, b.prog.Inst[pc].Out)
			}
		}
		if b.search {
			to.pcs = append(to.pcs, uint32(b.prog.Start))
		}
		if len(to.pcs) > 0 || to.all {
			s := b.state(to)
			b.dfa.next[q*b.dfa.classes+c] = s
		}
	}
	return nil
}

// kind is a character for all that assertions do not tell apart.
func kind(r rune) rune {
	switch {
	case r == '\n':
		return '\n'
	case syntax.IsWordChar(r):
		return 'a'
	}
	return ' '
}

// closure follows the instructions that take no character, before character after; -1 is the end of the text.
func (b *builder) closure(p position, after rune) (waiting []uint32, matched bool, err error) {
	b.walk++
	stack := slices.Clone(p.pcs)
	slices.Reverse(stack)
	given := syntax.EmptyOpContext(p.before, after)
	for len(stack) > 0 {
		if err := b.left.Take(1); err != nil {
			return nil, false, err
		}
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if b.mark[pc] == b.walk {
			continue
		}
		b.mark[pc] = b.walk
		switch in := &b.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^given == 0 {
				stack = append(stack, in.Out)
			}
		case syntax.InstMatch:
			matched = true
		case syntax.InstFail:
		default:
			waiting = append(waiting, pc)
		}
	}
	return waiting, matched, nil
}

// state numbers a position.
func (b *builder) state(p position) int32 {
	if p.all {
		p = position{all: true}
	}
	slices.Sort(p.pcs)
	p.pcs = slices.Compact(p.pcs)
	key := binary.AppendVarint(nil, int64(p.before))
	for _, pc := range p.pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	if q, ok := b.known[string(key)]; ok {
		return q
	}
	q := b.dfa.add()
	b.known[string(key)] = q
	b.queue = append(b.queue, p)
	return q
}
