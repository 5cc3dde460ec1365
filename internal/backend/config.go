package backend

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Config says what a model is compiled for, in four parts. A device reads the parts that concern it.
type Config struct {
	Layout
	Limits
	Weights Weights // nil: Uploaded
	Observer

	// Crossing is memory whose parts In and Out are called with: the hardware of a device may copy to and from it
	// directly. It stays until the model is closed. nil: there is none.
	Crossing []byte
	// Counted says that the model will be asked for its Memory and closed, and nothing else. A device of OwnMemory
	// allocates none of its own for it: other models may occupy all there is.
	Counted bool
}

// Layout says which segments of a program are computed, and in which slots their groups come and go.
type Layout struct {
	Segments []int // ascending; nil: all

	// Devices gives, for each segment of a whole program, the index in Traits.Devices of the device that computes it;
	// nil: one computes all. With several devices no token may be DrawOf a draw of a step in flight.
	Devices []int

	// Slots are places that hold one group at a time. Each lists the groups, by their index in what ir.Bound.On lists
	// for Segments, that may be placed in it. A group alone in its slot is uploaded there once, and stays. Groups of
	// matrices may share slots. Vectors have slots of their own; so have tables, unless a device that shares slots
	// reads them in Uploaded.Tables. nil: each group has a slot of its own.
	Slots [][]int
	// Kept are those groups, ascending, among the ones that share slots, of which a device of OwnMemory keeps a copy in
	// the program's memory, in the layout that it computes from. They are uploaded once, and Place copies them from
	// there.
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
	Adapters  int64 // bytes of a device's own memory that adapters may take; 0: no bound
}

// Weights are InPlace or Uploaded. Either may lie in a mapped file: a page that cannot be read is the error of a step.
type Weights interface{ weights() }

// InPlace holds every weight by Ref, in the file's layout and type, for a device of HostMemory. Nothing is uploaded:
// what the device does not copy it reads there until the model is closed. Slots are not used. If a program is divided
// over several devices, it serves those of HostMemory.
type InPlace [][]byte

// Uploaded says that weights come by Model.Upload and Model.Place.
type Uploaded struct {
	// Tables holds by Ref, in the file's layout and type, the weights that have no slot of their own and are read row
	// by row: embeddings, also those whose pieces are placed to be multiplied.
	Tables [][]byte
	// Slabs is the staging memory that most of the uploaded data lies in; nil: none. The slabs stay until the model is
	// closed, so the hardware of a device of OwnMemory may read them directly, and the program copies no data first.
	Slabs []byte
}

func (InPlace) weights()  {}
func (Uploaded) weights() {}

// InPlace returns the weights in place; nil: they are uploaded.
func (c *Config) InPlace() InPlace {
	w, _ := c.Weights.(InPlace)
	return w
}

// Uploaded returns the data beside uploaded weights; it is empty if they are in place.
func (c *Config) Uploaded() Uploaded {
	w, _ := c.Weights.(Uploaded)
	return w
}

// Observer holds the callbacks of who observes a model. One that is nil costs nothing.
type Observer struct {
	// Ran is called with what a device did beside the program: copies of groups to shared slots, and computations. Any
	// goroutine may call it; for a step's computations it is one, in order, before the step's end is reported.
	Ran func(Ran)
	// Detail says whether a device with a Clock has to time each segment of a step, whatever that costs.
	Detail func() bool
	// Inputs sums the squares of what goes into products.
	Inputs *Inputs
	// Stored is called with the rows of K and V that a step stores, by index into ir.Program.KV and head, before they are
	// rounded. Several goroutines may call it at once.
	Stored func(cache, head int, key, value []float32)
}

// Ran is a stretch of a device's work: the copy of a group to a slot, or the computation of a segment or of a part of
// it. A device with a Clock reports all segments, by that clock: the beginning and end of the whole are measured; where
// noting the times between takes time, it may divide the whole as an earlier step of the kind was divided; see
// Observer.Detail. Any other device reports the segments that compute with groups that share slots, as the host sees
// it, some tens of microseconds late.
type Ran struct {
	Step    *Step // nil: of none that is known
	Segment int   // that was computed
	Group   int   // that was copied, or that was computed with; -1: none that shares slots
	Copied  bool
	Landed  time.Time // when the last copy that it had to wait for had ended; zero: it waited for none

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

// Check returns an error if no device of these traits can compile p.
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

// checkDevices checks that a whole program is divided over devices that exist, and that segments that attend to one
// cache are on one device.
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
