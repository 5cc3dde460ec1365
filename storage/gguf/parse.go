package gguf

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

const (
	magic            = "GGUF"
	keyAlignment     = "general.alignment"
	defaultAlignment = 32
	mostDimensions   = 4
	mostNameBytes    = 1<<16 - 1 // the format's limit for keys, applied to tensor names as well
	leastKeyBytes    = 8 + 4 + 1 // length of the name, type, value
	leastTensorBytes = 8 + 4 + 8 + 4 + 8
)

// header is the part of a file before the tensor data.
type header struct {
	version int
	meta    meta.Map
	tensors []Tensor
}

// parse reads and checks everything before the tensor data. Nothing in the result aliases data.
func parse(data []byte) (*header, error) {
	c := &cursor{data: data}
	h := &header{}
	if err := h.parseVersion(c); err != nil {
		return nil, err
	}
	tensors, err := c.count("number of tensors", leastTensorBytes)
	if err != nil {
		return nil, err
	}
	keys, err := c.count("number of metadata keys", leastKeyBytes)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if err := h.parseKey(c, i, keys); err != nil {
			return nil, err
		}
	}
	alignment, err := alignmentOf(&h.meta)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for i := range tensors {
		t, err := parseTensor(c, i, tensors)
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("tensor %s: appears twice in the directory: convert the model again", quote(t.Name))
		}
		seen[t.Name] = true
		h.tensors = append(h.tensors, t)
	}
	return h, h.place(int64(c.at), alignment, int64(len(data)))
}

func (h *header) parseVersion(c *cursor) error {
	found := c.data[:min(len(magic), len(c.data))]
	if len(found) == 0 {
		return fmt.Errorf("the file is empty, want a GGUF model: download it again")
	}
	if string(found) != magic {
		advice := "this is not a GGUF file"
		switch string(found) {
		case "GGML", "lmgg", "tjgg", "fmgg": // ggml, ggjt and ggmf are stored backwards
			advice = "this is an older format, convert the model again"
		case "<!DO", "<!do", "<htm", "<HTM":
			advice = "this is a web page that was saved in place of the model, download it again"
		case "vers": // version https://git-lfs.github.com/spec/v1
			advice = "this may be git's note of where the model lies: git lfs pull, or download it again"
		}
		return fmt.Errorf("byte 0: magic is %q, want %q: %s", found, magic, advice)
	}
	c.at = len(magic)
	version, err := c.u32()
	if err != nil {
		return err
	}
	if swapped := bits.ReverseBytes32(version); version > 0xffff && swapped <= 0xffff {
		return fmt.Errorf("byte 4: version is %d in big-endian byte order, want little-endian: "+
			"convert the model again for little-endian machines", swapped)
	}
	if version < 2 || version > 3 {
		return fmt.Errorf("byte 4: version is %d, want 2 or 3: convert the model again, or update this program", version)
	}
	h.version = int(version)
	return nil
}

func (h *header) parseKey(c *cursor, i, n int) error {
	key, err := c.name()
	if err != nil {
		return fmt.Errorf("key %d of %d: %w", i, n, err)
	}
	if h.meta.Has(key) {
		return fmt.Errorf("key %s: appears twice in the metadata: convert the model again", quote(key))
	}
	v, err := c.value()
	if err != nil {
		return fmt.Errorf("key %s: %w", quote(key), err)
	}
	h.meta.Set(key, v)
	return nil
}

// name reads the name of a key or tensor.
func (c *cursor) name() (string, error) {
	at := c.at
	b, err := c.bytes()
	if err != nil {
		return "", err
	}
	name := string(b[:min(len(b), mostNameBytes)])
	switch {
	case len(b) == 0:
		return "", fmt.Errorf("name at byte %d is empty: the file is damaged, download it again", at)
	case len(b) > mostNameBytes:
		return "", fmt.Errorf("name at byte %d has %d bytes, want at most %d: the file is damaged, download it again",
			at, len(b), mostNameBytes)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("name at byte %d is %s, want UTF-8: the file is damaged, download it again",
			at, quote(name))
	}
	return name, nil
}

