package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// execution is what all phases of a model share: the memory of values and workers, and the running step.
type execution struct {
	device *device
	config backend.Config

	scratch  []float32   // values of the step and prepared activations, by place
	workers  []workspace // by worker
	split    split
	dispatch dispatch

	// The running step.
	step   *backend.Step
	pos    []int // by row
	span   []int // by row
	logits []float32
	running

	failed  atomic.Bool
	mu      sync.Mutex
	failure error // the first one of the segment; under mu
}

// running is what of a segment is computed now.
type running struct {
	part  []bool       // by group: whether the running part has it; nil: the segment runs whole
	again bool         // this part is not the segment's first
	stop  *atomic.Bool // Work.Stop
}

// segment is a bound segment.
type segment struct {
	name    string
	phases  []runner
	before  int   // number of phases before those that are repeated for each part
	parts   int   // number of the repeated phases; 0: the segment has one part
	guarded bool  // it reads mapped memory that may become unreadable
	ends    bool  // its rows are the wanted ones
	route   place // where a route writes the weights of experts
	used    int   // most experts of a row; 0: it is no route

	stream place      // the residual stream after it, or before it if it is a route
	next   *foresight // foresight of the next route; nil: there is none, or it cannot be foreseen
}

// takes says whether the running part, or the whole segment, has a group.
func (ex *execution) takes(group int) bool { return ex.part == nil || ex.part[group] }

// runner is a phase whose work is split over workers.
type runner interface {
	task
	// chunks prepares the phase for the running step and returns its number of chunks.
	chunks() int
}

// workspace is the memory of one worker.
// Wide: each kind of phase has its own.
type workspace struct {
	queries queries
	halves  []uint16          // one head of K on its way into the cache, in half precision
	bytes   []int8            // the same, as int8
	row     kernels.RowBuffer // of an embedding
	strips  kernels.Strips    // of weights in place
	choice  choice
	between []float32 // what an adapter's first factor makes of a row
	updated []float32 // and what its second factor makes of that, some outputs of it
	state   []float32 // of a head, or of some channels, during its computation

	recurrence vec.Recurrence // of the head

	gathered     int       // rows of an expert that gatherFloats can hold
	gatherFloats []float32 // prepared activations of an expert's rows, or windows of a convolution
	gatherTiles  []byte    // their Acts.Tiles; nil: none
	acts         kernels.Acts
	head         kernels.Matrix // part of a matrix that is multiplied
	_            [64]byte
}

// place is where rows of float32 lie: at an offset in the scratch memory, or in the caller's logits.
type place struct {
	logits             bool
	off, stride, width int // float32
}

// at is row r of a place.
func (ex *execution) at(p *place, r int) []float32 {
	at := p.off + r*p.stride
	return ex.area(p)[at : at+p.width : at+p.width]
}

// area is the memory that a place is in.
func (ex *execution) area(p *place) []float32 {
	if p.logits {
		return ex.logits
	}
	return ex.scratch
}

// rows is the number of rows of a phase in the running step.
func (ex *execution) rows(wanted bool) int {
	if wanted {
		return len(ex.step.Wanted)
	}
	return ex.step.Rows()
}

// place is the position of row r on each axis.
func (ex *execution) place(r int) ir.Place {
	span := &ex.step.Spans[ex.span[r]]
	return span.Place(r - span.Row)
}

// load finds the position and the span of every row.
func (ex *execution) load(s *backend.Step) {
	ex.step, ex.logits = s, s.Logits
	for i := range s.Spans {
		span := &s.Spans[i]
		for j := range span.Rows {
			ex.pos[span.Row+j], ex.span[span.Row+j] = span.Pos+j, i
		}
	}
}

// fail records the first error of a segment. Chunks that run meanwhile finish.
func (ex *execution) fail(err error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.failure == nil {
		ex.failure = err
	}
	ex.failed.Store(true)
}

func (ex *execution) takeFailure(seg *segment) error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	err := fmt.Errorf("%s: %w", seg.name, ex.failure)
	ex.failure = nil
	ex.failed.Store(false)
	return err
}

// finite is an error if x has a value that is not.
func (ex *execution) finite(x []float32, what string) error {
	if ex.device.isa.Finite(x) {
		return nil
	}
	for i, v := range x {
		if v-v != 0 {
			return fmt.Errorf("%s: value %d is %v: the weights or an earlier result are broken", what, i, v)
		}
	}
	panic("cpu: finite values were taken for others")
}
