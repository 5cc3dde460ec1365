package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/meta"
)

// Layout is the place of every byte of a file, known before any of the data.
type Layout struct {
	Head    []byte   // all before the data of the first tensor, padding included
	Tensors []Tensor // in the order of the file, with Size, and with Offset from the start of the file
	Size    int64    // of the file: the last tensor is padded like the others, with zeros
}

// Plan lays out a GGUF v3 file of m and the tensors in the given order, using their names, types and shapes. Data is
// aligned as general.alignment says, else at 32 bytes. It fails if a name repeats or a shape does not fit its type.
func Plan(m *meta.Map, tensors []Tensor) (*Layout, error) {
	const mostAlignment = 1 << 20 // more than any page: a key of a few bytes must not ask for gigabytes of padding
	alignment, err := alignmentOf(m)
	if err != nil {
		return nil, err
	}
	if alignment > mostAlignment {
		return nil, fmt.Errorf("key %q: alignment is %d, want at most %d to write a file: convert the model again",
			keyAlignment, alignment, mostAlignment)
	}
	placed, err := layOut(tensors, alignment)
	if err != nil {
		return nil, err
	}
	head, err := appendHeader(m, placed)
	if err != nil {
		return nil, err
	}
	aligned := func(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }
	head = append(head, make([]byte, aligned(int64(len(head)))-int64(len(head)))...)
	l := &Layout{Head: head, Tensors: placed, Size: int64(len(head))}
	for i := range placed {
		placed[i].Offset += int64(len(head))
		l.Size = aligned(placed[i].Offset + placed[i].Size)
	}
	return l, nil
}

// Write writes a file in Plan's layout to w in one pass. It calls data for each tensor, which must write exactly the
// bytes of the tensor's shape. For a file that must not be seen half written, use Create.
func Write(w io.Writer, m *meta.Map, tensors []Tensor, data func(t *Tensor, w io.Writer) error) error {
	l, err := Plan(m, tensors)
	if err != nil {
		return err
	}
	out := &counter{w: w}
	_, _ = out.Write(l.Head) // counter keeps its first error
	for i := range l.Tensors {
		t := &l.Tensors[i]
		out.pad(t.Offset)
		room := &counter{w: out, limit: t.Size}
		if err := data(t, room); err != nil {
			return fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		if room.n != t.Size && out.err == nil {
			return fmt.Errorf("tensor %s: %d bytes were written, its %s of shape %v takes %d",
				quote(t.Name), room.n, t.Type, t.Shape, t.Size)
		}
	}
	out.pad(l.Size)
	return out.err
}

// layOut returns the tensors with their sizes, and their offsets from the start of the data.
func layOut(tensors []Tensor, alignment int64) ([]Tensor, error) {
	placed, seen, end := make([]Tensor, len(tensors)), make(map[string]bool), int64(0)
	for i, t := range tensors {
		if err := checkName(t.Name); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("tensor %s: is listed twice", quote(t.Name))
		}
		if len(t.Shape) < 1 || len(t.Shape) > mostDimensions {
			return nil, fmt.Errorf("tensor %s: has %d dimensions, want 1 to %d", quote(t.Name), len(t.Shape), mostDimensions)
		}
		for d, n := range t.Shape {
			if n < 1 {
				return nil, fmt.Errorf("tensor %s: dimension %d is %d, want at least 1", quote(t.Name), d, n)
			}
		}
		size, err := sizeOf(t.Type, t.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		seen[t.Name] = true
		placed[i] = Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape, Offset: end, Size: size}
		if size > math.MaxInt64/2-end {
			return nil, fmt.Errorf("tensor %s: the file would be larger than any disk", quote(t.Name))
		}
		end = (end + size + alignment - 1) &^ (alignment - 1)
	}
	return placed, nil
}

func checkName(name string) error {
	if name == "" || len(name) > mostNameBytes || !utf8.ValidString(name) {
		return fmt.Errorf("a name is 1 to %d bytes of UTF-8", mostNameBytes)
	}
	return nil
}

