package token

// world is RWKV's tokenizer: at each position the longest token, of any bytes. Files spell tokens as Python writes
// bytes, with escapes.
type world struct {
	tokens trie
	unk    ID
}

func (w *world) encode(dst []ID, text string, _ bool, s *scratch) ([]ID, error) {
	for i, asked := 0, 0; i < len(text); {
		if i-asked > askEvery {
			if asked = i; s.stopped() {
				return dst, ErrStopped
			}
		}
		id, n := w.unk, 1
		for node, end := int32(0), i; end < len(text); {
			if node = w.tokens.step(node, text[end]); node < 0 {
				break
			}
			end++
			if x := w.tokens.nodes[node].id; x != none {
				id, n = x, end-i
			}
		}
		if id != none { // a byte without a token is left out
			dst = append(dst, id)
		}
		i += n
	}
	return dst, nil
}

func (v *Vocab) planWorld() func() error {
	w := &world{}
	v.kind = w
	return func() error {
		keys := make([]trieKey, 0, len(v.text))
		var piece []byte
		for id, text := range v.text {
			piece = unescape(piece[:0], text)
			v.pieces.add(piece)
			if v.attr[id]&(control|unknown) == 0 {
				keys = append(keys, trieKey{string(piece), ID(id)})
			}
		}
		w.tokens, w.unk = newTrie(keys), v.special.unk
		return nil
	}
}

// unescape appends the bytes that a text with escapes stands for: \t, \n, \r, \xNN, and any other character behind a
// backslash as itself. An escape that breaks off stands for nothing.
func unescape(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			dst = append(dst, text[i])
			continue
		}
		if i++; i == len(text) {
			break
		}
		switch c := text[i]; c {
		case 't':
			dst = append(dst, '\t')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 'x':
			if i+2 >= len(text) {
				return dst
			}
			dst = append(dst, digit(text[i+1])<<4|digit(text[i+2]))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// digit is the value of a hexadecimal digit; 0 of anything else.
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0
}