// alignmentOf returns the multiple, in bytes, at which tensor data starts.
func alignmentOf(m *meta.Map) (int64, error) {
	if !m.Has(keyAlignment) {
		return defaultAlignment, nil
	}
	n, err := m.Int(keyAlignment)
	if err != nil {
		return 0, fmt.Errorf("key %w", err)
	}
	if n < 1 || n > math.MaxUint32 || n&(n-1) != 0 {
		return 0, fmt.Errorf("key %q: alignment is %d, want a power of two below 2^32: convert the model again",
			keyAlignment, n)
	}
	return n, nil
}

// parseTensor reads an entry of the directory. The result's Offset counts from the start of the tensor data, as in the
// file; place makes it absolute.
func parseTensor(c *cursor, i, n int) (Tensor, error) {
	name, err := c.name()
	if err != nil {
		return Tensor{}, fmt.Errorf("tensor %d of %d: %w", i, n, err)
	}
	t := Tensor{Name: name}
	if err := t.parseBody(c); err != nil {
		return Tensor{}, fmt.Errorf("tensor %s: %w", quote(name), err)
	}
	return t, nil
}

func (t *Tensor) parseBody(c *cursor) error {
	dimensions, err := c.u32()
	if err != nil {
		return err
	}
	if dimensions < 1 || dimensions > mostDimensions {
		return fmt.Errorf("has %d dimensions, want 1 to %d: the file is damaged, download it again",
			dimensions, mostDimensions)
	}
	t.Shape = make([]int, dimensions)
	for d := range t.Shape {
		n, err := c.u64()
		if err != nil {
			return err
		}
		if n == 0 || n > math.MaxInt {
			return fmt.Errorf("dimension %d is %d, want 1 to %d: the file is damaged, download it again",
				d, n, math.MaxInt)
		}
		t.Shape[d] = int(n)
	}
	id, err := c.u32()
	if err != nil {
		return err
	}
	t.Type = quant.Type(id)
	if t.Size, err = sizeOf(t.Type, t.Shape); err != nil {
		return err
	}
	offset, err := c.u64()
	if err != nil {
		return err
	}
	if offset > math.MaxInt64/2 { // half, so that adding the start of the data cannot overflow
		return fmt.Errorf("offset is %d, beyond any file: the file is damaged, download it again", offset)
	}
	t.Offset = int64(offset)
	return nil
}

// sizeOf returns the number of bytes of a tensor: whole rows of shape[0] values.
func sizeOf(typ quant.Type, shape []int) (int64, error) {
	if !typ.Known() {
		return 0, fmt.Errorf("is of %s, which this program does not know: update it, or convert the model again", typ)
	}
	row, err := typ.RowBytes(shape[0])
	if err != nil {
		return 0, fmt.Errorf("row of %d values: %w: convert the model again", shape[0], err)
	}
	size := uint64(row)
	for _, n := range shape[1:] {
		over, product := bits.Mul64(size, uint64(n))
		if over != 0 || product > math.MaxInt64/2 {
			return 0, fmt.Errorf("shape %v takes more bytes than any file has: the file is damaged, download it again",
				shape)
		}
		size = product
	}
	if size > math.MaxInt64/2 {
		return 0, fmt.Errorf("shape %v takes more bytes than any file has: the file is damaged, download it again", shape)
	}
	return int64(size), nil
}

// place makes offsets absolute, and checks that tensors lie inside the file and do not overlap.
func (h *header) place(directoryEnd, alignment, fileSize int64) error {
	start := (directoryEnd + alignment - 1) &^ (alignment - 1)
	order := make([]*Tensor, len(h.tensors))
	for i := range h.tensors {
		t := &h.tensors[i]
		if t.Offset%alignment != 0 {
			return fmt.Errorf("tensor %s: offset %d is not a multiple of the alignment %d: convert the model again",
				quote(t.Name), t.Offset, alignment)
		}
		t.Offset += start
		if end := t.Offset + t.Size; end < 0 || end > fileSize {
			return fmt.Errorf("tensor %s: needs bytes up to %d, the file has %d: is the download complete?",
				quote(t.Name), uint64(end), fileSize)
		}
		order[i] = t
	}
	slices.SortFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; a.Offset+a.Size > b.Offset {
			return fmt.Errorf("tensor %s: starts at byte %d inside tensor %s, which ends at byte %d: "+
				"convert the model again", quote(b.Name), b.Offset, quote(a.Name), a.Offset+a.Size)
		}
	}
	return nil
}
