// Package backend is the contract between the actors and a device that computes.
//
// A device says what it is (Traits) and compiles some segments of a bound program for itself, as a Config of four parts
// has it; layout, fusion and scratch are its own business. The model's steps are Run segment by segment. One goroutine
// at a time drives a compiled model (the device actor); only Upload may run beside it, for weights that no step in
// flight reads, and one call of Blocks at a time. internal/backendtest holds every device against the oracle cpu/ref.
package backend

import (
	"errors"

	"github.com/sluice-ai/sluice/internal/ir"
)

// ErrWeights is wrapped by the error of a step whose weights cannot be read any more: no step of the model can be
// computed until it is loaded again.
var ErrWeights = errors.New("a page of the weights cannot be read")

// ErrLost is wrapped by the error of a step of a device that is gone: it was reset, or hung. All that its models do
// fails from then on. When they are closed and a program is compiled again, the device is opened anew.
var ErrLost = errors.New("the device is lost")

// ErrHung is wrapped by such an error where the device did not say so itself, but nothing ended for too long: it may be
// what it computed that never ends.
var ErrHung = errors.New("it hangs")

// Traits are what a device says of itself to those who plan for it and drive it: of its steps, of the weights that it
// computes from, and of its arithmetic.
type Traits struct {
	Flight  int // steps that may be in flight, run and not finished; at least 1
	Threads int // of the program's that compute, within Model.Run; 0: the device computes beside the program
	// Draws is among how many of the likeliest tokens, Draw.TopK, it draws one itself, as Step.Draws asks. 1: it takes
	// the likeliest, where Temp is 0. 0: it draws none. All other tokens are the host's to draw.
	Draws int
	Clock bool  // it says itself, by its own clock, when segments ran: see Ran
	Meter Meter // finds what it can do; nil: it cannot be measured

	Memory Reach
	Free   int64 // bytes of its own memory that nothing takes yet; 0: it computes in the program's
	Shares bool  // groups of matrices can share a slot, one after the other: see Layout.Slots
	// Bytes is what a group takes of its own memory, at most; nil: what it has in the file, padded.
	Bytes func(p *ir.Bound, g *ir.Group) int64
	// Devices are those that it is composed of, for the segments that Layout.Devices deals to them: first the host, which
	// computes in the program's memory. What is not dealt is computed by the last one, whose traits these are. nil: it is
	// one.
	Devices []Traits
	Name    string // of one of Devices

	// Apart says that a model multiplies rows of prompts in another way than rows of answers, which has other bits: a
	// step has rows of one kind, and Step.Prompt says of which. nil: it never does.
	Apart  func(p *ir.Bound) bool
	Halves bool // attention over caches of halves rounds queries and weights to halves, too
}

// Meter measures a device with memory of its own, while nothing else runs on it.
type Meter interface {
	// Rates are what plans go by.
	Rates() (Rates, error)
	// Ceilings are what bounds the device, in each of some passes: how many bytes a second it reads from its own memory,
	// and how many operations it multiplies and adds, of halves or of whole numbers. One without a Clock has none.
	Ceilings(halves bool) (read, multiply []float64, err error)
}

// Rates are what a device was measured to do. 0: it was not.
type Rates struct {
	Bus    float64 // bytes a second copied from page-locked memory of the host, as weights are that stream
	Memory float64 // bytes a second that kernels read of its own
	Copy   float64 // seconds of a copy among others, beside its bytes
	Launch float64 // seconds of a kernel that waits for the one before it, beside its work
	Turn   float64 // seconds from a submit until the host has seen its end, beside its work
}

// Reach is how a device's memory is reached.
type Reach uint8

const (
	// HostMemory: the device computes in the memory of the program, and from weights where they lie (InPlace).
	HostMemory Reach = iota + 1
	// OwnMemory: all that it computes from is copied to it.
	OwnMemory
)

// Of are the traits of who computes a segment.
func (t *Traits) Of(c *Layout, segment int) *Traits {
	if c.Devices == nil {
		return t
	}
	return &t.Devices[c.Devices[segment]]
}

