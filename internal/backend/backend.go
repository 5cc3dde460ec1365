// Package backend is the contract between the actors and a device that computes.
//
// A device compiles a bound program for itself: layout, fusion and scratch are its own business. It is driven
// by one goroutine at a time (the device actor); only Upload may run beside Run, for weights that Run does
// not need yet. internal/backendtest holds every device against the oracle cpu/ref.
package backend

import "github.com/sluice-ai/sluice/internal/ir"

// Config is what a compiled model must hold besides its weights.
type Config struct {
	KV        KVType
	Blocks    int // KV blocks of BlockSize positions, for all layers
	MaxRows   int // most rows of a step
	MaxWanted int // most rows of a step whose logits are wanted

	// InPlace, if set, is every weight by Ref, in the file's layout and type. The device takes them from there and
	// nothing is uploaded. What it does not copy it reads where it lies, until the model is closed. It may be the
	// mapping of a file: a fault there is an error of Run, not a crash.
	InPlace [][]byte

	Inputs *Inputs // what goes into products is added up here; nil: nobody asks, and it costs nothing
}

// Memory is what a compiled model occupies, in bytes.
type Memory struct{ Weights, KV, Scratch int64 }

// Device compiles programs.
type Device interface {
	Name() string
	// Compile lays out memory for the program. Weights are then uploaded, unless they are in place; Run needs those of
	// its segment.
	// An unsupported type or shape is reported for all weights at once.
	Compile(p *ir.Bound, c Config) (Model, error)
	// Close ends the device's workers. Its models were closed before.
	Close() error
}

// Model is a compiled program with its weights, KV cache and scratch memory.
type Model interface {
	// Upload copies rows [row, row+n) of w from data, in the file's layout and type. row is a multiple of
	// RowGrain; so is n, except for the last piece of a weight. data is not kept. Safe for
	// concurrent use on different pieces.
	Upload(w ir.Ref, row int, data []byte) error
	RowGrain() int
	// Run executes one segment for the rows of s. Segments of a step run in program order. After
	// the last one, s.Logits is filled. A step that Step.Check refuses is an error, and so is NaN or infinity
	// that reaches a product; the next step is not harmed by either.
	Run(segment int, s *Step) error
	Memory() Memory
	// Close frees the memory. Nothing may be running.
	Close() error
}

// Step is one pass over the program for rows of several sequences. It is reused from step to step: slices are
// refilled, not reallocated.
type Step struct {
	Tokens []int32   // one for each row
	Spans  []Span    // sequences of the step; their rows tile Tokens in order
	Wanted []int32   // rows whose logits are wanted, ascending
	Logits []float32 // out: [len(Wanted)][OutputWidth], logits or vectors; the caller provides the memory
}

// Span is the rows of one sequence in a step: Rows rows from row Row on, at positions Pos, Pos+1, …
// Positions 0…Pos−1 are in the cache. Table[i] is the KV block of positions i·BlockSize…, and covers
// Pos+Rows positions. Two spans never write the same block.
type Span struct {
	Row, Rows int
	Pos       int
	Table     []int32
}