func appendHeader(m *meta.Map, tensors []Tensor) ([]byte, error) {
	order := binary.LittleEndian
	b := order.AppendUint32([]byte(magic), 3)
	b = order.AppendUint64(b, uint64(len(tensors)))
	b = order.AppendUint64(b, uint64(len(m.Keys())))
	for _, key := range m.Keys() {
		if err := checkName(key); err != nil {
			return nil, fmt.Errorf("key %s: %w", quote(key), err)
		}
		v, _ := m.Get(key)
		var err error
		if b, err = appendValue(appendText(b, key), v); err != nil {
			return nil, fmt.Errorf("key %s: %w", quote(key), err)
		}
	}
	for _, t := range tensors {
		b = order.AppendUint32(appendText(b, t.Name), uint32(len(t.Shape)))
		for _, n := range t.Shape {
			b = order.AppendUint64(b, uint64(n))
		}
		b = order.AppendUint32(b, uint32(t.Type))
		b = order.AppendUint64(b, uint64(t.Offset))
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends the kind of a value and its bytes.
func appendValue(b []byte, v any) ([]byte, error) {
	order := binary.LittleEndian
	if k, ok := scalarKind(v); ok {
		b = order.AppendUint32(b, uint32(k))
		if s, ok := v.(string); ok {
			return appendText(b, s), nil
		}
		return binary.Append(b, order, v)
	}
	k, n, ok := elementKind(v)
	if !ok {
		return nil, fmt.Errorf("type %T cannot be stored: want a number, truth value or text, or a slice of one of those", v)
	}
	b = order.AppendUint32(b, uint32(kindArray))
	b = order.AppendUint32(b, uint32(k))
	b = order.AppendUint64(b, uint64(n))
	if texts, ok := v.([]string); ok {
		for _, s := range texts {
			b = appendText(b, s)
		}
		return b, nil
	}
	return binary.Append(b, order, v)
}

func scalarKind(v any) (kind, bool) {
	switch v.(type) {
	case uint8:
		return kindUint8, true
	case int8:
		return kindInt8, true
	case uint16:
		return kindUint16, true
	case int16:
		return kindInt16, true
	case uint32:
		return kindUint32, true
	case int32:
		return kindInt32, true
	case float32:
		return kindFloat32, true
	case bool:
		return kindBool, true
	case string:
		return kindString, true
	case uint64:
		return kindUint64, true
	case int64:
		return kindInt64, true
	case float64:
		return kindFloat64, true
	}
	return 0, false
}

func elementKind(v any) (k kind, n int, ok bool) {
	switch x := v.(type) {
	case []uint8:
		return kindUint8, len(x), true
	case []int8:
		return kindInt8, len(x), true
	case []uint16:
		return kindUint16, len(x), true
	case []int16:
		return kindInt16, len(x), true
	case []uint32:
		return kindUint32, len(x), true
	case []int32:
		return kindInt32, len(x), true
	case []float32:
		return kindFloat32, len(x), true
	case []bool:
		return kindBool, len(x), true
	case []string:
		return kindString, len(x), true
	case []uint64:
		return kindUint64, len(x), true
	case []int64:
		return kindInt64, len(x), true
	case []float64:
		return kindFloat64, len(x), true
	}
	return 0, 0, false
}

// counter counts the bytes written to w, keeps the first error, and refuses more than limit bytes if limit is set.
type counter struct {
	w     io.Writer
	n     int64
	limit int64
	err   error
}

func (c *counter) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.limit > 0 && int64(len(b)) > c.limit-c.n {
		c.err = fmt.Errorf("%d bytes are more than its shape takes", c.n+int64(len(b)))
		return 0, c.err
	}
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.err = err
	return n, err
}

// pad writes zeros up to the n-th byte.
func (c *counter) pad(n int64) { _, _ = io.Copy(c, io.LimitReader(zeros{}, n-c.n)) } // an error stays in c

// zeros is an endless run of zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
