package token

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/meta"
)

// spm is SentencePiece's BPE: neighbours merge if together they are a token, the best score first.
type spm struct {
	ids     map[string]ID // tokens that text may become
	order   []int32       // rank of each token by score, best first; equal scores are equal ranks
	longest int           // bytes of the longest text in ids
	bytes   [256]ID       // tokens of bytes, for characters that are no token; the unknown token where there is none
	prefix  bool          // a space goes before text
	glue    glue
}

func (p *spm) join(text string, left, right *symbol) (int32, ID, bool) {
	if int(right.end-left.start) > p.longest {
		return 0, none, false
	}
	id, ok := p.ids[text[left.start:right.end]]
	if !ok {
		return 0, none, false
	}
	return p.order[id], id, true
}

func (p *spm) encode(dst []ID, text string, fresh bool, s *scratch) ([]ID, error) {
	s.buf = s.buf[:0]
	if p.prefix && fresh {
		s.buf = append(s.buf, "\u2581"...)
	}
	s.buf = escapeSpaces(s.buf, text)
	text = string(s.buf)
	whole := !utf8.ValidString(text) // a symbol may then begin in the middle of U+2581
	for from, asked := 0, 0; from < len(text); {
		end := len(text)
		if !whole {
			end = p.glue.wordEnd(text, from)
		}
		if err := s.admits(from, end, &asked); err != nil {
			return dst, err
		}
		dst = p.word(dst, text[from:end], &s.chain)
		from = end
	}
	return dst, nil
}

// word appends the ids of a stretch of text that no token crosses.
func (p *spm) word(dst []ID, text string, c *chain) []ID {
	c.reset(len(text))
	for i := 0; i < len(text); {
		end := min(len(text), i+utf8Len(text[i]))
		id, ok := p.ids[text[i:end]]
		if !ok {
			id = none
		}
		c.add(i, end, id)
		i = end
	}
	c.merge(text, p)
	for i := int32(0); i >= 0; i = c.symbols[i].next {
		s := &c.symbols[i]
		if s.id != none {
			dst = append(dst, s.id)
			continue
		}
		for _, b := range []byte(text[s.start:s.end]) {
			dst = append(dst, p.bytes[b])
		}
	}
	return dst
}

// glue lists the pairs of characters that are neighbours in some token. Between other pairs no token reaches across,
// so the parts may be merged one by one with the same result as the whole text: short chains are much faster than one
// long one.
type glue struct {
	before [256]bool      // bytes after which some token goes on with U+2581
	pairs  [256][4]uint64 // by first byte: the bytes that follow it
}

func (g *glue) add(token string) {
	for i := 1; i < len(token); i++ {
		a, b := token[i-1], token[i]
		g.pairs[a][b>>6] |= 1 << (b & 63)
		if strings.HasPrefix(token[i:], wordStart) {
			g.before[a] = true
		}
	}
}

// wordEnd returns the end of the word that begins at i. A word ends before U+2581, and a long one before any
// character that no token has after the one before it.
func (g *glue) wordEnd(text string, i int) int {
	for from := i; ; {
		if i++; i >= len(text) {
			return len(text)
		}
		a, b := text[i-1], text[i]
		switch {
		case b == wordStart[0] && !g.before[a] && strings.HasPrefix(text[i:], wordStart):
			return i
		case i-from > maxWord/8 && utf8.RuneStart(b) && g.pairs[a][b>>6]>>(b&63)&1 == 0:
			return i
		}
	}
}

func (v *Vocab) planSPM(m *meta.Map) (func() error, error) {
	scores, err := v.readScores(m)
	if err != nil {
		return nil, err
	}
	v.addBOS, v.spacePrefix = true, true
	v.special.bos, v.special.eos, v.special.unk = 1, 2, 0 // so that there is always an unknown token
	if err := readFlag(m, "add_space_prefix", &v.spacePrefix); err != nil {
		return nil, err
	}
	p := &spm{ids: make(map[string]ID, len(v.text)), prefix: v.spacePrefix}
	v.kind = p
	return func() error {
		p.order = ranks(scores)
		for id, text := range v.text {
			if v.attr[id]&(control|unknown) == 0 {
				p.ids[text] = ID(id)
				p.longest = max(p.longest, len(text))
				p.glue.add(text)
			}
		}
		for b := range p.bytes {
			id, ok := v.lookup[fmt.Sprintf("<0x%02X>", b)]
			if !ok {
				id, ok = p.ids[string([]byte{byte(b)})]
			}
			if !ok {
				id = v.special.unk
			}
			p.bytes[b] = id
		}
		return v.addSentencePieces()
	}, nil
}

// ranks numbers the scores, the highest first.
func ranks(scores []float32) []int32 {
	sorted := slices.Clone(scores)
	slices.SortFunc(sorted, func(a, b float32) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	rank := make(map[float32]int32, len(sorted))
	for _, x := range sorted {
		if _, ok := rank[x]; !ok {
			rank[x] = int32(len(rank))
		}
	}
	out := make([]int32, len(scores))
	for i, x := range scores {
		out[i] = rank[x]
	}
	return out
}

// addSentencePieces fills the pieces of the kinds that spell spaces as U+2581.
func (v *Vocab) addSentencePieces() error {
	for id, text := range v.text {
		var piece []byte
		switch a := v.attr[id]; {
		case a&(control|unknown) != 0:
			piece = []byte(text)
		case a&(normal|userDefined) != 0:
			piece = []byte(strings.ReplaceAll(text, "\u2581", " "))
		case a&byteToken != 0:
			if b, ok := byteOf(text); ok {
				piece = []byte{b}
			}
		}
		if err := v.addPiece(ID(id), piece); err != nil {
			return err
		}
	}
	return nil
}
