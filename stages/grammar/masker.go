package grammar

import (
	"encoding/binary"
	"slices"
)

// Masker finds the tokens that may follow. What depends on a state alone, and not on the stack below its rule, is
// found once and kept (entry); what a token does behind the end of a rule is found anew for each stack. One
// goroutine at a time may use it.
type Masker struct {
	p       *Program
	t       *Trie
	close   closer
	entries map[int32]*entry
	taken   int      // bytes of all entries
	arena   []config // sets of configs, one for each depth of a walk
	begin   []int32  // where the set at each depth of a walk begins in arena
	recent  [mostRecent]remembered
	turn    int
	key     []byte
	base    []config // of the walks behind exits
}

// entry is the tokens that may follow in a state, while its rule goes on.
type entry struct {
	plain int      // all plain tokens of up to so many characters may follow
	bits  []uint64 // more tokens: as bits, or
	ids   []int32  // as a list
	nodes []branch // the trie that exits are nodes of
	exits []int32  // nodes at which the rule ends, with more below
	below int      // number of nodes below exits; one below several of them counts as often
}

// remembered is a mask by the matcher's configs: inside of a string these stay the same from token to token.
type remembered struct {
	key  []byte
	mask []uint64
}

const (
	mostRecent = 16
	mostTaken  = 16 << 20 // bytes of entries, above which all are dropped
)

// Masker makes a masker for a vocabulary.
func (p *Program) Masker(t *Trie) *Masker {
	return &Masker{p: p, t: t, close: closer{p: p}, entries: map[int32]*entry{}}
}

// Mask sets the bits of the tokens that may follow where m is, and clears all others. The ends of generation are among
// them exactly where the text may end. A text that is complete and cannot go on has only those.
func (k *Masker) Mask(m *Matcher, mask []uint64) error {
	k.key = k.key[:0]
	for _, x := range m.set {
		k.key = binary.LittleEndian.AppendUint32(k.key, uint32(k.like(x.state)))
		k.key = binary.LittleEndian.AppendUint32(k.key, uint32(x.stack))
	}
	for i := range k.recent {
		if r := &k.recent[i]; r.mask != nil && string(r.key) == string(k.key) {
			copy(mask, r.mask)
			return nil
		}
	}
	clear(mask)
	k.p.allow(max(k.p.limits.Mask, k.p.limits.Node*len(k.t.whole)))
	for _, x := range m.set {
		if s := k.p.expand(x.state); len(s.edges) > 0 {
			k.merge(mask, k.entry(k.like(x.state)), x)
		}
	}
	if m.Done() {
		for _, id := range k.t.eog {
			set(mask, id)
		}
	}
	if err := k.p.grown(); err != nil {
		return err
	}
	r := &k.recent[k.turn]
	k.turn = (k.turn + 1) % mostRecent
	r.key = append(r.key[:0], k.key...)
	if r.mask == nil {
		r.mask = make([]uint64, len(mask))
	}
	copy(r.mask, mask)
	return nil
}

// like returns a state with the same tokens: in a string with bounds on its length, far from both, the number of
// characters does not matter.
func (k *Masker) like(id int32) int32 {
	s := &k.p.states.list[id]
	if s.letter == nil || s.place.phase != between {
		return id
	}
	l, at, far := s.letter, s.place, int32(k.t.longest)
	switch least, most := int32(l.Min), int32(l.Max); {
	case l.Max >= 0 && most-at.n <= far:
		return id
	case at.n >= least:
		at.n = least
	case least-at.n > far:
		at.n = 0
	default:
		return id
	}
	return k.p.letterState(l, at)
}

// merge adds the entry of a config to a mask, with what follows behind its exits.
func (k *Masker) merge(mask []uint64, e *entry, x config) {
	k.p.steps += len(mask)/16 + len(e.ids)/8
	if e.plain > 0 {
		or(mask, k.t.plain[e.plain])
	}
	if e.bits != nil {
		or(mask, e.bits)
	}
	for _, id := range e.ids {
		set(mask, id)
	}
	switch {
	case len(e.exits) == 0 || x.stack == stackEmpty:
		return
	case e.below > len(e.nodes): // the rule may end nearly anywhere: what is behind overlaps, and is walked once
		k.walk(e.nodes, 0, int32(len(e.nodes)), []config{x}, func(id int32) { set(mask, id) }, func(int32) {})
		return
	}
	k.base = k.close.pop(k.base[:0], 0, x.stack)
	k.base = k.close.complete(k.base, 0)
	for _, i := range e.exits {
		k.walk(e.nodes, i+1, e.nodes[i].end, k.base, func(id int32) { set(mask, id) }, func(int32) {})
	}
}

