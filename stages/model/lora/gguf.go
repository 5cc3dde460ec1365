package lora

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// Is says whether the metadata of a GGUF file is that of an adapter.
func Is(m *meta.Map) bool {
	kind, err := m.String("general.type")
	return err == nil && kind == "adapter"
}

// GGUF lists the changes in a GGUF file with metadata m.
func GGUF(name string, m *meta.Map, tensors []Tensor) (*Adapter, error) {
	if !Is(m) {
		return nil, fmt.Errorf("%s: is a model, not an adapter: general.type is not adapter", name)
	}
	if kind, err := m.String("adapter.type"); err != nil || kind != "lora" {
		return nil, fmt.Errorf("%s: adapter.type is %.40q, want lora", name, kind)
	}
	if m.Has("adapter.alora.invocation_tokens") {
		return nil, fmt.Errorf("%s: begins to work where certain tokens stand (aLoRA), which is not supported", name)
	}
	alpha, err := m.Float("adapter.lora.alpha")
	if err != nil {
		return nil, fmt.Errorf("%s: adapter.lora.alpha: %w", name, err)
	}
	a := &Adapter{Name: name}
	a.Arch, _ = m.String("general.architecture")
	f := &faults{of: name}
	pairs := map[string]pair{}
	for i := range tensors[:min(len(tensors), mostTensors)] {
		t := &tensors[i]
		matrix, isA := strings.CutSuffix(t.Name, ".weight.lora_a")
		matrix, isB := strings.CutSuffix(matrix, ".weight.lora_b")
		p := pairs[matrix]
		switch {
		case isA && p.a == nil:
			p.a = t
		case isB && p.b == nil:
			p.b = t
		case isA || isB:
			f.addf(t.Name, "is there twice")
		default:
			f.addf(t.Name, "is no factor of a change, whose name would end in .weight.lora_a or .weight.lora_b")
			continue
		}
		pairs[matrix] = p
	}
	for matrix, p := range pairs {
		byToken := matrix == tokens
		if err := p.whole(byToken); err != nil {
			f.addf(matrix, "%v", err)
			continue
		}
		c := Change{Matrix: matrix, A: *p.a, B: *p.b, Scale: 1, Tokens: byToken}
		if alpha != 0 {
			c.Scale = float32(alpha / float64(c.rank()))
		}
		a.Changes = append(a.Changes, c)
	}
	return a.sorted(f)
}

// sorted brings changes into one order, whatever order the files have.
func (a *Adapter) sorted(f *faults) (*Adapter, error) {
	slices.SortFunc(a.Changes, func(x, y Change) int { return strings.Compare(x.Matrix, y.Matrix) })
	for i := 1; i < len(a.Changes); i++ {
		if m := a.Changes[i].Matrix; m == a.Changes[i-1].Matrix {
			f.addf(m, "is changed by %.100q and by %.100q", a.Changes[i-1].A.Name, a.Changes[i].A.Name)
		}
	}
	if len(a.Changes) == 0 && len(f.list) == 0 {
		return nil, fmt.Errorf("%s: holds no changes of matrices: is it an adapter (LoRA)?", a.Name)
	}
	return a, f.err("cannot be used")
}
