package cpu

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// slots is memory with a row of width values for each slot of a dispatch.
type slots struct {
	data  []float32
	width int
}

func (s *slots) row(slot int) []float32 { return s.data[slot*s.width:][:s.width] }

// stack is one matrix of each expert, and where its results go.
type stack struct {
	ref    ir.Ref
	w      []*kernels.Matrix // by expert
	groups []int             // by expert
	bias   []float32         // [experts][outputs]; nil: none
	out    slots
	joined bool // the matrices also hold the rows of another stack (gate and up)
	row    int  // the first of this stack's rows
}

// tiles is the number of tiles of its own rows.
func (s *stack) tiles() int {
	if s.joined {
		return s.out.width / kernels.TileRows
	}
	return s.w[0].Tiles()
}

// multiply computes a chunk's outputs for slots from slot on, from the activations in the worker's memory.
func (s *stack) multiply(ex *execution, work *workspace, c *expertChunk, slot int) {
	out, x, w := s.out.data[slot*s.out.width:], &work.acts, s.w[c.expert]
	if s.joined {
		work.head = w.Part(s.row, s.out.width)
		w = &work.head
	}
	var bias []float32
	if s.bias != nil {
		bias = s.bias[c.expert*s.out.width:][:s.out.width]
	}
	work.strips.MatMul(ex.device.set, out, s.out.width, w, bias, c.from, c.to, x)
}

// observe adds a row of inputs to config.Inputs, if set. One chunk of each expert does so, row after row.
func (s *stack) observe(ex *execution, c *expertChunk, x []float32) {
	if ex.config.Inputs != nil && c.from == 0 && s.row == 0 {
		ex.config.Inputs.Add(s.ref, c.expert, 0, x)
	}
}

// part is the part of a slot's row that the chunk computes.
func (s *stack) part(c *expertChunk, slot int) []float32 { return c.outputs(s.out.row(slot)) }

// expansion multiplies the rows of the step by the gate and up matrices of their experts, and activates the results. A
// chunk does the same tiles of both.
type expansion struct {
	ex      *execution
	wanted  bool
	used    int
	in      place
	weights place // that route wrote
	gate    stack
	up      stack
	xGate   *kernels.Acts // of the step's rows
	xUp     *kernels.Acts // the same if both matrices take the same form; nil without a gate, and there is no up
	act     ir.Act
	limit   float32
	upCap   float32 // see ir.ExpertsArgs
	before  bool    // weights multiply the input, and so the outputs of its products, which have no biases
}

func (x *expansion) chunks() int {
	d := &x.ex.dispatch
	if !x.ex.again {
		if err := d.sort(x.ex, &x.weights, x.ex.rows(x.wanted), x.used); err != nil {
			x.ex.fail(err)
			return 0
		}
	}
	if x.xUp == nil {
		return d.divide(x.ex, &x.gate)
	}
	return d.divide(x.ex, &x.gate, &x.up)
}

func (x *expansion) run(worker, chunk int) {
	ex, work := x.ex, &x.ex.workers[worker]
	c := &ex.dispatch.chunks[chunk]
	from, to := ex.dispatch.slots(c.expert)
	for slot := from; slot < to; slot += work.gathered {
		rows := ex.dispatch.row[slot:min(slot+work.gathered, to)]
		work.gather(x.xGate, rows)
		x.gate.multiply(ex, work, c, slot)
		if x.xUp == nil {
			x.activate(c, slot, rows)
			continue
		}
		if x.xUp != x.xGate {
			work.gather(x.xUp, rows)
		}
		x.up.multiply(ex, work, c, slot)
		for i := range rows {
			gate, up, weight := x.gate.part(c, slot+i), x.up.part(c, slot+i), float32(1)
			if x.before {
				weight = ex.at(&x.weights, int(rows[i]))[c.expert]
				ex.device.isa.Scale(gate, gate, weight)
				ex.device.isa.Scale(up, up, weight)
			}
			if x.upCap > 0 {
				ex.device.isa.SoftCap(up, up, x.upCap)
			}
			ex.glu(x.act, x.limit, gate, gate, up)
			x.observe(c, ex.at(&x.in, int(rows[i])), weight)
		}
	}
}

