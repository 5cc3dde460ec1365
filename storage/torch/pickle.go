package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/element"
)

// Values that a pickle can make. A dictionary may contain itself, so no code here descends into values without a
// limit.
type (
	mark   struct{}
	global string // "module.name", one of those below
	list   struct{ items []any }
	tuple  []any

	dict struct{ keys, values []any }

	storage struct {
		kind element.Type
		key  string // names a file of the archive
	}
	tensor struct {
		storage        storage
		offset         int64 // in elements
		shape, strides []int
	}
)

// at returns the value of a key; nil if there is none.
func (d *dict) at(key string) any {
	for i, k := range d.keys {
		if k == key {
			return d.values[i]
		}
	}
	return nil
}

// contiguous reports whether the elements lie in C order. Strides of dimensions of size 1 do not count.
func (t *tensor) contiguous() bool {
	if len(t.strides) != len(t.shape) {
		return false
	}
	next := 1
	for i := len(t.shape) - 1; i >= 0; i-- {
		if t.shape[i] != 1 && t.strides[i] != next {
			return false
		}
		next *= t.shape[i]
	}
	return true
}

// storages returns the element type of a storage; name is the Python class of the storage.
func storages(name global) (element.Type, bool) {
	kind, ok := map[global]element.Type{
		"torch.DoubleStorage": element.F64, "torch.FloatStorage": element.F32, "torch.HalfStorage": element.F16,
		"torch.BFloat16Storage": element.BF16, "torch.LongStorage": element.I64, "torch.IntStorage": element.I32,
		"torch.ShortStorage": element.I16, "torch.CharStorage": element.I8, "torch.ByteStorage": element.U8,
		"torch.BoolStorage": element.Bool,
	}[name]
	return kind, ok
}

// Functions that a pickle may call. Calling any other would run a program.
const (
	rebuildTensor    global = "torch._utils._rebuild_tensor_v2"
	rebuildParameter global = "torch._utils._rebuild_parameter"
	orderedDict      global = "collections.OrderedDict"
)

// machine interprets a pickle. It makes no values but those above, and takes memory in proportion to the pickle's
// size.
type machine struct {
	text  []byte
	at    int
	stack []any
	memo  map[uint32]any
}

// interpret runs a pickle and returns its result.
func interpret(text []byte) (any, error) {
	m := &machine{text: text, memo: map[uint32]any{}}
	for {
		begin := m.at
		op, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return m.pop()
		}
		if err := m.step(op[0]); err != nil {
			return nil, fmt.Errorf("byte %d: %w", begin, err)
		}
	}
}

var errShort = errors.New("the pickle is damaged: something is missing in it")

func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.text)-m.at {
		return nil, errShort
	}
	m.at += n
	return m.text[m.at-n : m.at], nil
}

// number reads an unsigned little-endian number of n bytes, at most 4.
func (m *machine) number(n int) (uint32, error) {
	b, err := m.take(n)
	var wide [4]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint32(wide[:]), err
}

// line reads up to the end of the line.
func (m *machine) line() (string, error) {
	n := bytes.IndexByte(m.text[m.at:], '\n')
	b, err := m.take(n + 1)
	if n < 0 || err != nil {
		return "", errShort
	}
	return string(b[:n]), nil
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, errShort
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// top returns the top of the stack, which stays there.
func (m *machine) top() (any, error) {
	if len(m.stack) == 0 {
		return nil, errShort
	}
	return m.stack[len(m.stack)-1], nil
}

// toMark pops the last mark and all above it.
func (m *machine) toMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, is := m.stack[i].(mark); is {
			above := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return above, nil
		}
	}
	return nil, errShort
}

// popN pops n values and returns them, the deepest first.
func (m *machine) popN(n int) ([]any, error) {
	if n > len(m.stack) {
		return nil, errShort
	}
	above := append([]any(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return above, nil
}

// step runs one instruction. The opcodes are those of Python's pickletools.
func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := m.take(1)
		return err
	case 0x95: // FRAME
		_, err := m.take(8)
		return err
	case '(':
		m.push(mark{})
		return nil
	case '}':
		m.push(&dict{})
		return nil
	case ']':
		m.push(&list{})
		return nil
	case ')':
		m.push(tuple{})
		return nil
	case 'N':
		m.push(nil)
		return nil
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
		return nil
	case '0':
		_, err := m.pop()
		return err
	case 'J', 'K', 'M', 0x8a, 'G', 'X', 0x8c:
		return m.literal(op)
	case 'q', 'r', 0x94, 'h', 'j':
		return m.memory(op)
	case 't', 0x85, 0x86, 0x87:
		return m.tuples(op)
	case 'a', 'e', 's', 'u':
		return m.fill(op)
	case 'c', 0x93, 'Q', 'R', 'b':
		return m.object(op)
	}
	return fmt.Errorf("instruction 0x%02x is none that tensors need: save the model again, as safetensors", op)
}

// literal pushes a number or a text.
func (m *machine) literal(op byte) error {
	switch op {
	case 'J':
		n, err := m.number(4)
		m.push(int64(int32(n)))
		return err
	case 'K', 'M':
		n, err := m.number(map[byte]int{'K': 1, 'M': 2}[op])
		m.push(int64(n))
		return err
	case 0x8a: // LONG1
		return m.long()
	case 'G':
		b, err := m.take(8)
		if err == nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		return err
	}
	size := 4
	if op == 0x8c {
		size = 1
	}
	n, err := m.number(size)
	if err != nil {
		return err
	}
	b, err := m.take(int(n))
	m.push(string(b))
	return err
}

// long reads an integer of up to 8 bytes.
func (m *machine) long() error {
	n, err := m.number(1)
	if err != nil {
		return err
	}
	b, err := m.take(int(n))
	if err != nil {
		return err
	}
	if n > 8 {
		return fmt.Errorf("a number has %d bytes, want at most 8", n)
	}
	var x int64
	for i, c := range b {
		x |= int64(c) << (8 * i)
	}
	if n > 0 && n < 8 && b[n-1] >= 0x80 {
		x -= 1 << (8 * n)
	}
	m.push(x)
	return nil
}

// memory stores the top of the stack under a number, or pushes the value of a number.
func (m *machine) memory(op byte) error {
	key := uint32(len(m.memo))
	var err error
	switch op {
	case 'q', 'h':
		key, err = m.number(1)
	case 'r', 'j':
		key, err = m.number(4)
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' {
		v, ok := m.memo[key]
		if !ok {
			return errShort
		}
		m.push(v)
		return nil
	}
	m.memo[key], err = m.top()
	return err
}

func (m *machine) tuples(op byte) error {
	var items []any
	var err error
	if op == 't' {
		items, err = m.toMark()
	} else {
		items, err = m.popN(int(op) - 0x84)
	}
	m.push(tuple(items))
	return err
}

// fill adds the values above the mark to the list or dictionary below it.
func (m *machine) fill(op byte) error {
	var items []any
	var err error
	switch op {
	case 'a':
		items, err = m.popN(1)
	case 's':
		items, err = m.popN(2)
	default:
		items, err = m.toMark()
	}
	if err != nil {
		return err
	}
	into, err := m.top()
	if err != nil {
		return err
	}
	switch x := into.(type) {
	case *list:
		x.items = append(x.items, items...)
		return nil
	case *dict:
		if len(items)%2 != 0 {
			return errShort
		}
		for i := 0; i < len(items); i += 2 {
			x.keys, x.values = append(x.keys, items[i]), append(x.values, items[i+1])
		}
		return nil
	}
	return errShort
}
