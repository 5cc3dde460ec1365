package lang

import "encoding/binary"

// Any is the language of all texts.
func Any() *DFA {
	a := cut(nil, func(dst []byte, _ rune) []byte { return dst })
	return &DFA{alphabet: a, next: []int32{0}, final: []bool{true}}
}

// None is the language without words.
func None() *DFA {
	a := cut(nil, func(dst []byte, _ rune) []byte { return dst })
	return &DFA{alphabet: a, start: dead}
}

// And is the intersection.
func And(a, b *DFA, left *Budget) (*DFA, error) {
	return combine(a, b, left, func(x, y bool) bool { return x && y })
}

// Or is the union.
func Or(a, b *DFA, left *Budget) (*DFA, error) {
	return combine(a, b, left, func(x, y bool) bool { return x || y })
}

// Minus holds the words of a that b has not.
func Minus(a, b *DFA, left *Budget) (*DFA, error) {
	return combine(a, b, left, func(x, y bool) bool { return x && !y })
}

// Lengths is the language of the texts of min to max characters; a negative max is none.
func Lengths(min, max int, left *Budget) (*DFA, error) {
	d := Any()
	n := min + 1
	if max >= 0 {
		n = max + 1
	}
	if n > left.States {
		return nil, &Exhausted{"states"}
	}
	if err := left.Take(n); err != nil {
		return nil, err
	}
	if max >= 0 && max < min {
		return None(), nil
	}
	d.next, d.final = make([]int32, n), make([]bool, n)
	for i := range n {
		d.next[i], d.final[i] = int32(i+1), i >= min
	}
	if max >= 0 {
		d.next[max] = dead
	} else {
		d.next[min] = int32(min)
	}
	return d, nil
}

// Words is the language of the given words.
func Words(words []string, left *Budget) (*DFA, error) {
	var starts []rune
	steps := 1
	for _, w := range words {
		for _, r := range w {
			starts = append(starts, r, r+1)
			steps++
		}
	}
	if steps > left.States {
		return nil, &Exhausted{"states"}
	}
	used := map[rune]bool{}
	for i := 0; i < len(starts); i += 2 {
		used[starts[i]] = true
	}
	a := cut(starts, func(dst []byte, r rune) []byte {
		if used[r] {
			return binary.AppendVarint(dst, int64(r))
		}
		return dst
	})
	if err := left.Take(steps * a.classes); err != nil {
		return nil, err
	}
	d := &DFA{alphabet: a}
	d.add()
	for _, w := range words {
		q := int32(0)
		for _, r := range w {
			arrow := int(q)*a.classes + int(a.class[a.interval(r)])
			if d.next[arrow] == dead {
				d.next[arrow] = d.add()
			}
			q = d.next[arrow]
		}
		d.final[q] = true
	}
	return d.trim(), nil
}

// add appends a state without arrows.
func (d *DFA) add() int32 {
	for range d.classes {
		d.next = append(d.next, dead)
	}
	d.final = append(d.final, false)
	return int32(len(d.final) - 1)
}

// combine walks two automata side by side; keep says which pairs of final and not final are final.
func combine(a, b *DFA, left *Budget, keep func(x, y bool) bool) (*DFA, error) {
	type pair struct{ a, b int32 }
	d := &DFA{alphabet: cut(append(append([]rune(nil), a.from...), b.from...), func(dst []byte, r rune) []byte {
		dst = binary.AppendVarint(dst, int64(a.class[a.interval(r)]))
		return binary.AppendVarint(dst, int64(b.class[b.interval(r)]))
	})}
	if err := left.Take(len(d.from)); err != nil {
		return nil, err
	}
	classes := make([]pair, d.classes) // what a class of d is in a and b
	for i, c := range d.class {
		if c != noClass {
			classes[c] = pair{a.class[a.interval(d.from[i])], b.class[b.interval(d.from[i])]}
		}
	}
	known := map[pair]int32{}
	var queue []pair
	state := func(p pair) int32 {
		q, ok := known[p]
		if !ok {
			q = d.add()
			d.final[q] = keep(p.a != dead && a.final[p.a], p.b != dead && b.final[p.b])
			known[p] = q
			queue = append(queue, p)
		}
		return q
	}
	state(pair{a.start, b.start})
	for q := 0; q < len(queue); q++ {
		if len(queue) > left.States {
			return nil, &Exhausted{"states"}
		}
		p, before := queue[q], len(queue)
		for c, both := range classes {
			to := pair{a.step(p.a, both.a), b.step(p.b, both.b)}
			if to != (pair{dead, dead}) || keep(false, false) {
				s := state(to) // it may append to d.next
				d.next[q*d.classes+c] = s
			}
		}
		if err := left.Take((len(queue) - before) * (1 + d.classes)); err != nil { // those that are new
			return nil, err
		}
	}
	return d.trim(), nil
}

// trim takes away the states from which no word can be finished, and numbers the others anew.
func (d *DFA) trim() *DFA {
	n := len(d.final)
	into := make([][]int32, n)
	for q := range n {
		for _, to := range d.next[q*d.classes : (q+1)*d.classes] {
			if to != dead {
				if l := into[to]; len(l) == 0 || l[len(l)-1] != int32(q) {
					into[to] = append(l, int32(q))
				}
			}
		}
	}
	live := make([]bool, n)
	var queue []int32
	for q, f := range d.final {
		if f {
			live[q] = true
			queue = append(queue, int32(q))
		}
	}
	for len(queue) > 0 {
		q := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range into[q] {
			if !live[p] {
				live[p] = true
				queue = append(queue, p)
			}
		}
	}
	return d.keep(live)
}

func (d *DFA) keep(live []bool) *DFA {
	number, kept := make([]int32, len(live)), int32(0)
	for q := range live {
		number[q] = dead
		if live[q] {
			number[q] = kept
			kept++
		}
	}
	if d.start == dead || number[d.start] == dead {
		return None()
	}
	out := &DFA{alphabet: d.alphabet, start: number[d.start], final: make([]bool, 0, kept),
		next: make([]int32, 0, int(kept)*d.classes)}
	for q := range live {
		if !live[q] {
			continue
		}
		out.final = append(out.final, d.final[q])
		for _, to := range d.next[q*d.classes : (q+1)*d.classes] {
			if to != dead {
				to = number[to]
			}
			out.next = append(out.next, to)
		}
	}
	return out
}
