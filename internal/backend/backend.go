// Package backend is the contract between the actors and a device that computes.
//
// A device describes itself (Traits) and compiles some segments of a bound program, as a Config asks; memory layout,
// fusion of kernels and scratch memory are its own business. The compiled Model runs steps segment by segment. One
// goroutine at a time (the device actor) drives it; only Upload may run beside that, for weights that no step in flight
// reads, and one call of Blocks at a time. internal/backendtest compares every device with the oracle cpu/ref.
package backend

import (
	"errors"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/ir"
)

// ErrWeights is wrapped by the error of a step whose weights cannot be read any more: no step of the model can be
// computed until it is loaded again.
var ErrWeights = errors.New("a page of the weights cannot be read")

// ErrStopped is the error of a segment that was left where it was, by Work.Stop.
var ErrStopped = errors.New("nobody wants the step any more")

// ErrLost is wrapped by the error of a step whose device is gone: it was reset, or hangs. Everything that models on the
// device do fails from then on. Once they are closed, the next Compile opens the device anew.
var ErrLost = errors.New("the device is lost")

// ErrHung is wrapped, too, where the device reported nothing but its work did not end in time: it may be work that
// never ends.
var ErrHung = errors.New("it hangs")

// Traits are what a device says of itself to those who plan for it and drive it: of its steps, of the weights that it
// computes from, and of its arithmetic.
// Wide: each is read by itself, by who plans for one thing.
type Traits struct {
	Flight  int // steps that may be in flight, run and not finished; at least 1
	Threads int // of the process that compute within Model.Run; 0: the device computes beside the program
	// Draws is the largest Draw.TopK with which the device draws tokens itself, as Step.Draws asks. 1: it draws only
	// the likeliest token, at Temp 0. 0: it draws none. The host draws all other tokens.
	Draws int
	Clock bool  // its own clock measures when segments ran: see Ran
	Meter Meter // measures its speed; nil: it cannot be measured

	// Abreast is how many cards share the work of each row: a step that keeps them busy has as many times the rows.
	// 0: one.
	Abreast int

	Memory Reach
	Away   bool  // it is on another machine: what goes there passes a network
	Free   int64 // free bytes of its own memory; 0: it computes in the program's memory
	Shares bool  // groups of matrices can share a slot, one after the other: see Layout.Slots
	// Bytes returns how many bytes of its own memory a group takes at most; nil: those in the file, padded.
	Bytes func(p *ir.Bound, g *ir.Group) int64
	// Devices are the traits of the devices that a composition consists of, to which Layout.Devices assigns segments:
	// first the host, which computes in the program's memory. The last one, whose traits these are, computes what is
	// not assigned. nil: this is a single device.
	Devices []Traits
	Name    string // of one of Devices

	// Apart says whether a device multiplies rows of prompts in another way than rows of answers, with other bits: a
	// step of the model then has rows of one kind only, which Step.Prompt names. nil: no model does.
	Apart func(p *ir.Bound) bool
	// Lacks says what of a program the device has no kernel for: another one computes all of it. nil: it lacks nothing.
	Lacks  func(p *ir.Program) error
	Halves bool // attention over caches of halves rounds queries and weights to halves, too
	// Driver is the name and version of what compiled the device's kernels, on which bits may depend; empty: the program.
	Driver string
	// Ended says why the device computes nothing any more, for who prepares work for it; nil: it always computes.
	Ended func() error
}

