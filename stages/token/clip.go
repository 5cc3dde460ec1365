package token

import (
	"errors"
	"unicode"

	"github.com/sluice-ai/sluice/internal/meta"
)

// clip is CLIP's byte-level BPE, as FLUX.1's first text encoder takes it: text is lower-case, white space parts words
// and is lost, and symbols that end a word are others than those within words. Unlike transformers' it composes no
// characters (NFC), as other kinds here do not. A byte without a token is left out.
type clip struct {
	bpe
	last [256]ID // id of each byte at the end of a word, or none
}

// wordEnd marks, in CLIP's files, what ends a word.
const wordEnd = "</w>"

// clipRules are 's|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+.
func clipRules() []rule {
	return []rule{words(literal("'s"), literal("'t"), literal("'re"), literal("'ve"), literal("'m"), literal("'ll"),
		literal("'d"), run(letter), upTo(1, number), run(^(space | letter | number)))}
}

func (c *clip) encode(dst []ID, text string, _ bool, s *scratch) ([]ID, error) {
	s.buf = s.buf[:0]
	for i := 0; i < len(text); {
		r, n := decode(text[i:])
		i += n
		if r == 'İ' { // the one character with a lower case of two
			s.buf = append(s.buf, "i\u0307"...)
			continue
		}
		s.buf = encodeRune(s.buf, unicode.ToLower(r))
	}
	text = string(s.buf)
	t := chars{text: text, table: c.table}
	from, asked := 0, 0
	for _, end := range split(c.rules, t, s) {
		if _, is, _ := t.at(from); is&space == 0 {
			if err := s.admits(from, end, &asked); err != nil {
				return dst, err
			}
			dst = c.word(dst, text[from:end], &s.chain)
		}
		from = end
	}
	return dst, nil
}

// word appends the ids of one word.
func (c *clip) word(dst []ID, word string, chain *chain) []ID {
	chain.reset(len(word))
	for i := range len(word) - 1 {
		chain.add(i, i+1, c.bytes[word[i]])
	}
	at := len(word) - 1
	chain.add(at, at+1, c.last[word[at]])
	chain.merge(word, &c.bpe)
	for i := int32(0); i >= 0; i = chain.symbols[i].next {
		if id := chain.symbols[i].id; id >= 0 && id < c.size {
			dst = append(dst, id)
		}
	}
	return dst
}

// planClip reads the keys of a CLIP vocabulary.
func (v *Vocab) planClip(m *meta.Map) (func() error, error) {
	merges, err := m.Strings(prefix + "merges")
	if err != nil && !errors.Is(err, meta.ErrMissing) {
		return nil, err
	}
	c := &clip{bpe: bpe{table: newClasses(), rules: clipRules(), size: ID(len(v.text))}}
	v.kind, v.addBOS, v.addEOS = c, true, true
	return func() error { return v.buildClip(c, merges) }, nil
}

func (v *Vocab) buildClip(c *clip, merges []string) error {
	letters := newAlphabet()
	var buf []byte
	for id, text := range v.text {
		rest, ends := text, false
		if n := len(text) - len(wordEnd); n > 0 && text[n:] == wordEnd {
			rest, ends = text[:n], true
		}
		raw, ok := letters.decode(buf[:0], rest)
		if ends {
			raw = append(raw, ' ')
		}
		buf = raw
		if err := v.addPiece(ID(id), c.piece(v.attr[id], text, raw, ok)); err != nil {
			return err
		}
	}
	s := symbols{vocab: v, extra: map[string]ID{}}
	c.indexMerges(merges, &s)
	for i := range c.last {
		c.bytes[i], c.last[i] = none, none
	}
	for r, b := range letters {
		if b >= 0 {
			c.bytes[b], c.last[b] = s.known(string(rune(r))), s.known(string(rune(r))+wordEnd)
		}
	}
	return nil
}
