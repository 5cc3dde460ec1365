package grammar

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Trie is a vocabulary by the bytes of its tokens. It is not changed once it is made, and shared by all that use the
// vocabulary.
type Trie struct {
	size    int
	eog     []int32
	whole   []branch                   // of all tokens
	rest    []branch                   // of those that are not plain
	twins   [][]int32                  // tokens of equal bytes
	plain   [longestPlain + 1][]uint64 // the plain tokens of up to so many characters, as bits
	longest int                        // bytes of a token
}

// branch is a node of a trie: the nodes lie in the order of a walk, so that what is below one follows it.
type branch struct {
	end   int32 // behind all that is below
	token int32 // the token that ends here; none: no token does; less: -2-i, for all of twins[i]
	depth uint16
	b     byte
}

// mostBytes is how long tokens may be; longer ones are never allowed.
const mostBytes = 1 << 12

// NewTrie makes the trie of a vocabulary of size tokens. piece returns the bytes of one, none for those that must never
// stand in a text; eog are the tokens that end it.
func NewTrie(size int, piece func(id int32) []byte, eog []int32) *Trie {
	t := &Trie{size: size, eog: eog}
	ends := make([]bool, size)
	for _, id := range eog {
		if id >= 0 && int(id) < size {
			ends[id] = true
		}
	}
	all, rest := make([]leaf, 0, size), make([]leaf, 0, size/8)
	for i := range t.plain {
		t.plain[i] = make([]uint64, t.Words())
	}
	for id := range int32(size) {
		text := piece(id)
		if ends[id] || len(text) == 0 || len(text) > mostBytes {
			continue
		}
		t.longest = max(t.longest, len(text))
		all = append(all, leaf{text, id})
		if n := plain(text); n > 0 && n <= longestPlain {
			for ; n <= longestPlain; n++ {
				t.plain[n][id/64] |= 1 << (id % 64)
			}
		} else {
			rest = append(rest, leaf{text, id})
		}
	}
	t.whole, t.rest = t.build(all), t.build(rest)
	return t
}

type leaf struct {
	text []byte
	id   int32
}

// build makes the nodes of a list of tokens.
func (t *Trie) build(list []leaf) (nodes []branch) {
	slices.SortFunc(list, func(a, b leaf) int {
		if c := bytes.Compare(a.text, b.text); c != 0 {
			return c
		}
		return int(a.id - b.id)
	})
	var path []int32 // the nodes that are open, by depth
	var before []byte
	for _, e := range list {
		common := 0
		for common < len(before) && common < len(e.text) && before[common] == e.text[common] {
			common++
		}
		for _, n := range path[common:] {
			nodes[n].end = int32(len(nodes))
		}
		path = path[:common]
		for d := common; d < len(e.text); d++ {
			path = append(path, int32(len(nodes)))
			nodes = append(nodes, branch{token: none, depth: uint16(d + 1), b: e.text[d]})
		}
		t.put(&nodes[path[len(path)-1]], e.id)
		before = e.text
	}
	for _, n := range path {
		nodes[n].end = int32(len(nodes))
	}
	return nodes
}

// put adds a token to a node, which may have some already.
func (t *Trie) put(n *branch, id int32) {
	switch {
	case n.token == none:
		n.token = id
	case n.token >= 0:
		t.twins = append(t.twins, []int32{n.token, id})
		n.token = int32(-1 - len(t.twins))
	default:
		i := -2 - n.token
		t.twins[i] = append(t.twins[i], id)
	}
}

// plain counts the characters of a text of which each may stand anywhere in a JSON string; 0 for other texts.
func plain(text []byte) (n int) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size <= 1 || r < ' ' || r == '"' || r == '\\' {
			return 0
		}
		text = text[size:]
		n++
	}
	return n
}

// Words is the length of a mask: 64 tokens each.
func (t *Trie) Words() int { return (t.size + 63) / 64 }

// Size is the number of tokens.
func (t *Trie) Size() int { return t.size }

func set(mask []uint64, id int32) { mask[id>>6] |= 1 << (id & 63) }
