package token

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// planBPE reads the keys of a BPE vocabulary.
func (v *Vocab) planBPE(m *meta.Map, model string) (func() error, error) {
	pre, err := m.String(prefix + "pre")
	if err != nil && !errors.Is(err, meta.ErrMissing) {
		return nil, err
	}
	b := &bpe{table: newClasses(), size: ID(len(v.text))}
	b.gemma4 = model == "gemma4" || pre == "gemma4" || pre == "granite-embed-multi-311m"
	b.chars = b.gemma4 || pre == "sarvam-moe"
	merges, err := m.Strings(prefix + "merges")
	if err != nil && (pre != "kimi-k2" || !errors.Is(err, meta.ErrMissing)) {
		return nil, err
	}
	v.kind = b
	if b.chars {
		b.rules = newlineRules()
	} else {
		p, ok := preTokenizers()[pre]
		if !ok {
			return nil, fmt.Errorf("%spre is %q, which sluice does not know: text would be cut wrongly", prefix, pre)
		}
		b.rules, b.wholeWords = p.rules, p.wholeWords
		v.addBOS = p.addBOS
	}
	return func() error { return v.buildBPE(b, merges) }, nil
}

// buildBPE decodes the tokens from their printable alphabet and indexes the merges by id.
func (v *Vocab) buildBPE(b *bpe, merges []string) error {
	letters := newAlphabet()
	if b.chars || b.wholeWords {
		b.ids = make(map[string]ID, len(v.text))
	}
	var buf []byte
	for id, text := range v.text {
		raw, ok := append(buf[:0], text...), true
		if !b.chars {
			raw, ok = letters.decode(buf[:0], text)
		}
		buf = raw
		if b.ids != nil && ok && v.attr[id]&(control|unknown) == 0 {
			b.ids[string(raw)] = ID(id)
		}
		if err := v.addPiece(ID(id), b.piece(v.attr[id], text, raw, ok)); err != nil {
			return err
		}
	}
	s := symbols{vocab: v, extra: map[string]ID{}}
	b.indexMerges(merges, &s)
	if b.chars {
		maps.Copy(b.ids, s.extra)
	}
	b.spellBytes(&s, letters)
	return nil
}

// symbols assigns ids to the texts that merges name: those of tokens, or ids past the vocabulary.
type symbols struct {
	vocab *Vocab
	extra map[string]ID
}

// id returns the id of a text as the file spells it; none if it belongs to a control token.
func (s *symbols) id(text []byte) ID {
	if id, ok := s.vocab.lookup[string(text)]; ok {
		if s.vocab.attr[id]&(control|unknown) != 0 {
			return none
		}
		return id
	}
	id, ok := s.extra[string(text)]
	if !ok {
		id = ID(len(s.vocab.text) + len(s.extra))
		s.extra[string(text)] = id
	}
	return id
}

// known returns the id of a text that is a token or that merges name; none if neither is so.
func (s *symbols) known(text string) ID {
	if id, ok := s.extra[text]; ok {
		return id
	}
	if id, ok := s.vocab.lookup[text]; ok && s.vocab.attr[id]&(control|unknown) == 0 {
		return id
	}
	return none
}

// piece returns the bytes of a token; raw is its text in bytes if ok.
func (b *bpe) piece(a attr, text string, raw []byte, ok bool) []byte {
	switch {
	case a&(control|unknown) != 0:
		return []byte(text)
	case a&(normal|userDefined) != 0 && b.chars:
		return []byte(strings.ReplaceAll(text, wordStart, " "))
	case a&normal != 0 && ok:
		return raw
	case a&(normal|userDefined) != 0:
		return []byte(text)
	case a&byteToken != 0:
		if ch, ok := byteOf(text); ok {
			return []byte{ch}
		}
	}
	return nil
}

// spellBytes finds the symbols of single bytes, and the ids of symbols that are no token: with a byte-level alphabet
// llama.cpp looks up the UTF-8 bytes of the printable form, which finds ASCII only.
func (b *bpe) spellBytes(s *symbols, letters *alphabet) {
	for i := range b.bytes {
		b.bytes[i], b.fallback[i] = none, none
	}
	if b.chars {
		for i := range b.fallback {
			if id, ok := s.vocab.lookup[fmt.Sprintf("<0x%02X>", i)]; ok {
				b.fallback[i] = id
			}
		}
		return
	}
	for r, i := range letters {
		if i < 0 {
			continue
		}
		id := s.known(string(rune(r)))
		if b.bytes[i] = id; id < b.size && r < 0x80 {
			b.fallback[i] = id
		}
	}
}

// indexMerges converts "left right" to ids. Of equal pairs the first counts. A merge of or into a control token is
// left out, so that text cannot form one.
func (b *bpe) indexMerges(merges []string, s *symbols) {
	b.merges = make(map[uint64]merge, len(merges))
	var buf []byte
	for rank, text := range merges {
		if text == "" {
			continue
		}
		gap := strings.IndexByte(text[1:], ' ') + 1
		if gap == 0 || gap+1 == len(text) {
			continue
		}
		buf = append(append(buf[:0], text[:gap]...), text[gap+1:]...)
		left, right, whole := s.id(buf[:gap]), s.id(buf[gap:]), s.id(buf)
		if left == none || right == none || whole == none {
			continue
		}
		key := pairKey(left, right)
		if _, ok := b.merges[key]; !ok {
			b.merges[key] = merge{int32(rank), whole}
			if b.chars {
				b.glue.add(string(buf))
			}
		}
	}
}

// alphabet maps the characters by which byte-level vocabularies spell bytes to those bytes: printable Latin-1 as
// itself, the other 68 bytes in order from U+0100. Characters that are not used map to -1.
type alphabet [0x144]int16

func newAlphabet() *alphabet {
	a := new(alphabet)
	for r := range a {
		a[r] = -1
	}
	next := 0x100
	for b := range int16(256) {
		if b > ' ' && b < 0x7F || b > 0xA0 && b != 0xAD {
			a[b] = b
		} else {
			a[next] = b
			next++
		}
	}
	return a
}

// decode appends the bytes that text spells; it returns false if text has a character outside the alphabet.
func (a *alphabet) decode(dst []byte, text string) ([]byte, bool) {
	for _, r := range text {
		if int(r) >= len(a) || a[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(a[r]))
	}
	return dst, true
}

// addPiece appends the bytes of the next token; tokens come in order.
func (v *Vocab) addPiece(id ID, piece []byte) error {
	const limit = 1 << 31
	if len(v.pieces.bytes)+len(piece) > limit {
		return fmt.Errorf("%stokens: the first %d hold more than %d bytes, which no vocabulary needs", prefix, id, limit)
	}
	v.pieces.add(piece)
	return nil
}