// activate ends the rows of experts without a gate.
func (x *expansion) activate(c *expertChunk, slot int, rows []int32) {
	for i, row := range rows {
		h := x.gate.part(c, slot+i)
		x.ex.glu(x.act, x.limit, h, h, nil)
		x.observe(c, x.ex.at(&x.in, int(row)), 1)
	}
}

// observe adds a row to config.Inputs as it is multiplied.
func (x *expansion) observe(c *expertChunk, row []float32, weight float32) {
	if x.ex.config.Inputs == nil || c.from > 0 {
		return
	}
	if x.before {
		row = slices.Clone(row)
		x.ex.device.isa.Scale(row, row, weight)
	}
	x.gate.observe(x.ex, c, row)
	if x.xUp != nil {
		x.up.observe(x.ex, c, row)
	}
}

// gather copies some rows of the step to the worker's activations. A single row is used in place.
func (w *workspace) gather(x *kernels.Acts, rows []int32) {
	w.acts = kernels.Acts{Form: x.Form, Cols: x.Cols, Rows: len(rows), Stride: x.Cols}
	if x.Form == kernels.Plain {
		w.acts.Float = w.gatherFloats
		if len(rows) == 1 {
			w.acts.Float = x.Float[int(rows[0])*x.Stride:]
			return
		}
		for i, r := range rows {
			copy(w.gatherFloats[i*x.Cols:][:x.Cols], x.Float[int(r)*x.Stride:])
		}
		return
	}
	if len(rows) == 1 {
		w.acts.Blocks = x.Blocks[int(rows[0])*x.Form.RowBytes(x.Cols):]
		return
	}
	w.placeActs()
	for i, r := range rows {
		w.acts.CopyRow(i, x, int(r))
	}
}

// placeActs gives the worker's activations their memory.
func (w *workspace) placeActs() {
	w.acts.Blocks = bytesOf(w.gatherFloats)
	if w.acts.Rows >= kernels.TileRows {
		w.acts.Tiles = w.gatherTiles
	}
}

// contraction multiplies the results of an expansion by the down matrices. Each chunk prepares its expert's activations
// again: that costs less than another barrier.
type contraction struct {
	ex     *execution
	hidden slots
	form   kernels.Form
	down   stack
	what   string
}

func (o *contraction) chunks() int { return o.ex.dispatch.divide(o.ex, &o.down) }

func (o *contraction) run(worker, chunk int) {
	ex, work := o.ex, &o.ex.workers[worker]
	c := &ex.dispatch.chunks[chunk]
	from, to := ex.dispatch.slots(c.expert)
	for slot := from; slot < to; slot += work.gathered {
		if err := o.prepare(work, slot, min(slot+work.gathered, to)); err != nil {
			ex.fail(err)
			return
		}
		o.down.multiply(ex, work, c, slot)
		for i := range work.acts.Rows {
			o.down.observe(ex, c, o.hidden.row(slot+i))
		}
	}
}

// prepare prepares slots [from, to) in the worker's activations.
func (o *contraction) prepare(w *workspace, from, to int) error {
	width := o.hidden.width
	w.acts = kernels.Acts{Form: o.form, Cols: width, Rows: to - from, Stride: width}
	if o.form == kernels.Plain {
		w.acts.Float = o.hidden.data[from*width:]
	} else {
		w.placeActs()
	}
	for slot := from; slot < to; slot++ {
		x := o.hidden.data[slot*width:][:width]
		err := o.ex.device.set.Quantize(&w.acts, slot-from, x)
		if o.form == kernels.Plain {
			err = o.ex.finite(x, o.what)
		}
		if err != nil {
			return fmt.Errorf("row %d: %s: %w", o.ex.dispatch.row[slot], o.what, err)
		}
	}
	return nil
}

// combineOp adds the results of a row's experts, times their weights.
type combineOp struct {
	out, weights place
	used         int
	down         slots
	before       bool // the weights were applied to the inputs
}

func (o *combineOp) row(ex *execution, _, r int) error {
	y, weights := ex.at(&o.out, r), ex.at(&o.weights, r)
	clear(y)
	e := -1
	for _, slot := range ex.dispatch.slot[r*o.used:][:o.used] {
		if slot < 0 {
			break
		}
		for e++; weights[e] == 0; e++ {
		}
		weight := weights[e]
		if o.before {
			weight = 1
		}
		ex.device.isa.Merge(y, o.down.row(int(slot)), 1, weight)
	}
	return nil
}
