package actors

import (
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Lent says where the files of a model are, for other machines that read them. No parts: they cannot.
type Lent struct {
	Parts []source.Source
	Heads []int64 // of each part, the bytes before its first tensor
}

func lentBy(f *gguf.File) (l Lent) {
	l.Parts, l.Heads = f.Shared()
	return l
}
