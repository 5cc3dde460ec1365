package token

import (
	"strings"
	"unicode"

	"github.com/sluice-ai/sluice/internal/meta"
)

// wordPiece is BERT's tokenizer: text is normalised and cut into words, and each word is covered by the longest
// tokens from left to right; a word that cannot be covered is unknown as a whole.
type wordPiece struct {
	table        *classes
	tokens       trie
	unk          ID
	lower        bool
	stripAccents bool
	bases        map[rune]rune // first character of a canonical decomposition
}

// wordStart marks the first token of a word in GGUF; BERT itself marks the others, by "##".
const wordStart = "\u2581"

func (w *wordPiece) encode(dst []ID, text string, _ bool, s *scratch) ([]ID, error) {
	s.buf = append(s.buf[:0], wordStart...)
	flush := func() {
		if len(s.buf) > len(wordStart) {
			dst = w.word(dst, s.buf)
		}
		s.buf = s.buf[:len(wordStart)]
	}
	for i := 0; i < len(text); {
		r, n := decode(text[i:])
		i += n
		if w.stripAccents {
			r = w.base(r)
		}
		c := w.table.of(r)
		switch {
		case c&space != 0:
			flush()
			continue
		case r == 0, r == 0xFFFD, c&invisible != 0, w.stripAccents && c&mark != 0:
			continue
		}
		if w.lower && r != 'İ' { // its lower case is two characters, which llama.cpp's table leaves out
			r = unicode.ToLower(r)
		}
		alone := c&punctuation != 0 || c&symbolic != 0 && r < 0x7F || isIdeograph(r)
		if alone {
			flush()
		}
		s.buf = encodeRune(s.buf, r)
		if alone {
			flush()
		}
	}
	flush()
	return dst, nil
}

// word appends the ids of one word with wordStart before it.
func (w *wordPiece) word(dst []ID, word []byte) []ID {
	known := len(dst)
	for len(word) > 0 {
		id, n := none, 0
		for node, i := int32(0), 0; i < len(word); {
			if node = w.tokens.step(node, word[i]); node < 0 {
				break
			}
			i++
			if end := w.tokens.nodes[node].id; end != none {
				id, n = end, i
			}
		}
		if id == none {
			return append(dst[:known], w.unk)
		}
		dst, word = append(dst, id), word[n:]
	}
	return dst
}

// base returns the first character of r's canonical decomposition.
func (w *wordPiece) base(r rune) rune {
	if r < 0xC0 {
		return r
	}
	if r >= 0xAC00 && r <= 0xD7A3 { // a Hangul syllable: its leading consonant
		return 0x1100 + (r-0xAC00)/588
	}
	if b, ok := w.bases[r]; ok {
		return b
	}
	return r
}

// isIdeograph reports whether a character is a word of its own: it is in the blocks of BERT's is_chinese_char, with
// 0x2B920 for 0x2B820 as in the Hugging Face tokenizers.
func isIdeograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x2F800 && r <= 0x2FA1F
}

func (v *Vocab) planWordPiece(m *meta.Map) (func() error, error) {
	w := &wordPiece{table: newClasses(), lower: true}
	if err := readFlag(m, "normalizer.lowercase", &w.lower); err != nil {
		return nil, err
	}
	w.stripAccents = w.lower
	if err := readFlag(m, "normalizer.strip_accents", &w.stripAccents); err != nil {
		return nil, err
	}
	w.bases = make(map[rune]rune, 2100)
	for group := range strings.SplitSeq(firstOfNFD, " ") {
		first := rune(-1)
		for _, r := range group {
			if first < 0 {
				first = r
				continue
			}
			w.bases[r] = first
		}
	}
	v.kind = w
	v.special.bos, v.special.unk, v.special.sep, v.special.pad, v.special.mask = 101, 100, 102, 0, 103
	return func() error {
		keys := make([]trieKey, 0, len(v.text))
		for id, text := range v.text {
			if v.attr[id]&(control|unknown) == 0 {
				keys = append(keys, trieKey{text, ID(id)})
			}
		}
		w.tokens = newTrie(keys)
		w.unk = v.special.unk
		if w.unk == none {
			return errNoUnknown
		}
		return v.addSentencePieces()
	}, nil
}