// Memory is what a compiled model occupies, in bytes. Host is of the program's memory, where the others are not.
type Memory struct {
	Weights, KV, Scratch, Host int64
	Devices                    []Memory // of each device that a composition is of; nil: it is of one
}

// Own is what it occupies of its device's own memory.
func (m *Memory) Own() int64 { return m.Weights + m.KV + m.Scratch }

// Device compiles programs.
type Device interface {
	Name() string
	Traits() Traits
	// Compile lays out memory for some segments of the program. Weights are then uploaded, unless they are in place;
	// a segment needs its own when it is run.
	// An unsupported type or shape is reported for all weights at once.
	Compile(p *ir.Bound, c Config) (Model, error)
	// Close ends the device's workers. Its models were closed before. Closing it again does nothing.
	Close() error
}

// Model is compiled segments of a program with their weights, KV cache, scratch memory and a ring of steps.
//
// A step is filled, Run for its segments in program order, and finished, wherever it got to. Steps are run one after
// another, whole; the next one may run while some are in flight, as many as the ring is long.
//
// Groups are named by their index in ir.Bound.On of the segments that are computed. One that shares slots is there from
// Place until another group is placed in the slot. What reads it holds a lease: a whole segment until its step has
// ended, a part until Work.Done. Nothing is placed in a slot that is leased, nor written to its memory: that is the
// caller's to see to, who alone knows what is in flight.
type Model interface {
	Blocks

	// Slot is the memory of a slot that groups share, where the device computes from the file's layout. It begins at a
	// multiple of Sector and has SlotBytes for the largest of its groups. nil: the device takes groups by Upload alone.
	Slot(slot int) []byte
	// Place makes a shared slot the group's: what was there is gone. data is, by weight of the group, its rows as in the
	// file, in Slot(slot), each in bytes of its own; from now on the device may change them. Without such memory data is
	// nil. Of a group that is kept a copy comes, and the group counts as there: what reads it waits on the device. Any
	// other's rows are uploaded next, and it is there when all of them are.
	Place(group, slot int, data [][]byte) error
	// Upload copies rows [row, row+n) of w from data, in the file's layout and type. row is a multiple of
	// RowGrain; so is n, except for the last piece of a weight. data is not kept. Safe for
	// concurrent use on different pieces.
	Upload(w ir.Ref, row int, data []byte) error
	RowGrain() int

	// Steps is the ring. Its steps, and the memory of their logits, are the model's until it is closed.
	Steps() []*Step
	// Run executes a segment for the rows of s, or begins to: it does not wait for a device that works beside the
	// program. A step that Step.Check refuses is an error, a group that is not there is, and so is NaN or infinity that
	// reaches a product; such errors come from here or from Finish, and the next step is not harmed by either. So is work
	// that Step.Follows refuses. After an error the step can only be finished.
	Run(w Work, s *Step) error
	// Foresees is the route that Work.Foreseen speaks of after a segment, the next one. It is not ok where none can be
	// foreseen; see Blind.
	Foresees(segment int) (route int, ok bool)
	// Finish ends a step, whether or not all its segments were run. done is called once, when nothing of it is running
	// any more and what it computed is there: by any goroutine, and maybe before Finish returns. Its error strikes the
	// steps that were run after this one, too.
	Finish(s *Step, done func(error))
	// In sets a value that a segment takes from one that is computed elsewhere, or an input of rows of the program, just
	// before it is run: row after row. Out copies a value that a segment hands on, or an output that it computed, just
	// after it was run, and waits for it.
	In(v ir.Value, s *Step, rows []float32) error
	Out(v ir.Value, s *Step, rows []float32) error

	Memory() Memory
	// Close waits for steps in flight, whose ends are told, and frees the memory. Nothing is uploaded meanwhile.
	Close() error
}

