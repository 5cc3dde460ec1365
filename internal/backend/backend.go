// Package backend is the contract between the actors and a device that computes.
//
// A device compiles some segments of a bound program for itself: layout, fusion and scratch are its own business. A
// compiled model is driven by one goroutine at a time (the device actor); only Upload may run beside it, for weights
// that no step in flight reads. internal/backendtest holds every device against the oracle cpu/ref.
package backend

import (
	"errors"
	"fmt"
	"slices"
	"time"

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

// Traits are what a device says of itself to those who drive it.
type Traits struct {
	Flight  int  // steps that may be in flight, enqueued and not finished; at least 1
	Draws   bool // it draws tokens from the logits itself, as Step.Draws asks
	Among   int  // of draws with a Temp it makes those among at most so many tokens, TopK: the others must be the host's
	Shares  bool // groups of matrices can share a slot, one after the other: see Config.Slots
	Crowded bool // its threads take every core that goroutines may run on
	Times   bool // it says itself when segments ran: see Config.Ran
	Halves  bool // attention over caches of halves rounds queries and weights to halves, too
	Memory  Reach
	Free    int64 // bytes of its own memory that nothing takes yet; 0: it computes in the program's
	// Host is what computes the segments that Config.OnHost names, in the program's memory and within Enqueue. nil: a
	// program is computed on one device.
	Host *Traits

	// Apart says that a model multiplies rows of prompts in another way than rows of answers, which has other bits: a
	// step has rows of one kind, and Step.Prompt says of which. nil: it never does.
	Apart func(p *ir.Bound) bool

	// Bytes is what a group takes of its own memory, at most; nil: what it has in the file, padded.
	Bytes func(p *ir.Bound, g *ir.Group) int64
}

// Reach is how a device's memory is reached.
type Reach uint8

const (
	// HostMemory: the device computes in the memory of the program, and from weights where they lie (Config.InPlace).
	HostMemory Reach = iota + 1
	// OwnMemory: all that it computes from is copied to it.
	OwnMemory
)

// Config is what a compiled model must hold besides its weights.
type Config struct {
	Segments []int // which segments of the program it computes, ascending; nil: all
	Flight   int   // steps in flight, at most what the device's traits allow; 0: 1

	// OnHost are segments of a whole program that are computed in the program's memory, ascending; see Traits.Host. The
	// last one is not among them. Then rows are not drawn by steps in flight: no token is DrawOf one.
	OnHost []int

	// Slots are places that hold one group at a time: by slot, which of the groups that ir.Bound.On lists for Segments may
	// be placed in it. A slot for one group is its own: it is uploaded there, and stays. Groups of matrices may share
	// slots. Vectors have slots of their own, and tables have, or are in no slot at all and are read in Tables, by devices
	// that share slots.
	// nil: each group has a slot of its own.
	Slots [][]int
	// Kept are groups of Slots that share, ascending, of which a device of OwnMemory keeps a copy in the program's
	// memory, as it computes from them. They are uploaded once, and whenever one is placed it comes from there.
	Kept []int
	// Tables is by Ref, in the file's layout and type, what has no slot of its own and is read row by row all the same:
	// embeddings, also those whose pieces are placed to be multiplied. It may be the mapping of a file, as InPlace.
	Tables [][]byte

	KV        KVType
	Blocks    []int // by cache class: KV blocks of BlockSize positions, for all layers of the class
	MaxRows   int   // most rows of a step
	MaxWanted int   // most rows of a step whose logits are wanted
	MaxSpans  int   // most sequences of a step; 0: as many as rows

	// InPlace, if set, is every weight by Ref, in the file's layout and type. The device takes them from there and
	// nothing is uploaded. What it does not copy it reads where it lies, until the model is closed. It may be the
	// mapping of a file: a fault there is an error of the step, not a crash. For devices of HostMemory, and of others for
	// what is computed OnHost alone.
	InPlace [][]byte

	// Slabs, if set, is memory that most of what is uploaded lies in. It stays until the model is closed, so that a device
	// of OwnMemory may have its hardware read there what the program would have to copy first.
	Slabs []byte

	// Ran, if set, hears what a device did beside the program: copies of groups that share slots, and what it computed.
	// By any goroutine; of what a step computed by one, in order, before the step's end is told.
	Ran func(Ran)

	Inputs *Inputs // what goes into products is added up here; nil: nobody asks, and it costs nothing
}

// Ran is a stretch of a device's work: a group that was copied to a slot, or a segment, or a part of one, that was
// computed. A device that Times tells of all segments, by its own clock: when the whole began and ended, and between
// these, where to note the time takes time, it may divide that as an earlier step of the kind was divided; see
// Step.Detail. Any other one tells of those that compute with groups, as the host sees it, some tens of microseconds
// late.
type Ran struct {
	Step    *Step // nil: of none that is known
	Segment int   // that was computed
	Group   int   // that was copied, or that was computed with; -1: none that shares slots
	Copied  bool
	Landed  time.Time // when what it had to wait for had been copied; zero: it waited for no copy

	Asked, Began, Ended time.Time
}

// Computes says whether the model is compiled for a segment.
func (c *Config) Computes(segment int) bool {
	return c.Segments == nil || slices.Contains(c.Segments, segment)
}

// Ring is how many steps a model has.
func (c *Config) Ring() int { return max(1, c.Flight) }

// Spans is how many sequences a step has at most.
func (c *Config) Spans() int {
	if c.MaxSpans > 0 {
		return min(c.MaxSpans, c.MaxRows)
	}
	return c.MaxRows
}

// Check finds what no device of these traits can compile p for.
func (c *Config) Check(p *ir.Bound, t Traits) error {
	if err := c.KV.Check(); err != nil {
		return err
	}
	if c.MaxRows < 1 || c.MaxWanted < 0 || slices.ContainsFunc(c.Blocks, func(n int) bool { return n < 1 }) {
		return fmt.Errorf("%d KV blocks, %d rows, %d wanted: want at least one block and one row",
			c.Blocks, c.MaxRows, c.MaxWanted)
	}
	if len(c.Blocks) != len(p.Classes) {
		return fmt.Errorf("KV blocks of %d cache classes: the program has %d", len(c.Blocks), len(p.Classes))
	}
	if c.Flight > t.Flight {
		return fmt.Errorf("%d steps in flight: the device has room for %d", c.Flight, t.Flight)
	}
	if c.InPlace != nil && t.Memory != HostMemory && len(c.OnHost) == 0 {
		return errors.New("weights in place: the device cannot read the program's memory")
	}
	for i, s := range c.Segments {
		if s < 0 || s >= len(p.Segments) || i > 0 && s <= c.Segments[i-1] {
			return fmt.Errorf("segments %v: want ascending numbers below %d", c.Segments, len(p.Segments))
		}
	}
	return errors.Join(c.checkHost(p, t), c.checkCaches(p), c.checkSlots(p, t))
}

// checkHost wants segments on the host of a device that has one, of a whole program whose end is on the device.
func (c *Config) checkHost(p *ir.Bound, t Traits) error {
	if len(c.OnHost) > 0 && (t.Host == nil || c.Segments != nil) {
		return errors.New("segments on the host: the device computes all that it is given, or is given some alone")
	}
	for i, s := range c.OnHost {
		if s < 0 || s >= len(p.Segments)-1 || i > 0 && s <= c.OnHost[i-1] {
			return fmt.Errorf("segments %v on the host: want ascending numbers below %d", c.OnHost, len(p.Segments)-1)
		}
	}
	return nil
}

// checkCaches wants segments that attend to the same cache together.
func (c *Config) checkCaches(p *ir.Bound) error {
	const here, onHost = 1, 2        // 0: elsewhere
	filled := make([]int, len(p.KV)) // by cache: where
	for s := range p.Segments {
		at := here
		if slices.Contains(c.OnHost, s) {
			at = onHost
		}
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			switch {
			case n.Op != ir.Attend || !c.Computes(s):
			case len(n.In) > 1:
				filled[n.Attend.KV] = at
			case filled[n.Attend.KV] != at:
				return fmt.Errorf("%s attends to cache %d, which is filled elsewhere", &p.Segments[s], n.Attend.KV)
			}
		}
	}
	return nil
}