func or(mask, more []uint64) {
	more = more[:len(mask)]
	for i := range mask {
		mask[i] |= more[i]
	}
}

// entry returns what may follow in a state, which has edges.
func (k *Masker) entry(id int32) *entry {
	if e := k.entries[id]; e != nil {
		return e
	}
	e := &entry{nodes: k.t.whole}
	if s := &k.p.states.list[id]; s.letter != nil && s.letter.Spelling == JSON && s.place.phase == between {
		safe := s.letter.safe[s.place.q]
		if room := s.letter.Max - int(s.place.n); s.letter.Max >= 0 && safe > longestPlain {
			safe = min(room, longestPlain+1)
			e.plain, e.nodes = min(safe, longestPlain), k.t.rest // beyond room, none
		} else if safe > longestPlain {
			e.plain, e.nodes = longestPlain, k.t.rest
		}
	}
	k.walk(e.nodes, 0, int32(len(e.nodes)), []config{{id, stackExit}}, func(id int32) { e.ids = append(e.ids, id) },
		func(i int32) {
			e.exits = append(e.exits, i)
			e.below += int(e.nodes[i].end-i) - 1
		})
	if k.p.over() {
		return e // not all of it: nobody gets to see the mask
	}
	if len(e.ids) > k.t.size/32 {
		e.bits = make([]uint64, k.t.Words())
		for _, id := range e.ids {
			set(e.bits, id)
		}
		e.ids = nil
	}
	e.ids, e.exits = slices.Clip(e.ids), slices.Clip(e.exits)
	k.taken += 8*len(e.bits) + 4*(len(e.ids)+len(e.exits)) + 200
	if k.taken > mostTaken {
		clear(k.entries)
		k.taken = 0
	}
	k.entries[id] = e
	return e
}

// walk visits the nodes from ≤ i < to of a trie, which have one parent; base is the configs there. It calls token
// for each token that may follow, and exit for each node with others below at which the rule that the walk began in
// may end.
func (k *Masker) walk(nodes []branch, from, to int32, base []config, token, exit func(int32)) {
	if from >= to {
		return
	}
	k.arena = append(k.arena[:0], base...)
	k.begin = append(k.begin[:0], 0, int32(len(base))) // begin[d] to begin[d+1]: the set d bytes below base
	above := nodes[from].depth - 1
	for i := from; i < to; {
		if k.p.over() || k.p.size > k.p.limits.Live {
			return // the mask is an error
		}
		n := &nodes[i]
		d := int(n.depth - above)
		k.begin = k.begin[:d+1]
		k.arena = k.arena[:k.begin[d]]
		left := k.step(int(k.begin[d-1]), int(k.begin[d]), n.b)
		here := len(k.arena) - int(k.begin[d])
		if here == 0 && !left {
			i = n.end
			continue
		}
		switch {
		case n.token >= 0:
			token(n.token)
		case n.token < none:
			for _, id := range k.t.twins[-2-n.token] {
				token(id)
			}
		}
		if left && n.end > i+1 {
			exit(i)
		}
		if here == 0 {
			i = n.end
			continue
		}
		k.begin = append(k.begin, int32(len(k.arena)))
		i++
	}
}

// step appends to arena the configs that those of arena[from:to] lead to by a byte, and says whether the rule that
// the walk began in may have ended with it.
func (k *Masker) step(from, to int, b byte) (left bool) {
	k.p.steps += to - from
	for i := from; i < to; i++ {
		x := k.arena[i]
		if s := k.p.step(x.state, b); s != none {
			k.arena = add(k.arena, to, config{s, x.stack})
			k.p.steps += (len(k.arena) - to) / 16
		}
	}
	if len(k.arena) == to {
		return false
	}
	if len(k.arena) == to+1 { // most often: nothing ends or begins here
		if s := k.p.expand(k.arena[to].state); !s.accept && len(s.calls) == 0 {
			return false
		}
	}
	k.arena = k.close.complete(k.arena, to)
	for i := to; i < len(k.arena); i++ {
		if k.arena[i].state == stateExit {
			last := len(k.arena) - 1
			k.arena[i] = k.arena[last]
			k.arena = k.arena[:last]
			return true
		}
	}
	return false
}
