package sessionfiles

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/storage/sealed"
)

// Header says what a file holds.
type Header struct {
	Kind    []Trait `json:"kind"`            // all that the blocks' bytes depend on beside the tokens, most telling first
	Owner   string  `json:"owner,omitempty"` // digest of the client; "": who has no key
	Name    string  `json:"name,omitempty"`  // that the client chose
	Salt    uint64  `json:"salt,omitempty"`  // whose prompts may begin with the blocks
	Classes []Class `json:"classes"`

	Key *sealed.Key `json:"-"` // by which the file is encrypted; nil: it is not
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
		n += int64(c.Blocks) * h.room(c)
	}
	return n
}

// room is how many bytes a block of a class takes in the file.
func (h *Header) room(c Class) int64 { return int64(c.Bytes) + int64(sumSize) + int64(h.Key.Over()) }

const (
	magic     = "sluicese"
	version   = 1 // of files that are not encrypted
	encrypted = 2
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
	id      []byte // of an encrypted file
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
	if h.Key != nil {
		fixed := slices.Clone(head[:headSize])
		head = h.Key.Seal(fixed, head[headSize:], headPart+string(fixed))
		w.id = idOf(head)
	}
	return w, w.write(head)
}

// headPart begins what the header, note and tokens of an encrypted file are bound to; what stands before them follows.
const headPart = "session "

// idOf is what tells an encrypted file from all others: random bytes at the beginning of its first part.
func idOf(file []byte) []byte { return slices.Clone(file[headSize:][:sealed.Overhead]) }

// boundOf says which block of which file a block is.
func boundOf(id []byte, n int) string { return fmt.Sprintf("block %d of session %x", n, id) }

// Size is how many bytes a file of a header, so many tokens and so large a note has.
func Size(h Header, tokens, note int) (int64, error) {
	head, err := json.Marshal(&h)
	return int64(headSize+len(head)+note+4*tokens+sumSize+h.Key.Over()) + h.bytes(), err
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
	for _, n := range []int{versionOf(h.Key), len(head), len(note), len(tokens)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(b, head...), note...)
	for _, id := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func versionOf(key *sealed.Key) int {
	if key == nil {
		return version
	}
	return encrypted
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
	sum := binary.LittleEndian.AppendUint32(nil, sumOf(n, data))
	if w.h.Key != nil {
		part := make([]byte, 0, len(data)+sumSize+sealed.Overhead)
		return w.write(w.h.Key.Seal(part, append(sum, data...), boundOf(w.id, n)))
	}
	if err := w.write(data); err != nil {
		return err
	}
	return w.write(sum)
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
	id     []byte // of an encrypted file
	blocks int64  // where they begin
}

// Read reads all but the blocks of a file of this size, by a key, if there is one. The error wraps ErrBroken if it
// holds no whole session, or none of this key.
func Read(from io.ReaderAt, size int64, key *sealed.Key) (*File, error) {
	over := int64(key.Over())
	if size < int64(headSize+sumSize)+over {
		return nil, fmt.Errorf("%d bytes of a head of %d: %w", size, headSize, ErrBroken)
	}
	var fixed [headSize]byte
	if _, err := from.ReadAt(fixed[:], 0); err != nil {
		return nil, unread(err)
	}
	head, note, tokens, err := lengths(fixed[:], size-over, key)
	if err != nil {
		return nil, err
	}
	end := int64(headSize) + head + note + 4*tokens
	b := make([]byte, end+sumSize+over)
	if _, err := from.ReadAt(b, 0); err != nil {
		return nil, unread(err)
	}
	f := &File{from: from, blocks: end + sumSize + over, Bytes: size}
	if key != nil {
		f.id = idOf(b)
		plain, err := key.Open(b[headSize:], headPart+string(fixed[:]))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, ErrBroken)
		}
		b = append(slices.Clone(fixed[:]), plain...)
	}
	if binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return nil, fmt.Errorf("the header's checksum is wrong: %w", ErrBroken)
	}
	f.Note = b[int64(headSize)+head:][:note:note]
	if err := json.Unmarshal(b[headSize:][:head], &f.Header); err != nil {
		return nil, fmt.Errorf("the header is no JSON of ours: %w", ErrBroken)
	}
	f.Key, f.Tokens = key, make([]int32, tokens)
	for i := range f.Tokens {
		f.Tokens[i] = int32(binary.LittleEndian.Uint32(b[end-4*tokens+4*int64(i):]))
	}
	return f, f.check()
}

// lengths reads how many bytes of header and note, and how many tokens, a file of this size has.
func lengths(fixed []byte, size int64, key *sealed.Key) (head, note, tokens int64, err error) {
	if string(fixed[:len(magic)]) != magic {
		return 0, 0, 0, fmt.Errorf("magic is %q, want %q: %w", fixed[:len(magic)], magic, ErrBroken)
	}
	var numbers [4]uint32
	for i := range numbers {
		numbers[i] = binary.LittleEndian.Uint32(fixed[len(magic)+4*i:])
	}
	head, note, tokens = int64(numbers[1]), int64(numbers[2]), int64(numbers[3])
	switch v := int(numbers[0]); {
	case v == version && key != nil:
		err = fmt.Errorf("it is not encrypted, but there is a key: %w", ErrBroken)
	case v == encrypted && key == nil:
		err = fmt.Errorf("it is encrypted, and there is no key: %w", ErrBroken)
	case v != versionOf(key):
		err = fmt.Errorf("version is %d, want %d: %w", v, versionOf(key), ErrBroken)
	case head > mostHeader, note > mostNote, tokens > mostTokens, tokens%backend.BlockSize > 0,
		int64(headSize)+head+note+4*tokens+sumSize > size:
		err = fmt.Errorf("%d bytes of header, %d of note and %d tokens in %d bytes: %w", head, note, tokens, size, ErrBroken)
	}
	return head, note, tokens, err
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
		at, n = at+int64(c.Blocks)*f.room(c), n+c.Blocks
	}
	c := f.Classes[class]
	if len(into) != c.Bytes || i < 0 || i >= c.Blocks {
		return fmt.Errorf("block %d of %d, in memory of %d bytes of %d", i, c.Blocks, len(into), c.Bytes)
	}
	sum, err := f.block(at+int64(i)*f.room(c), n, into)
	if err != nil {
		return err
	}
	if sum != sumOf(n, into) {
		return fmt.Errorf("the checksum of block %d is wrong: %w", n, ErrBroken)
	}
	return nil
}

// block reads the block of a number at a place of the file, and its checksum.
func (f *File) block(at int64, n int, into []byte) (uint32, error) {
	var sum [sumSize]byte
	if f.Key == nil {
		if _, err := f.from.ReadAt(into, at); err != nil {
			return 0, unread(err)
		}
		_, err := f.from.ReadAt(sum[:], at+int64(len(into)))
		return binary.LittleEndian.Uint32(sum[:]), unread(err)
	}
	part := make([]byte, sumSize+len(into)+sealed.Overhead)
	if _, err := f.from.ReadAt(part, at); err != nil {
		return 0, unread(err)
	}
	plain, err := f.Key.Open(part, boundOf(f.id, n))
	if err != nil {
		return 0, fmt.Errorf("block %d: %w: %w", n, err, ErrBroken)
	}
	copy(into, plain[sumSize:])
	return binary.LittleEndian.Uint32(plain), nil
}

// unread tells a file that became shorter from one that cannot be read.
func unread(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is too short: %w", ErrBroken)
	}
	return err
}