// Memory is what a compiled model occupies, in bytes. Host is of the program's memory, where the others are not.
type Memory struct{ Weights, KV, Scratch, Host int64 }

// Device compiles programs.
type Device interface {
	Name() string
	Traits() Traits
	// Compile lays out memory for some segments of the program. Weights are then uploaded, unless they are in place;
	// a segment needs its own when it is enqueued.
	// An unsupported type or shape is reported for all weights at once.
	Compile(p *ir.Bound, c Config) (Model, error)
	// Close ends the device's workers. Its models were closed before. Closing it again does nothing.
	Close() error
}

// Model is compiled segments of a program with their weights, KV cache, scratch memory and a ring of steps.
//
// A step runs so: its fields are filled, its segments are enqueued in program order, whole or part by part, values that
// cross to and from other devices are copied at the borders, and it is finished, wherever it got to. Steps are enqueued
// one after another, whole; the next one may be enqueued while some are in flight, as many as the ring is long.
//
// Groups are named by their index in ir.Bound.On of the segments that are computed. One that shares slots is there from
// Place until another group is placed in the slot. What reads it holds a lease: Enqueue until its step has ended, Part
// until Work.Done. Nothing is placed in a slot that is leased, nor written to its memory: that is the caller's to see
// to, who alone knows what is in flight. Slot, Place, Part and Chosen are for devices that share slots: the others have
// Whole answer.
type Model interface {
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
	// Enqueue executes a segment for the rows of s, or begins to: it does not wait for a device that works beside the
	// program. The segment's groups are there, those of its experts that rows chose, and of an end none if no row is
	// wanted. A step that Step.Check refuses is an error, a group that is not there is, and so is NaN or infinity that
	// reaches a product; such errors come from here or from Finish, and the next step is not harmed by either.
	Enqueue(segment int, s *Step) error
	// Part is Enqueue of what some groups contribute to a segment. The parts of a segment follow one another; they give
	// the bits of Enqueue, however it is cut and in whatever order. After an error the step can only be finished.
	Part(w Work, s *Step) error
	// Chosen tells which experts the rows of a step go to, once their route was enqueued: for each row as many as it may
	// use, ascending, -1 where there are fewer. It is told once, maybe before Chosen returns, and by any goroutine;
	// experts is valid until tell returns.
	Chosen(route int, s *Step, tell func(experts []int32)) error
	// Foresees is the route that Foresee speaks of after a segment, the next one. It is not ok where none can be foreseen;
	// see Blind.
	Foresees(segment int) (route int, ok bool)
	// Foresee tells what the next route's norm and router make of the residual stream as it is when the segment was
	// enqueued: of a route, as it took it in. margins are those of all rows, [rows][experts], see Margins, and valid until
	// tell returns, which is before Foresee does. The route's own result does not depend on it.
	Foresee(segment int, s *Step, tell func(margins []int8)) error
	// Finish ends a step, whether or not all its segments were enqueued. done is called once, when nothing of it is
	// running any more and what it computed is there: by any goroutine, and maybe before Finish returns. Its error
	// strikes the steps that were enqueued after this one, too.
	Finish(s *Step, done func(error))
	// In sets a value that a segment takes from one that is computed elsewhere, just before it is enqueued: row after
	// row. Out copies a value that a segment hands on, just after it was enqueued, and waits for it.
	In(v ir.Value, s *Step, rows []float32) error
	Out(v ir.Value, s *Step, rows []float32) error

	Memory() Memory
	// Close waits for steps in flight, whose ends are told, and frees the memory. Nothing is uploaded meanwhile.
	Close() error
}

