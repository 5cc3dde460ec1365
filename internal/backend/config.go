package backend

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Config is the four parts that a model is compiled for. A device reads those that it has to do with.
type Config struct {
	Layout
	Limits
	Weights Weights // nil: Uploaded
	Observer

	// Counted says that the model is asked for its Memory and closed, and nothing else. A device of OwnMemory takes none
	// for it: other models may have all there is.
	Counted bool
}

// Layout says which segments of a program are computed, and in which slots their groups come and go.
type Layout struct {
	Segments []int // ascending; nil: all

	// Devices says who of Traits.Devices computes what of a whole program, by segment; nil: one computes all. Where
	// several do, rows are not drawn by steps in flight: no token is DrawOf one.
	Devices []int

	// Slots are places that hold one group at a time: by slot, which of the groups that ir.Bound.On lists for Segments may
	// be placed in it. A slot for one group is its own: it is uploaded there, and stays. Groups of matrices may share
	// slots. Vectors have slots of their own; tables have, too, or are read in Uploaded.Tables by a device that shares
	// slots. nil: each group has a slot of its own.
	Slots [][]int
	// Kept are groups of Slots that share, ascending, of which a device of OwnMemory keeps a copy in the program's
	// memory, as it computes from them. They are uploaded once, and whenever one is placed it comes from there.
	Kept []int
}

// Limits are the sizes of a model's caches and steps.
type Limits struct {
	KV        KV    // formats of the caches
	Blocks    []int // by cache class: KV blocks of BlockSize positions, for all layers of the class
	MaxRows   int   // most rows of a step
	MaxWanted int   // most rows of a step whose logits are wanted
	MaxSpans  int   // most sequences of a step; 0: as many as rows
	Flight    int   // steps in flight, at most what the device's traits allow; 0: 1
}

// Weights are InPlace or Uploaded. Memory of either may be the mapping of a file: a fault there is the error of a step.
type Weights interface{ weights() }

// InPlace is every weight by Ref, in the file's layout and type, for a device of HostMemory. Nothing is uploaded: what
// the device does not copy it reads there until the model is closed. Slots have no use. Where a
// program is dealt to several devices it is for those of HostMemory.
type InPlace [][]byte

// Uploaded weights come by Model.Upload and Model.Place.
type Uploaded struct {
	// Tables is by Ref, in the file's layout and type, what has no slot of its own and is read row by row all the same:
	// embeddings, also those whose pieces are placed to be multiplied.
	Tables [][]byte
	// Slabs is memory that most of what is uploaded lies in; nil: none. It stays until the model is closed, so that a
	// device of OwnMemory may have its hardware read there what the program would have to copy first.
	Slabs []byte
}

func (InPlace) weights()  {}
func (Uploaded) weights() {}

// InPlace is the weights in place; nil: they are uploaded.
func (c *Config) InPlace() InPlace {
	w, _ := c.Weights.(InPlace)
	return w
}

// Uploaded is of uploaded weights what there is beside them.
func (c *Config) Uploaded() Uploaded {
	w, _ := c.Weights.(Uploaded)
	return w
}

// Observer hears what a model does. What is nil nobody asks for, and it costs nothing.
type Observer struct {
	// Ran hears what a device did beside the program: copies of groups that share slots, and what it computed. By any
	// goroutine; of what a step computed by one, in order, before the step's end is told.
	Ran func(Ran)
	// Detail says whether a device with a Clock has to time each segment of a step, whatever that costs.
	Detail func() bool
	// Inputs adds up what goes into products.
	Inputs *Inputs
}

// Ran is a stretch of a device's work: a group that was copied to a slot, or a segment, or a part of one, that was
// computed. A device with a Clock tells of all segments, by its own clock: when the whole began and ended, and between
// these, where to note the time takes time, it may divide that as an earlier step of the kind was divided; see
// Observer.Detail. Any other one tells of those that compute with groups, as the host sees it, some tens of
// microseconds late.
type Ran struct {
	Step    *Step // nil: of none that is known
	Segment int   // that was computed
	Group   int   // that was copied, or that was computed with; -1: none that shares slots
	Copied  bool
	Landed  time.Time // when what it had to wait for had been copied; zero: it waited for no copy

	Asked, Began, Ended time.Time
}

// Computes says whether the model is compiled for a segment.
func (c *Layout) Computes(segment int) bool {
	return c.Segments == nil || slices.Contains(c.Segments, segment)
}

// Ring is how many steps a model has.
func (c *Limits) Ring() int { return max(1, c.Flight) }

// Spans is how many sequences a step has at most.
func (c *Limits) Spans() int {
	if c.MaxSpans > 0 {
		return min(c.MaxSpans, c.MaxRows)
	}
	return c.MaxRows
}

// Check finds what no device of these traits can compile p for.
func (c *Config) Check(p *ir.Bound, t Traits) error {
	if err := c.KV.checkFor(p.Program); err != nil {
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
	if c.InPlace() != nil && t.Memory != HostMemory && c.Devices == nil {
		return errors.New("weights in place: the device cannot read the program's memory")
	}
	for i, s := range c.Segments {
		if s < 0 || s >= len(p.Segments) || i > 0 && s <= c.Segments[i-1] {
			return fmt.Errorf("segments %v: want ascending numbers below %d", c.Segments, len(p.Segments))
		}
	}
	return errors.Join(c.checkDevices(p, t), c.checkSlots(p, t))
}

// checkDevices wants a whole program dealt to devices that there are, and segments that attend to one cache together.
func (c *Layout) checkDevices(p *ir.Bound, t Traits) error {
	devices := make([]int, len(p.Segments)) // here, or at none
	for s := range devices {
		if !c.Computes(s) {
			devices[s] = -1
		}
	}
	if c.Devices != nil {
		if len(c.Devices) != len(p.Segments) || c.Segments != nil {
			return fmt.Errorf("devices for %d segments: want them for all %d of a whole program", len(c.Devices),
				len(p.Segments))
		}
		for s, d := range c.Devices {
			if d < 0 || d >= len(t.Devices) {
				return fmt.Errorf("segment %d is for device %d of %d", s, d, len(t.Devices))
			}
		}
		devices = c.Devices
	}
	if s, torn := Torn(p.Program, devices); torn {
		return fmt.Errorf("%s attends to a cache that is filled elsewhere", &p.Segments[s])
	}
	return nil
}
