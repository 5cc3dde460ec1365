package token

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// planBPE reads the keys of a BPE vocabulary.
func (v *Vocab) planBPE(m *meta.Map, model string) (func() error, error) {
	pre, err := m.String(prefix + "pre")
	if err != nil && !errors.Is(err, meta.ErrMissing) {
		return nil, err
	}
	b := &bpe{table: newClasses(), size: ID(len(v.text)), chars: model == "gemma4"}
	if model == "gpt2" && (pre == "gemma4" || pre == "granite-embed-multi-311m" || pre == "sarvam-moe") {
		b.chars = true
	}
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
	alphabet := byteAlphabet()
	spell := func(dst []byte, text string) ([]byte, bool) { return decodeAlphabet(dst, text, alphabet) }
	if b.chars {
		spell = func(dst []byte, text string) ([]byte, bool) { return append(dst, text...), true }
	}
	b.ids = make(map[string]ID, len(v.text))
	var buf []byte
	for id, text := range v.text {
		raw, ok := spell(buf[:0], text)
		buf = raw
		if ok && v.attr[id]&(control|unknown) == 0 {
			b.ids[string(raw)] = ID(id)
		}
		if err := v.addPiece(ID(id), b.piece(v.attr[id], text, raw, ok)); err != nil {
			return err
		}
	}
	b.setFallback(v)
	b.indexMerges(merges, spell)
	return nil
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

// setFallback decides what becomes of symbols that are no token. With a byte-level alphabet llama.cpp looks up the
// UTF-8 bytes of the printable form, which only finds ASCII.
func (b *bpe) setFallback(v *Vocab) {
	for i := range b.bytes {
		b.bytes[i], b.fallback[i] = none, none
		if b.chars {
			if id, ok := v.lookup[fmt.Sprintf("<0x%02X>", i)]; ok {
				b.fallback[i] = id
			}
			continue
		}
		if id, ok := b.ids[string([]byte{byte(i)})]; ok {
			b.bytes[i] = id
			if i > ' ' && i < 0x7F {
				b.fallback[i] = id
			}
		}
	}
}

// indexMerges turns "left right" into ids; texts that are no token get ids past the vocabulary. Of equal pairs the
// first counts. A merge into a control token is left out, so that text cannot form one.
func (b *bpe) indexMerges(merges []string, spell func([]byte, string) ([]byte, bool)) {
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
		raw, ok := spell(buf[:0], text[:gap])
		if !ok {
			continue
		}
		n := len(raw)
		if raw, ok = spell(raw, text[gap+1:]); !ok {
			continue
		}
		buf = raw
		left, right := b.symbol(raw[:n]), b.symbol(raw[n:])
		key := uint64(uint32(left))<<32 | uint64(uint32(right))
		if _, ok := b.merges[key]; !ok {
			b.merges[key] = merge{int32(rank), b.symbol(raw)}
			if b.chars {
				b.glue.add(string(raw))
			}
		}
	}
}

// symbol returns the id for bytes, a new one if need be.
func (b *bpe) symbol(raw []byte) ID {
	if id, ok := b.ids[string(raw)]; ok {
		return id
	}
	id := b.size + b.extra
	b.extra++
	b.ids[string(raw)] = id
	if len(raw) == 1 && !b.chars {
		b.bytes[raw[0]] = id
	}
	return id
}

// byteAlphabet maps the characters that byte-level vocabularies spell bytes with to those bytes: printable Latin-1
// as itself, the other 68 bytes in order from U+0100.
func byteAlphabet() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range 256 {
		if b > ' ' && b < 0x7F || b > 0xA0 && b != 0xAD {
			m[rune(b)] = byte(b)
		} else {
			m[next] = byte(b)
			next++
		}
	}
	return m
}

// decodeAlphabet appends the bytes that text spells; false if it has a character outside the alphabet.
func decodeAlphabet(dst []byte, text string, alphabet map[rune]byte) ([]byte, bool) {
	for _, r := range text {
		b, ok := alphabet[r]
		if !ok {
			return dst, false
		}
		dst = append(dst, b)
	}
	return dst, true
}

// addPiece appends what a token stands for; tokens come in order.
func (v *Vocab) addPiece(id ID, piece []byte) error {
	const limit = 1 << 31
	if len(v.pieces.bytes)+len(piece) > limit {
		return fmt.Errorf("%stokens: the first %d hold more than %d bytes, which no vocabulary needs", prefix, id, limit)
	}
	v.pieces.add(piece)
	return nil
}