// Work is a part of a segment of a model that has Config.Slots. Over its parts, each of the segment's groups of
// matrices is named once: of experts those that rows chose, others may be; of an end none if no row is wanted. A
// segment that is neither in experts nor in pieces has one such group at most, and one part.
type Work struct {
	Segment int
	Groups  []int  // that are there
	Last    bool   // no part follows: what the segment does after its products comes with this one
	Done    func() // the groups are leased no more; called once, even after an error, by any goroutine; may be nil
}

// Step is one pass over the program for rows of several sequences. It is reused from step to step: slices are
// refilled, not reallocated.
type Step struct {
	Tokens []int32 // one for each row; below 0, see DrawOf
	Spans  []Span  // sequences of the step; their rows tile Tokens in order
	Wanted []int32 // rows whose logits are wanted, ascending
	Draws  []Draw  // how each wanted row's token is drawn, by a device that draws; else empty
	Prompt bool    // rows are of prompts, none of an answer; said where that makes a difference: see Traits.Apart
	Detail bool    // a device that Times has to time each segment, whatever that costs: see Ran

	// Out: [len(Wanted)][OutputWidth], logits of the rows that are not drawn, or vectors; room for MaxWanted of them.
	Logits []float32
	Drawn  []int32 // out: a token for each of Draws
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
type Span struct {
	Row, Rows int
	Pos       int
	Tables    []Table // by cache class
}

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
