package token

import (
	"cmp"
	"slices"
)

// fragment is a stretch of text, or a special token that was found in it.
type fragment struct {
	start, end int
	id         ID // none for text
}

// cutter finds special tokens in text as llama.cpp does: longer ones first wherever they stand, then from left to
// right. (llama.cpp searches the text once for each token, which is slow with thousands of them; here one walk finds
// which lengths occur, and only those are searched.)
type cutter struct {
	tokens  trie
	starts  [256]bool // bytes that a token begins with
	longest int
	attr    []attr
}

func newCutter(text []string, attrs []attr, chosen func(attr) bool) cutter {
	var keys []trieKey
	c := cutter{attr: attrs}
	for id, a := range attrs {
		if chosen(a) && text[id] != "" {
			keys = append(keys, trieKey{text[id], ID(id)})
			c.starts[text[id][0]] = true
			c.longest = max(c.longest, len(text[id]))
		}
	}
	c.tokens = newTrie(keys)
	return c
}

// fragments cuts text, unless it is stopped. The slice is valid until s is used for another text.
func (c *cutter) fragments(text string, s *scratch) []fragment {
	if text == "" {
		return nil
	}
	parts := append(s.parts[0][:0], fragment{0, len(text), none})
	spare := s.parts[1]
	for _, n := range c.lengths(text, s) {
		if s.stopped() {
			break
		}
		spare = spare[:0]
		for _, p := range parts {
			if p.id != none {
				spare = append(spare, p)
				continue
			}
			spare = c.cut(spare, text, p, n)
		}
		parts, spare = spare, parts
	}
	s.parts[0], s.parts[1] = parts, spare
	return parts
}

// lengths lists the lengths of the tokens that occur in text, longest first.
func (c *cutter) lengths(text string, s *scratch) []int {
	s.marked = slices.Grow(s.marked[:0], c.longest+1)[:c.longest+1]
	clear(s.marked)
	found := s.cuts[0][:0]
	for i := range len(text) {
		if !c.starts[text[i]] {
			continue
		}
		for node, j := int32(0), i; j < len(text); {
			if node = c.tokens.step(node, text[j]); node < 0 {
				break
			}
			j++
			if c.tokens.nodes[node].id != none && !s.marked[j-i] {
				s.marked[j-i] = true
				found = append(found, j-i)
			}
		}
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Compare(b, a) })
	s.cuts[0] = found
	return found
}

// cut appends the parts of p, cut at each token of n bytes.
func (c *cutter) cut(dst []fragment, text string, p fragment, n int) []fragment {
	start := p.start
	for i := start; i+n <= p.end; {
		id := none
		if c.starts[text[i]] {
			id = c.match(text[i : i+n])
		}
		if id == none {
			i++
			continue
		}
		left := i
		for c.attr[id]&leftStrip != 0 && left > start && isSpace(text[left-1]) {
			left--
		}
		if left > start {
			dst = append(dst, fragment{start, left, none})
		}
		dst = append(dst, fragment{i, i + n, id})
		i += n
		for c.attr[id]&rightStrip != 0 && i < p.end && isSpace(text[i]) {
			i++
		}
		start = i
	}
	if start < p.end {
		dst = append(dst, fragment{start, p.end, none})
	}
	return dst
}

// match returns the token that is exactly text.
func (c *cutter) match(text string) ID {
	node := int32(0)
	for i := range len(text) {
		if node = c.tokens.step(node, text[i]); node < 0 {
			return none
		}
	}
	return c.tokens.nodes[node].id
}

// isSpace reports whether b is white space for C's isspace in the "C" locale.
func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }
