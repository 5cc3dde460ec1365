package lora

import (
	"math/rand/v2"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Random is an adapter of random numbers that changes each matrix of each layer of a program, to measure with. Its
// numbers are small halves, as those of most adapters are.
func Random(p *ir.Program, rank int, seed uint64) *Adapter {
	a, random := &Adapter{Name: "random adapter"}, rand.NewPCG(seed, 0)
	read := func(to []float32) error {
		for i := range to {
			to[i] = (float32(random.Uint64()>>53) - 1023.5) / (1 << 16)
		}
		return nil
	}
	for i := range p.Sites {
		if s := &p.Sites[i]; !s.Token && strings.HasPrefix(s.Name, "blk.") {
			a.Changes = append(a.Changes, Change{Matrix: s.Name, Scale: 1,
				A: Tensor{Name: s.Name + ".lora_a", Shape: []int{rank, s.In}, Read: read},
				B: Tensor{Name: s.Name + ".lora_b", Shape: []int{s.Out, rank}, Read: read}})
		}
	}
	return a
}
