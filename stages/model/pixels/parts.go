package pixels

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// part is one of the programs that make a transformer.
type part struct {
	to     **ir.Bound
	record func()
}

// recordParts records the programs of a transformer, each by a builder that begin makes, and binds them to its tensors.
// A tensor that none of them uses is an error.
func recordParts(tensors []Tensor, begin func() *ir.Builder, parts []part) error {
	used := make([]bool, len(tensors))
	for _, part := range parts {
		b := begin()
		part.record()
		p, err := b.Program(0)
		if err == nil {
			*part.to, err = bind(p, tensors)
		}
		if err != nil {
			return err
		}
		for _, i := range (*part.to).Tensors {
			used[i] = true
		}
	}
	for i, u := range used {
		if !u {
			return fmt.Errorf("tensor %.80q is of no part that is known", tensors[i].Name)
		}
	}
	return nil
}
