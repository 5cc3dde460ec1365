package sessionfiles

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Header says what a file holds.
type Header struct {
	Kind    []Trait `json:"kind"`            // all that the blocks' bytes depend on beside the tokens, most telling first
	Owner   string  `json:"owner,omitempty"` // digest of the client; "": who has no key
	Name    string  `json:"name,omitempty"`  // that the client chose
	Salt    uint64  `json:"salt,omitempty"`  // whose prompts may begin with the blocks
	Classes []Class `json:"classes"`
}

// Trait is one thing that blocks' bytes depend on. Two files can be told apart by its name.
type Trait struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Class says which blocks of a cache class the file holds: Blocks of them, from number First of the text on.
type Class struct {
	Bytes  int `json:"bytes"` // of each
	First  int `json:"first"`
	Blocks int `json:"blocks"`
}

// Differs names the first trait in which a header's kind is not what is expected; "": they are equal.
func (h *Header) Differs(want []Trait) string {
	for i, x := range want {
		if i >= len(h.Kind) || h.Kind[i] != x {
			return x.Name
		}
	}
	if len(h.Kind) > len(want) {
		return h.Kind[len(want)].Name
	}
	return ""
}

// blocks is how many blocks the file holds.
func (h *Header) blocks() (n int) {
	for _, c := range h.Classes {
		n += c.Blocks
	}
	return n
}

// bytes is how many bytes the blocks take with their checksums.
func (h *Header) bytes() (n int64) {
	for _, c := range h.Classes {
		n += int64(c.Blocks) * int64(c.Bytes+sumSize)
	}
	return n
}

const (
	magic   = "sluicese"
	version = 1
	// headSize is the size of what stands before the header's JSON: magic, version, length of the JSON, of the note, and
	// the number of tokens.
	headSize = len(magic) + 4*4
	sumSize  = 4
)

// Limits of what a file may claim.
const (
	mostHeader  = 1 << 20
	mostNote    = 64 << 20
	mostTokens  = 1 << 26
	mostClasses = 1 << 10
	mostBlock   = 1 << 32 // bytes
)

// ErrBroken is wrapped by errors of files that hold no whole session of this format.
var ErrBroken = errors.New("it is no whole session file of this version")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a file from its beginning to its end.
type Writer struct {
	to      io.Writer
	h       Header
	written int64
	n       int // blocks
}

// NewWriter begins a file with all but its blocks. tokens are those of whole blocks; note is for the caller.
func NewWriter(to io.Writer, h Header, tokens []int32, note []byte) (*Writer, error) {
	head, err := appendHead(nil, &h, tokens, note)
	if err != nil {
		return nil, err
	}
	w := &Writer{to: to, h: h}
	return w, w.write(head)
}

// Size is how many bytes a file of a header, so many tokens and so large a note has.
func Size(h Header, tokens, note int) (int64, error) {
	head, err := json.Marshal(&h)
	return int64(headSize+len(head)+note+4*tokens+sumSize) + h.bytes(), err
}

func appendHead(b []byte, h *Header, tokens []int32, note []byte) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(head) > mostHeader || len(note) > mostNote || len(tokens) > mostTokens {
		return nil, fmt.Errorf("%d bytes of header, %d of note and %d tokens are more than a session file holds", len(head),
			len(note), len(tokens))
	}
	b = append(b, magic...)
	for _, n := range []int{version, len(head), len(note), len(tokens)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(b, head...), note...)
	for _, id := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func (w *Writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.written += int64(n)
	return err
}

// Block writes the next block, in the order of classes and of the text.
func (w *Writer) Block(data []byte) error {
	n := w.n
	w.n++
	if err := w.write(data); err != nil {
		return err
	}
	return w.write(binary.LittleEndian.AppendUint32(nil, sumOf(n, data)))
}

// Close says how many bytes were written, or that blocks are missing.
func (w *Writer) Close() (int64, error) {
	if w.n != w.h.blocks() {
		return w.written, fmt.Errorf("%d blocks of %d were written", w.n, w.h.blocks())
	}
	return w.written, nil
}

// sumOf is the checksum of a block and of its number in the file: one in the place of another is found, too.
func sumOf(n int, data []byte) uint32 {
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], uint32(n))
	return crc32.Update(crc32.Checksum(number[:], castagnoli), castagnoli, data)
}

