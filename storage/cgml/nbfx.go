package cgml

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// node is an element of a document: what stands in it as text, and the elements in it. Attributes are left out: they
// say types, which names say too.
type node struct {
	name     string
	text     string
	children []*node
}

// child is the first element of a name in n, or nil; it is nil of nil.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// Bounds of documents: those of a model of a hundred layers take a hundredth of it.
const (
	mostNodes = 1 << 20
	mostDepth = 64
)

// errShort is the fault of a document that ends within a record.
var errShort = errors.New("ends within a record: the file is damaged, download it again")

// parser reads .NET's binary XML (MC-NBFX), of which documents of DataContractSerializer use the part below.
type parser struct {
	data  []byte
	nodes int
}

// parse returns the root of a document.
func parse(data []byte) (*node, error) {
	p := &parser{data: data}
	root := &node{}
	if err := p.content(root, 0); err != nil {
		return nil, fmt.Errorf("byte %d: %w", len(data)-len(p.data), err)
	}
	if len(root.children) != 1 {
		return nil, fmt.Errorf("has %d elements outside of each other, want one", len(root.children))
	}
	return root.children[0], nil
}

// content reads what stands in an element up to its end, or in the document up to the last byte.
func (p *parser) content(n *node, depth int) error {
	for depth == 0 && len(p.data) > 0 || depth > 0 {
		record, err := p.byte()
		if err != nil {
			return err
		}
		switch {
		case record == endElement && depth > 0:
			return nil
		case record == comment:
			_, err = p.string()
		case record >= firstAttribute && record <= lastAttribute:
			err = p.attribute(record)
		case record >= firstElement && record <= lastElement:
			err = p.element(n, record, depth)
		case record >= firstText && depth > 0:
			if n.text, err = p.value(record &^ 1); err == nil && record&1 != 0 { // the element ends behind it
				return nil
			}
		default:
			err = fmt.Errorf("record of kind %#02x is not known here", record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Kinds of records. Names are strings or words of the dictionary, with or without a prefix, which may be a letter that
// the kind says.
const (
	endElement     = 0x01
	comment        = 0x02
	firstAttribute = 0x04
	shortNamespace = 0x08 // xmlns="…"
	namespace      = 0x09
	shortWordSpace = 0x0a // the same, of the dictionary
	wordNamespace  = 0x0b
	letterWordAttr = 0x0c // 26 of them
	letterAttr     = 0x26
	lastAttribute  = 0x3f
	firstElement   = 0x40
	letterWordElem = 0x44
	letterElem     = 0x5e
	lastElement    = 0x77
	firstText      = 0x80
)

// attribute reads an attribute or a namespace, and forgets it.
func (p *parser) attribute(record byte) (err error) {
	switch {
	case record == namespace || record == wordNamespace:
		if _, err = p.string(); err != nil {
			return err
		}
		fallthrough
	case record == shortNamespace || record == shortWordSpace:
		_, err = p.name(record == shortWordSpace || record == wordNamespace)
		return err
	case record < shortNamespace:
		_, err = p.prefixed(record - firstAttribute)
	case record < letterAttr:
		_, err = p.name(true)
	default:
		_, err = p.name(false)
	}
	if err != nil {
		return err
	}
	kind, err := p.byte()
	if err != nil {
		return err
	}
	if kind < firstText || kind&1 != 0 {
		return fmt.Errorf("value of an attribute is of kind %#02x, want a text", kind)
	}
	_, err = p.value(kind)
	return err
}

// element reads an element of n.
func (p *parser) element(n *node, record byte, depth int) (err error) {
	if p.nodes++; p.nodes > mostNodes || depth >= mostDepth {
		return fmt.Errorf("has more than %d elements, or one within %d others: no model has", mostNodes, mostDepth)
	}
	c := new(node)
	switch {
	case record < letterWordElem:
		c.name, err = p.prefixed(record - firstElement)
	case record < letterElem:
		c.name, err = p.name(true)
	default:
		c.name, err = p.name(false)
	}
	if err != nil {
		return err
	}
	n.children = append(n.children, c)
	return p.content(c, depth+1)
}

// prefixed reads a name: 0 a string, 1 one behind a prefix, 2 a word, 3 one behind a prefix.
func (p *parser) prefixed(kind byte) (string, error) {
	if kind&1 != 0 {
		if _, err := p.string(); err != nil {
			return "", err
		}
	}
	return p.name(kind >= 2)
}

// name reads a string, or the number of a word of the dictionary.
func (p *parser) name(word bool) (string, error) {
	if !word {
		return p.string()
	}
	id, err := p.length()
	if err != nil {
		return "", err
	}
	if id%2 != 0 || id/2 >= len(words) {
		return "", fmt.Errorf("word %d is not in the dictionary of %d that such files share", id, len(words))
	}
	return words[id/2], nil
}

// value reads a text of a kind as text.
func (p *parser) value(kind byte) (string, error) {
	switch kind {
	case 0x80, 0x84: // 0, false
		return "0", nil
	case 0x82, 0x86: // 1, true
		return "1", nil
	case 0xa8: // nothing
		return "", nil
	case 0xaa:
		return p.name(true)
	}
	if n := map[byte]int{0x88: 1, 0x8a: 2, 0x8c: 4, 0x8e: 8, 0xb4: 1, 0xb2: 8}[kind]; n > 0 {
		data, err := p.take(n)
		if err != nil {
			return "", err
		}
		var wide [8]byte
		copy(wide[:], data)
		shift := 64 - 8*n // the sign is that of the last byte
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(wide[:]))<<shift>>shift, 10), nil
	}
	return p.wide(kind)
}

// wide reads a float, or characters.
func (p *parser) wide(kind byte) (string, error) {
	size := map[byte]int{0x90: 4, 0x92: 8, 0x98: 1, 0x9a: 2, 0x9c: 4}[kind]
	if size == 0 {
		return "", fmt.Errorf("text of kind %#02x is not known here", kind)
	}
	data, err := p.take(size)
	if err != nil {
		return "", err
	}
	var padded [8]byte
	copy(padded[:], data)
	bits := binary.LittleEndian.Uint64(padded[:])
	switch kind {
	case 0x90:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(bits))), 'g', -1, 32), nil
	case 0x92:
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64), nil
	}
	if bits > uint64(len(p.data)) {
		return "", errShort
	}
	text, err := p.take(int(bits))
	return string(text), err
}

