// Package lora reads adapters (LoRA): changes of low rank to some matrices of a model, as training frameworks (PEFT)
// and llama.cpp (GGUF) store them.
//
// PEFT and GGUF list what is in the files, by the names of the model's matrices, and check what can be checked without
// the model; Bind finds the matrices of one program and brings the numbers into the order that devices compute with.
// Opening files is storage's business.
package lora

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Tensor is a tensor of an adapter's files.
type Tensor struct {
	Name  string
	Shape []int                    // outermost dimension first
	Read  func(to []float32) error // all its values, row after row; what is read may change with the file
}

// Adapter is the changes that an adapter's files hold.
type Adapter struct {
	Name    string // of the file or folder, for messages
	Arch    string // that it says it is for; empty: it does not say
	Changes []Change
}

// Change is a change of one matrix, y += Scale·B(A·x).
type Change struct {
	Matrix string // as the model's file has it, without .weight
	Scale  float32
	A, B   Tensor
	Rows   []int // rows of B, in the order of the matrix's; nil: all as they lie
	Tokens bool  // A has a row for each token, and not one for each number between the factors
}

// rank is how many numbers are between the factors.
func (c *Change) rank() int { return c.B.Shape[1] }

// in and out are the columns and the rows of the matrix that the change is for.
func (c *Change) in() int {
	if c.Tokens {
		return c.A.Shape[0]
	}
	return c.A.Shape[1]
}

func (c *Change) out() int {
	if c.Rows != nil {
		return len(c.Rows)
	}
	return c.B.Shape[0]
}

// faults collects all that is wrong with an adapter.
type faults struct {
	of   string
	list []string
}

func (f *faults) addf(tensor, format string, args ...any) {
	const most = 100 // a file can make a name as long as it likes
	if len(tensor) > most {
		tensor = tensor[:most] + "…"
	}
	f.list = append(f.list, fmt.Sprintf("%q ", tensor)+fmt.Sprintf(format, args...))
}

// err shows the first faults, one a line, and counts the others; nil: there is none.
func (f *faults) err(what string) error {
	if len(f.list) == 0 {
		return nil
	}
	const most = 20
	slices.Sort(f.list)
	list := slices.Compact(f.list)
	text := strings.Join(list[:min(len(list), most)], "\n  ")
	if rest := len(list) - most; rest > 0 {
		text += fmt.Sprintf("\n  and %d more", rest)
	}
	return fmt.Errorf("%s: %s:\n  %s", f.of, what, text)
}

// pair is the factors of a change, as they are found.
type pair struct{ a, b *Tensor }

// mostTensors is more than any adapter has.
const mostTensors = 1 << 16

// whole checks that there are two factors that fit each other.
func (p pair) whole(tokens bool) error {
	switch {
	case p.a == nil:
		return errors.New("has no first factor (A) beside it: is the file complete?")
	case p.b == nil:
		return errors.New("has no second factor (B) beside it: is the file complete?")
	case len(p.a.Shape) != 2 || len(p.b.Shape) != 2:
		return fmt.Errorf("has factors of shape %v and %v, want two dimensions each", p.a.Shape, p.b.Shape)
	}
	rank := p.a.Shape[0]
	if tokens {
		rank = p.a.Shape[1]
	}
	switch {
	case rank != p.b.Shape[1]:
		return fmt.Errorf("has factors of rank %d and %d, want the same", rank, p.b.Shape[1])
	case rank < 1 || rank > ir.MostRank:
		return fmt.Errorf("has rank %d, want 1 to %d", rank, ir.MostRank)
	}
	return nil
}