// Work is a segment of a step, whole or a part of it, and who hears what of it. Parts follow one another and have the
// bits of the whole, however it is cut and in whatever order; over them each of the segment's groups of matrices is
// named once. Experts are needed that rows chose, others may be named; of an end no group is if no row is wanted. A
// segment that is neither in experts nor in pieces has one such group at most, and one part.
type Work struct {
	Segment int
	Whole   bool  // all groups that are needed are there; Groups and Last say nothing
	Groups  []int // that are there
	Last    bool  // no part follows: what the segment does after its products comes with this one

	// Done hears that the groups are leased no more: once, even after an error, by any goroutine. Each may be nil.
	Done func()
	// Chosen hears, of the end of a route, which experts the rows go to: for each row as many as it may use, ascending,
	// -1 where there are fewer. Once, unless Run fails, maybe before it returns, and by any goroutine. experts is valid
	// until Chosen returns.
	Chosen func(experts []int32)
	// Foreseen hears at the end of a segment, before Run returns, what the next route's norm and router make of the
	// residual stream as it is then: at the end of a route, as it took it in. margins are those of all rows,
	// [rows][experts], see Margins, and valid until Foreseen returns. The route's own result does not depend on it.
	Foreseen func(margins []int8)
}

// Ends says whether a segment is complete with this work.
func (w *Work) Ends() bool { return w.Whole || w.Last }

// Release tells that nothing reads the groups any more.
func (w *Work) Release() {
	if w.Done != nil {
		w.Done()
	}
}

// Enqueue runs a segment whole.
func Enqueue(m Model, segment int, s *Step) error {
	return m.Run(Work{Segment: segment, Whole: true}, s)
}

// Step is one pass over the program for rows of several sequences. It is reused from step to step: slices are
// refilled, not reallocated.
type Step struct {
	Tokens []int32 // one for each row, of a program that takes them; below 0, see DrawOf
	Spans  []Span  // sequences of the step; their rows tile the step in order
	Wanted []int32 // rows whose logits are wanted, ascending
	Draws  []Draw  // how each wanted row's token is drawn, by a device that draws; else empty
	Prompt bool    // rows are of prompts, none of an answer; said where that makes a difference: see Traits.Apart

	// Out: [len(Wanted)][OutputWidth], logits of the rows that are not drawn, or vectors; room for MaxWanted of them.
	Logits []float32
	Drawn  []int32 // out: a token for each of Draws

	Due
}

// Draw says how a device picks the token of a row. Equal draws from equal logits pick the same token on one device.
type Draw struct {
	Host bool // not at all: the row's logits are sampled by the host

	Temp     float32 // 0: the likeliest token, the lower id of equals
	TopK     int32   // 0: all
	TopP     float32 // 1: all
	MinP     float32 // 0: all
	Seed     uint64  // of the sequence's random numbers
	Position uint64  // tokens before the one that is drawn: which of those numbers
}

// DrawOf stands in Tokens for what draw i of the step enqueued just before gave. Where that step failed or was given up
// there may be no such draw: what the row computes then is thrown away, and the device only has to survive it.
func DrawOf(i int) int32 { return int32(-1 - i) }

// Span is the rows of one sequence in a step: Rows rows from row Row on, at positions Pos, Pos+1, …
// Positions 0…Pos−1 are in the cache, as far as the class of a cache sees them. Each table reaches over Pos+Rows
// positions. Two spans never write the same block.
//
// The tokens of the last Proposed rows are guesses. The sequence's next span begins at the first of them or, where it
// has no states, behind those that it turned out to have. Proposed rows leave states as the row before them left them.
type Span struct {
	Row, Rows int
	Proposed  int // of Rows, the last ones: not all
	Pos       int
	Tables    []Table    // by cache class
	Grid      ir.Grid    // of a picture, whose rows lie line by line; zero: it is none
	Places    []ir.Place // by row, its positions on several axes; nil: that in the cache, on each
}

// Kept is the number of the span's first rows, those that leave states.
func (p *Span) Kept() int { return p.Rows - p.Proposed }

// Table is the KV blocks of a sequence in one cache class: Blocks[i] holds the BlockSize positions from
// (First+i)·BlockSize on. What lies before First was given back behind a window, and may be another's by now.
type Table struct {
	First  int
	Blocks []int32
}

// At is the block of the positions from i·BlockSize on. One that was given back is a bug of the caller, and panics.
func (t *Table) At(i int) int32 { return t.Blocks[i-t.First] }

// Room is the number of positions that the table reaches over, those before First included.
func (t *Table) Room() int { return (t.First + len(t.Blocks)) * BlockSize }
