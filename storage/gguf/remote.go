package gguf

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/source"
)

// Shared returns what another machine needs to read the file: its own parts, and of each how many bytes stand before
// its first tensor. It returns nothing of a model that was assembled of other files.
func (f *File) Shared() (parts []source.Source, heads []int64) {
	if f.Version == 0 {
		return nil, nil
	}
	for i := range f.parts {
		if f.parts[i].lent {
			break
		}
		s := f.Part(i)
		s.Copies = nil
		parts, heads = append(parts, s), append(heads, s.Size)
	}
	for i := range f.Tensors {
		if t := &f.Tensors[i]; t.Part < len(heads) {
			heads[t.Part] = min(heads[t.Part], t.Offset)
		}
	}
	return parts, heads
}

// OpenArriving is Open of a model whose bytes come into its files while it is used; the heads are there already.
// content is by which its sender knows it.
func OpenArriving(path, content string, parts []source.Arriving) (*File, error) {
	f, err := open(path, true)
	if err == nil && len(parts) != len(f.parts) {
		err = errors.Join(fmt.Errorf("%d parts of it come, and it has %d", len(parts), len(f.parts)), f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.content = content
	for i := range parts {
		f.parts[i].coming = parts[i]
	}
	return f, nil
}

// Content is by which the sender of an arriving file knows the model; "": the file was here.
func (f *File) Content() string { return f.content }

// Await waits until the bytes of a tensor are there. It fails if they will not come.
func (f *File) Await(t *Tensor) error {
	p := &f.parts[t.Part]
	if p.coming == nil || p.coming.Here() {
		return nil
	}
	if err := p.coming.Await(t.Offset, t.Size); err != nil {
		return fmt.Errorf("%s: tensor %s: %w", p.name, quote(t.Name), err)
	}
	return nil
}

// MirrorAt lets readers of the own parts also read from copies on another machine, one of each.
func (f *File) MirrorAt(copies []source.Source) error {
	parts, _ := f.Shared()
	if len(parts) != len(copies) {
		return fmt.Errorf("%s: the copy has %d parts, and the file %d", f.Name, len(copies), len(parts))
	}
	for i := range copies {
		if copies[i].Size != parts[i].Size {
			return fmt.Errorf("%s: part %d of the copy has %d bytes, and not %d", f.Name, i+1, copies[i].Size, parts[i].Size)
		}
	}
	for i := range copies {
		f.parts[i].copies = append(f.parts[i].copies, copies[i])
	}
	return nil
}