// File is a session file that is read.
type File struct {
	Header
	Tokens []int32 // of whole blocks
	Note   []byte
	Bytes  int64 // the file's size

	from   io.ReaderAt
	blocks int64 // where they begin
}

// Read reads all but the blocks of a file of this size. The error wraps ErrBroken if it holds no whole session.
func Read(from io.ReaderAt, size int64) (*File, error) {
	var fixed [headSize]byte
	if size < int64(headSize+sumSize) {
		return nil, fmt.Errorf("%d bytes of a head of %d: %w", size, headSize, ErrBroken)
	}
	if _, err := from.ReadAt(fixed[:], 0); err != nil {
		return nil, unread(err)
	}
	if string(fixed[:len(magic)]) != magic {
		return nil, fmt.Errorf("magic is %q, want %q: %w", fixed[:len(magic)], magic, ErrBroken)
	}
	var numbers [4]uint32
	for i := range numbers {
		numbers[i] = binary.LittleEndian.Uint32(fixed[len(magic)+4*i:])
	}
	head, note, tokens := int64(numbers[1]), int64(numbers[2]), int64(numbers[3])
	end := int64(headSize) + head + note + 4*tokens
	switch {
	case numbers[0] != version:
		return nil, fmt.Errorf("version is %d, want %d: %w", numbers[0], version, ErrBroken)
	case head > mostHeader, note > mostNote, tokens > mostTokens, tokens%backend.BlockSize > 0, end+sumSize > size:
		return nil, fmt.Errorf("%d bytes of header, %d of note and %d tokens in %d bytes: %w", head, note, tokens, size,
			ErrBroken)
	}
	b := make([]byte, end+sumSize)
	if _, err := from.ReadAt(b, 0); err != nil {
		return nil, unread(err)
	}
	if binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return nil, fmt.Errorf("the header's checksum is wrong: %w", ErrBroken)
	}
	f := &File{from: from, blocks: end + sumSize, Bytes: size, Note: b[int64(headSize)+head:][:note:note]}
	if err := json.Unmarshal(b[headSize:][:head], &f.Header); err != nil {
		return nil, fmt.Errorf("the header is no JSON of ours: %w", ErrBroken)
	}
	f.Tokens = make([]int32, tokens)
	for i := range f.Tokens {
		f.Tokens[i] = int32(binary.LittleEndian.Uint32(b[end-4*tokens+4*int64(i):]))
	}
	return f, f.check()
}

// check checks what the header claims against the file's size.
func (f *File) check() error {
	if len(f.Classes) > mostClasses {
		return fmt.Errorf("%d cache classes: %w", len(f.Classes), ErrBroken)
	}
	whole := len(f.Tokens) / backend.BlockSize
	for _, c := range f.Classes {
		if c.Bytes <= 0 || c.Bytes > mostBlock || c.Blocks < 0 || c.Blocks > whole || c.First != whole-c.Blocks {
			return fmt.Errorf("%d blocks of %d bytes from %d on, of a text of %d: %w", c.Blocks, c.Bytes, c.First, whole,
				ErrBroken)
		}
	}
	if want := f.blocks + f.bytes(); f.Bytes != want {
		return fmt.Errorf("the file has %d bytes, want %d: %w", f.Bytes, want, ErrBroken)
	}
	return nil
}

// Block reads block i of a class, counted from the class's first, into memory of the class's size.
func (f *File) Block(class, i int, into []byte) error {
	at, n := f.blocks, i
	for _, c := range f.Classes[:class] {
		at, n = at+int64(c.Blocks)*int64(c.Bytes+sumSize), n+c.Blocks
	}
	c := f.Classes[class]
	if len(into) != c.Bytes || i < 0 || i >= c.Blocks {
		return fmt.Errorf("block %d of %d, in memory of %d bytes of %d", i, c.Blocks, len(into), c.Bytes)
	}
	at += int64(i) * int64(c.Bytes+sumSize)
	var sum [sumSize]byte
	if _, err := f.from.ReadAt(into, at); err != nil {
		return unread(err)
	}
	if _, err := f.from.ReadAt(sum[:], at+int64(c.Bytes)); err != nil {
		return unread(err)
	}
	if binary.LittleEndian.Uint32(sum[:]) != sumOf(n, into) {
		return fmt.Errorf("the checksum of block %d is wrong: %w", n, ErrBroken)
	}
	return nil
}

// unread tells a file that became shorter from one that cannot be read.
func unread(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is too short: %w", ErrBroken)
	}
	return err
}