func (p *parser) byte() (byte, error) {
	data, err := p.take(1)
	if err != nil {
		return 0, err
	}
	return data[0], nil
}

// string reads a string of UTF-8 behind its length.
func (p *parser) string() (string, error) {
	n, err := p.length()
	if err != nil {
		return "", err
	}
	data, err := p.take(n)
	return string(data), err
}

// length reads a number of up to 31 bits, seven in a byte.
func (p *parser) length() (n int, err error) {
	for shift := 0; shift < 35; shift += 7 {
		b, err := p.byte()
		if err != nil {
			return 0, err
		}
		if n |= int(b&0x7f) << shift; n > math.MaxInt32 {
			break
		}
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errors.New("a length has more than 31 bits: the file is damaged")
}

func (p *parser) take(n int) ([]byte, error) {
	if n > len(p.data) {
		p.data = nil
		return nil, errShort
	}
	data := p.data[:n]
	p.data = p.data[n:]
	return data, nil
}

// words are the dictionary that writers and readers of such files share.
var words = []string{
	"http://www.w3.org/2001/XMLSchema-instance", "http://schemas.datacontract.org/2004/07/Cgml",
	"http://schemas.datacontract.org/2004/07/Cgml.Serialize", "type", "x", "y", "z", "w", "TensorMetadata", "id", "shape",
	"dataType", "usage", "layout", "size", "stride", "ModelMetadata", "formatVersion", "modelType",
	"http://schemas.datacontract.org/2004/07/Mistral.Model", "Transformer", "TransformerBlock", "layers", "tok_embeddings",
	"norm", "output", "parameters", "attention", "feedForward", "attention_norm", "ffn_norm", "wk", "wo", "wq", "wv", "w1",
	"w2", "w3", "countHeads", "repeats", "minusHalfDimMul", "attnScoresMul", "normalEpsilon", "attnCacheSize",
}