// Missing says what of a program one of several devices has no kernel for; nil: each can compute it.
func Missing(devices []Traits, p *ir.Program) error {
	for i := range devices {
		if lacks := devices[i].Lacks; lacks != nil {
			if err := lacks(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Meter measures a device with memory of its own, while nothing else runs on it.
type Meter interface {
	// Rates are what plans go by.
	Rates() (Rates, error)
	// Ceilings are the device's limits, measured in several passes: bytes a second that it reads from its own memory,
	// and operations (multiplications and additions) a second, of halves or of whole numbers. A device without a Clock
	// has none.
	Ceilings(halves bool) (read, multiply []float64, err error)
}

// Rates are the measured speeds of a device. 0: not measured.
type Rates struct {
	Bus    float64 // bytes a second copied from page-locked memory of the host, as weights are that stream
	Memory float64 // bytes a second that kernels read of its own
	Copy   float64 // fixed seconds of a copy among others, besides those that its bytes take
	Launch float64 // fixed seconds of a kernel that waits for the one before it, besides its work
	Turn   float64 // fixed seconds from a submit until the host has seen its end, besides its work
}

// Reach is how a device's memory is reached.
type Reach uint8

const (
	// HostMemory: the device computes in the memory of the program, and from weights where they lie (InPlace).
	HostMemory Reach = iota + 1
	// OwnMemory: all that it computes from is copied to it.
	OwnMemory
)

// Of returns the traits of the device that computes a segment.
func (t *Traits) Of(c *Layout, segment int) *Traits {
	if c.Devices == nil {
		return t
	}
	return &t.Devices[c.Devices[segment]]
}

// Memory is how many bytes a compiled model occupies. Host counts those in the program's memory where Weights, KV and
// Scratch are in the device's own.
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
	// Compile lays out memory for some segments of the program. Weights are then uploaded, unless they are in place; a
	// segment's weights have to be there when it is run.
	// An unsupported type or shape is reported for all weights at once.
	Compile(p *ir.Bound, c Config) (Model, error)
	// Close ends the device's workers. Its models were closed before. Closing it again does nothing.
	Close() error
}

// Model is compiled segments of a program with their weights, KV cache, scratch memory and a ring of steps.
//
// A step is filled, Run for its segments in program order, and finished, even if some were not run. Steps are run one
// after another, each whole; the next one may be run while others are in flight, up to the length of the ring.
//
// A group is named by its index in the list that ir.Bound.On gives for the model's segments. A group that shares a slot
// is there from Place until another group is placed in the slot. Work that reads a group holds a lease on it: a whole
// segment until its step has ended, a part until Work.Done. The caller must not place a group in a leased slot, nor
// write to its memory: only the caller knows what is in flight.
type Model interface {
	Blocks

	// Slot is the memory of a shared slot, on a device that computes from weights in the file's layout. It begins at a
	// multiple of Sector and has SlotBytes for the largest of its groups. nil: the device takes groups by Upload alone.
	Slot(slot int) []byte
	// Place assigns a shared slot to a group; the slot's content is lost. data has, by weight of the group, its rows as
	// in the file, each in bytes of its own in Slot(slot); from now on the device may change them. Where Slot is nil,
	// data is nil. A group of Layout.Kept is then copied from the device's copy and counts as there at once: what reads
	// it waits on the device. The rows of any other group are uploaded next, and it is there when all of them are.
	Place(group, slot int, data [][]byte) error
	// Upload copies rows [row, row+n) of w from data, in the file's layout and type. row is a multiple of
	// RowGrain; so is n, except for the last piece of a weight. data is not kept. Safe for
	// concurrent use on different pieces.
	Upload(w ir.Ref, row int, data []byte) error
	RowGrain() int

	// Steps is the ring. Its steps, and the memory of their logits, are the model's until it is closed.
	Steps() []*Step
	// Run executes a segment for the rows of s, or begins to: it does not wait for a device that works beside the
	// program. Errors are a step that Step.Check refuses, work that Step.Follows refuses, a group that is not there,
	// and NaN or infinity that reaches a product. They come from here or from Finish, and do not harm the next step.
	// After an error the step can only be finished.
	Run(w Work, s *Step) error
	// Foresees returns the route whose experts Work.Foreseen foretells after a segment: the next route. ok is false
	// where none can be foreseen; see Blind.
	Foresees(segment int) (route int, ok bool)
	// Finish ends a step, whether or not all its segments were run. done is called once, when nothing of the step is
	// running any more and its results are there: by any goroutine, and maybe before Finish returns. Its error fails
	// the steps that were run after this one, too.
	Finish(s *Step, done func(error))
	// In sets, just before a segment is run, a value that it takes from a segment computed elsewhere, or an input of
	// rows of the program: row after row. Just after a segment was run, it replaces what that hands on. Out copies, just
	// after a segment was run, a value that it hands on or an output that it computed, and waits for it.
	In(v ir.Value, s *Step, rows []float32) error
	Out(v ir.Value, s *Step, rows []float32) error

	Memory() Memory
	// Close waits for steps in flight, whose ends are told, and frees the memory. Nothing is uploaded meanwhile.
	Close() error
}

// Work is a segment of a step, or a part of it, with callbacks. The parts of a segment are run one after another and
// give the bits of the whole, however it is cut and in whatever order. Together they name once each group of matrices
// that is needed: experts that rows chose (others may be named, too), and none in an end if no row is wanted. A segment
// that is divided neither into experts nor into pieces has one such group at most, and one part.
type Work struct {
	Segment int
	Whole   bool  // all groups that are needed are there; Groups and Last are not read
	Groups  []int // that this part computes with; they are there
	Last    bool  // no part follows: what the segment does after its products comes with this one
	// Stop, once it is true, has a device that can leave the segment where it is: Run returns ErrStopped, and what it has
	// written is not to be read. nil: nobody stops it.
	Stop *atomic.Bool

	// Done is called when nothing reads the groups any more: once, even after an error, by any goroutine. Each callback
	// may be nil.
	Done func()
	// Chosen is called for a route, with the experts that its rows go to: for each row as many as it may use,
	// ascending, -1 where there are fewer. It is called once, unless Run fails, maybe before Run returns, and by any
	// goroutine. experts is valid until Chosen returns.
	Chosen func(experts []int32)
	// Foreseen is called at the end of a segment, before Run returns, with the Margins that the next route's norm and
	// router give for the residual stream as it is then; at the end of a route, for the stream as that took it in.
	// margins are those of all rows, [rows][experts], and valid until Foreseen returns. The next route's own result
	// does not depend on them.
	Foreseen func(margins []int8)
}

// Ends says whether a segment is complete with this work.
func (w *Work) Ends() bool { return w.Whole || w.Last }

// Release calls Done, if it is set: nothing reads the groups any more.
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
	Host bool // the device does not draw: the host samples the row's logits

	Temp     float32 // 0: the likeliest token, the lower id of equals
	TopK     int32   // 0: all
	TopP     float32 // 1: all
	MinP     float32 // 0: all
	Seed     uint64  // of the sequence's random numbers
	Position uint64  // tokens before the drawn one: the index of its random numbers
}

// DrawOf returns what stands in Tokens for the token of draw i of the step enqueued just before. If that step failed or
// was given up, there may be no such token: what the row computes then is thrown away, and the device only has to
// survive it.
func DrawOf(i int) int32 { return int32(-1 - i) }

// Span is the rows of one sequence in a step: Rows rows from row Row on, at positions Pos, Pos+1, …
// Positions 0…Pos−1 are in the cache, as far back as the cache's class sees. Each table reaches over Pos+Rows
// positions. Two spans never write the same block.
//
// The tokens of the last Proposed rows are guesses. The sequence's next span begins at the first guess or, if the model
// has no states, behind the guesses that turned out right. Rows of guesses do not change states.
type Span struct {
	Row, Rows int
	Proposed  int // of Rows, the last ones: not all
	Pos       int
	Tables    []Table    // by cache class
	Grid      ir.Grid    // of a picture, whose rows lie line by line; zero: it is none
	Places    []ir.Place // by row, its positions on several axes; nil: that in the cache, on each
	// Adapters change the matrices for this sequence's rows, in this order. Their bytes stay until the step was finished.
	Adapters []ir.Applied
	// Sees is by row the last position that it sees, its own at least: rows of a picture may see each other, and a
	// window ends at the row's own position. nil: its own. A program whose rows see their whole text does not read it.
	Sees []int32
	// Heard is how many positions of the sequence an encoder read, of a program that hears: see ir.Side.
	Heard int
}

// Seen is the number of positions that each of the span's rows attends to, up to its own, summed.
func (p *Span) Seen() int { return p.Rows*p.Pos + p.Rows*(p.Rows+1)/2 }

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
