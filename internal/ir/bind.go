package ir

import "github.com/sluice-ai/sluice/internal/quant"

// Tensor is what a file says about one tensor. Shape[0] is the contiguous dimension, as in GGUF.
type Tensor struct {
	Name  string
	Type  quant.Type
	Shape []int
}

// Bound is a program whose every weight was found in a file with the right shape.
type Bound struct {
	*Program
	Types   []quant.Type // by Ref
	Tensors []int        // by Ref: index into the file's tensor list
	Groups  []Group
}

// Group is the bytes that move together: here a segment's dense weights. A weight used by several
// segments belongs to the first of them.
type Group struct {
	Segment int
	Weights []Ref
	Bytes   int64
}
