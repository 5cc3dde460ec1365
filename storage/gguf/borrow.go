package gguf

// Borrow adds tensors of another file that this one lacks, of those that the other has. The other file stays open until
// this one is closed, too. It is called before either is used by several goroutines.
func (f *File) Borrow(other *File, names ...string) {
	first := len(f.parts)
	for _, name := range names {
		t, ok := other.Tensor(name)
		if _, there := f.byName[name]; !ok || there {
			continue
		}
		if len(f.parts) == first {
			for _, p := range other.parts {
				p.lent = true
				f.parts = append(f.parts, p)
			}
			f.lent = append(f.lent, other.Share())
		}
		one := *t
		one.Part += first
		f.byName[name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, one)
	}
}
