package token

import "unicode/utf8"

// Decode appends the bytes of ids; control tokens appear as their text if special is set, else not at all. It undoes
// Encode exactly: where Encode added a space before text (at the start and after special tokens), Decode removes it,
// and changes nothing else. The result may end inside a character, if ids do.
func (v *Vocab) Decode(dst []byte, ids []ID, special bool) []byte {
	d := decoder{vocab: v, special: special, fresh: true}
	for _, id := range ids {
		dst = append(dst, d.piece(id)...)
	}
	return dst
}

// decoder remembers whether the next text begins with the space that Encode adds.
type decoder struct {
	vocab   *Vocab
	special bool
	fresh   bool
}

func (d *decoder) piece(id ID) []byte {
	v := d.vocab
	if !v.has(id) {
		return nil
	}
	if a := v.attr[id]; a&(control|unknown|userDefined) != 0 {
		d.fresh = a&unknown == 0 // unknown text is text
		if v.IsControl(id) && !d.special {
			return nil
		}
		return v.pieces.at(id)
	}
	p := v.pieces.at(id)
	if d.fresh && len(p) > 0 {
		d.fresh = false
		if v.spacePrefix && p[0] == ' ' {
			return p[1:]
		}
	}
	return p
}

// Stream decodes ids as they come into whole characters. It is for one goroutine.
type Stream struct {
	decoder
	buf  []byte // what was returned last, then what waits
	sent int    // how much of buf was returned
}

// Stream begins a text. The results of Push and Flush, joined, equal Decode's for the same ids.
func (v *Vocab) Stream(special bool) *Stream {
	return &Stream{decoder: decoder{vocab: v, special: special, fresh: true}}
}

// Resume is Stream for ids that continue a text which another decoding began: a leading space belongs to the text.
func (v *Vocab) Resume(special bool) *Stream {
	return &Stream{decoder: decoder{vocab: v, special: special}}
}

// Push takes the next id and returns the bytes that are certain now: whole characters, and bytes that cannot be part
// of one. They are valid until the next call.
func (s *Stream) Push(id ID) []byte {
	n := copy(s.buf, s.buf[s.sent:])
	s.buf = append(s.buf[:n], s.piece(id)...)
	s.sent = len(s.buf) - unfinished(s.buf)
	return s.buf[:s.sent:s.sent]
}

// Flush ends the text and returns the rest: the beginning of a character that never came. The bytes are valid until
// the next call.
func (s *Stream) Flush() []byte {
	rest := s.buf[s.sent:]
	s.buf, s.sent = s.buf[:0], 0
	return rest
}

// unfinished returns the number of bytes at the end of b that may yet become a character.
func unfinished(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return 0
			}
			return len(b) - i
		}
	}
	return 0
}
