// Package safetensors reads the directories of safetensors files: which tensors they hold, and where.
//
// A file is a length of 8 bytes, JSON of that length, and data. Every offset is checked against the file before it is
// returned; no two tensors share bytes. The caller reads the data itself. Files of a few numbers are written, too.
//
// Format: https://github.com/huggingface/safetensors#format.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/sluice-ai/sluice/internal/element"
)

const (
	lengthBytes   = 8
	mostHeader    = 100_000_000 // bytes, as the format says
	mostNameBytes = 4096        // of a tensor: real names have fewer than 200
	metadataKey   = "__metadata__"
)

// Parse reads the directory of a file of size bytes, and lists its tensors in the order of their data. It fails if
// the directory does not match the file.
func Parse(r io.ReaderAt, size int64) ([]element.Stored, error) {
	header, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	entries, err := decode(header)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	begin := lengthBytes + int64(len(header))
	tensors := make([]element.Stored, 0, len(entries))
	for name, e := range entries {
		t, err := e.place(name, begin, size)
		if err != nil {
			return nil, fmt.Errorf("tensor %.80q: %w", name, err)
		}
		tensors = append(tensors, t)
	}
	slices.SortFunc(tensors, func(a, b element.Stored) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	for i := 1; i < len(tensors); i++ {
		if before := &tensors[i-1]; tensors[i].Offset < before.Offset+before.Size {
			return nil, fmt.Errorf("tensors %.80q and %.80q share bytes: the file is damaged, download it again",
				before.Name, tensors[i].Name)
		}
	}
	return tensors, nil
}

func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	var length [lengthBytes]byte
	if size < lengthBytes {
		return nil, fmt.Errorf("has %d bytes, fewer than the %d that every safetensors file begins with: "+
			"is the download complete?", size, lengthBytes)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > mostHeader || n > uint64(size-lengthBytes) {
		return nil, fmt.Errorf("its header would have %d bytes, the file has %d and a header at most %d: "+
			"is it a safetensors file, and is the download complete?", n, size, mostHeader)
	}
	header := make([]byte, n)
	_, err := r.ReadAt(header, lengthBytes)
	return header, err
}

// entry is a tensor's entry in the header.
type entry struct {
	Type    string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // first byte and the one after the last, from the start of the data
}

// decode decodes the header. It refuses a name that occurs twice, since readers would disagree about the content.
func decode(header []byte) (map[string]entry, error) {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(header, &named); err != nil {
		return nil, fmt.Errorf("%w: the file is damaged, download it again", err)
	}
	if err := once(header, len(named)); err != nil {
		return nil, err
	}
	entries := make(map[string]entry, len(named))
	for name, text := range named {
		if name == metadataKey {
			continue
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("tensor %.80q: %w", name, err)
		}
		entries[name] = e
	}
	return entries, nil
}

// once fails if a JSON object has more members than different keys.
func once(object []byte, different int) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return err
	}
	for n := 0; d.More(); n++ {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if n == different {
			return fmt.Errorf("lists a tensor twice, at %.80q or before: the file is damaged, download it again", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// place checks an entry against the file's data, which begins at begin and ends at size.
func (e *entry) place(name string, begin, size int64) (element.Stored, error) {
	s := element.Stored{Tensor: element.Tensor{Name: name, Shape: e.Shape}}
	if name == "" || len(name) > mostNameBytes {
		return s, fmt.Errorf("its name has %d bytes, want 1 to %d", len(name), mostNameBytes)
	}
	var ok bool
	if s.Type, ok = element.Parse(e.Type); !ok {
		return s, fmt.Errorf("dtype %.40q is not known: convert the model to BF16, F16 or F32", e.Type)
	}
	n, err := s.Count()
	if err != nil {
		return s, err
	}
	if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
		return s, fmt.Errorf("data_offsets are %v, want two that ascend: the file is damaged, download it again", e.Offsets)
	}
	s.Size = e.Offsets[1] - e.Offsets[0]
	if want := n * int64(s.Type.Size()); s.Size != want {
		return s, fmt.Errorf("its data has %d bytes, and %s of shape %v takes %d: the file is damaged, download it again",
			s.Size, s.Type, s.Shape, want)
	}
	if e.Offsets[1] > size-begin {
		return s, fmt.Errorf("needs bytes up to %d of the data, the file has %d: is the download complete?",
			e.Offsets[1], size-begin)
	}
	s.Offset = begin + e.Offsets[0]
	return s, nil
}
