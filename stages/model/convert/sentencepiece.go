package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// piece is a token of a SentencePiece model: sentencepiece_model.proto, message ModelProto.SentencePiece.
type piece struct {
	text  string
	score float32
	kind  int32
}

// parsePieces reads the tokens of a SentencePiece model, a protocol buffer: field 1 of it, repeated.
func parsePieces(data []byte) ([]piece, error) {
	var pieces []piece
	err := fields(data, func(number int, value []byte, _ uint64) error {
		if number != 1 || value == nil {
			return nil
		}
		p := piece{kind: normal}
		err := fields(value, func(number int, value []byte, n uint64) error {
			switch {
			case number == 1 && value != nil:
				p.text = strings.ToValidUTF8(string(value), "\uFFFD")
			case number == 2:
				p.score = math.Float32frombits(uint32(n))
			case number == 3 && n >= uint64(normal) && n <= uint64(rawByte):
				p.kind = int32(n)
			}
			return nil
		})
		pieces = append(pieces, p)
		return err
	})
	if err == nil && len(pieces) == 0 {
		err = errors.New("holds no tokens")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: is it a SentencePiece model, and is the download complete?", err)
	}
	return pieces, nil
}

// fields calls use with the fields of a message: bytes, or a number.
func fields(data []byte, use func(number int, value []byte, n uint64) error) error {
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 {
			return errors.New("a field has no number")
		}
		data = data[size:]
		var value []byte
		var n uint64
		switch tag & 7 {
		case 0:
			if n, size = binary.Uvarint(data); size <= 0 {
				return errors.New("a number is cut off")
			}
		case 1, 5:
			if size = 8; tag&7 == 5 {
				size = 4
			}
			if len(data) < size {
				return errors.New("a number is cut off")
			}
			for i := range size {
				n |= uint64(data[i]) << (8 * i)
			}
		case 2:
			length, head := binary.Uvarint(data)
			if head <= 0 || length > uint64(len(data)-head) {
				return errors.New("a text is cut off")
			}
			value = data[head : head+int(length) : head+int(length)]
			size = head + int(length)
		default:
			return fmt.Errorf("a field is of kind %d", tag&7)
		}
		data = data[size:]
		if err := use(int(tag>>3), value, n); err != nil {
			return err
		}
	}
	return nil
}

// sentencePieces writes the vocabulary of a tokenizer.model, with what other files add to it.
func (c *converter) sentencePieces(data []byte, t *tokenizer, settings object, size int) error {
	pieces, err := parsePieces(data)
	if err != nil {
		return fmt.Errorf("tokenizer.model: %w", err)
	}
	list := newTokens(size, true)
	for id, p := range pieces {
		list.set(id, p.text, p.score, p.kind)
	}
	added, err := parseObject("added_tokens.json", c.folder.Texts["added_tokens.json"])
	if err != nil {
		return err
	}
	for text := range added.values {
		list.set(added.int(text), text, -1000, userDefined)
	}
	for id := range settings.object("added_tokens_decoder").values {
		token := settings.object("added_tokens_decoder").object(id)
		n := 0
		if _, err := fmt.Sscan(id, &n); err != nil {
			return fmt.Errorf("tokenizer_config.json: added_tokens_decoder: %.40q is no number", id)
		}
		special, _ := token.truth("special")
		list.add([]addedToken{{ID: n, Content: token.string("content"), Special: special}})
	}
	c.tokens("llama", "default", list)
	return added.err()
}
