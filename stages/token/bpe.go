package token

import "unicode/utf8"

// bpe merges the bytes (or characters) of words by rank.
type bpe struct {
	table      *classes
	rules      []rule
	merges     map[uint64]merge // by ids of left and right
	ids        map[string]ID    // with wholeWords or chars: tokens, and with chars other symbols, by their bytes
	size       ID               // ids below are tokens, others what only merges name
	wholeWords bool             // a word that is a token is taken as it is
	bytes      [256]ID          // id of each byte alone, or none
	glue       glue             // where chars
	fallback   [256]ID          // for each byte of what is not a token, or none
	chars      bool             // symbols begin as characters and not bytes, spaces are U+2581
	gemma4     bool             // with chars: a run of newlines that is a token is taken as it is, BOS is always added
}

// merge is the result of merging a pair, with its rank.
type merge struct {
	rank int32
	id   ID
}

func (b *bpe) join(_ string, left, right *symbol) (int32, ID, bool) {
	m, ok := b.merges[pairKey(left.id, right.id)]
	return m.rank, m.id, ok
}

func pairKey(left, right ID) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func (b *bpe) encode(dst []ID, text string, _ bool, s *scratch) ([]ID, error) {
	if b.chars {
		s.buf = escapeSpaces(s.buf[:0], text)
		text = string(s.buf)
	}
	if !utf8.ValidString(text) {
		s.buf = sanitize(s.buf[:0], text)
		text = string(s.buf)
	}
	from, asked := 0, 0
	for _, end := range split(b.rules, chars{text: text, table: b.table}, s) {
		for from < end {
			next := end
			if b.chars {
				next = b.glue.wordEnd(text[:end], from)
			}
			if err := s.admits(from, next, &asked); err != nil {
				return dst, err
			}
			dst = b.word(dst, text[from:next], &s.chain)
			from = next
		}
	}
	return dst, nil
}

// word appends the ids of one word.
func (b *bpe) word(dst []ID, word string, c *chain) []ID {
	if b.wholeWords || b.gemma4 && word[0] == '\n' {
		if id, ok := b.ids[word]; ok && id < b.size {
			return append(dst, id)
		}
	}
	c.reset(len(word))
	for i := 0; i < len(word); {
		if !b.chars {
			c.add(i, i+1, b.bytes[word[i]])
			i++
			continue
		}
		end := min(len(word), i+utf8Len(word[i]))
		id, ok := b.ids[word[i:end]]
		if !ok {
			id = none
		}
		c.add(i, end, id)
		i = end
	}
	c.merge(word, b)
	for i := int32(0); i >= 0; i = c.symbols[i].next {
		s := &c.symbols[i]
		if s.id >= 0 && s.id < b.size {
			dst = append(dst, s.id)
			continue
		}
		for _, ch := range []byte(word[s.start:s.end]) {
			if id := b.fallback[ch]; id != none {
				dst = append(dst, id)
			}
		}
	}
	return dst
}

// escapeSpaces appends text with U+2581 for each space.
func escapeSpaces(dst []byte, text string) []byte {
	for i := range len(text) {
		if text[i] == ' ' {
			dst = append(dst, "\u2581"...)
		} else {
			dst = append(dst, text[i])
		}
	}
	return dst
}
