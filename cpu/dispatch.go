package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// dispatch says which rows each expert computes in the running step. A slot is one row at one of its experts; slots are
// sorted by expert, then by row, so that an expert's rows lie together. Layers use the same memory one after another.
type dispatch struct {
	first  []int32 // by expert, and one more: its first slot
	next   []int32 // by expert: a cursor
	row    []int32 // by slot
	slot   []int32 // by row, used to a row: its slots in ascending order, −1 where there are fewer
	chunks []expertChunk
}

// expertChunk is what a worker claims: tiles [from, to) of an expert's matrices for all of its rows.
type expertChunk struct{ expert, from, to int }

// outputs is the part of a row of results that the chunk computes.
func (c *expertChunk) outputs(y []float32) []float32 {
	return y[c.from*kernels.TileRows : c.to*kernels.TileRows]
}

// unpackRows is about what reading and unpacking a tile costs, as a number of rows that are multiplied by it.
const unpackRows = 4

// gatherBytes bounds a worker's copy of an expert's rows of activations, so that it stays in L2.
const gatherBytes = 256 << 10

// expertShape is the largest mixture of a program. rowBytes is the largest row of prepared activations, including those
// of heads with matrices of their own.
type expertShape struct{ experts, used, rowBytes int }

func shapeOfExperts(p *ir.Bound) (s expertShape) {
	for i := range p.Segments {
		for j := range p.Segments[i].Nodes {
			n := &p.Segments[i].Nodes[j]
			if n.Op == ir.HeadLinear { // its rows are gathered, too
				s.rowBytes = max(s.rowBytes, rowBytes(kernels.FormOf(p.Types[n.W]), p.Weights[n.W].Cols))
			}
			if n.Op != ir.Experts {
				continue
			}
			e := n.Experts
			s.experts, s.used = max(s.experts, p.Widths[n.In[1]]), max(s.used, e.Used)
			for _, r := range e.Matrices() {
				s.rowBytes = max(s.rowBytes, rowBytes(kernels.FormOf(p.Types[r]), p.Weights[r].Cols))
			}
		}
	}
	return s
}

// rowBytes is the size of a row of activations in a form.
func rowBytes(f kernels.Form, cols int) int {
	if f == kernels.Plain {
		return 4 * cols
	}
	return f.RowBytes(cols)
}

// gathered is the number of rows that a worker gathers at a time.
func (s expertShape) gathered() int {
	if s.rowBytes == 0 {
		return 0
	}
	return max(4, gatherBytes/s.rowBytes&^3)
}

func newDispatch(s expertShape, rows, threads int) dispatch {
	return dispatch{
		first: make([]int32, s.experts+1), next: make([]int32, s.experts),
		row: make([]int32, rows*s.used), slot: make([]int32, rows*s.used),
		chunks: make([]expertChunk, 0, 2*s.experts+2*chunksPerWorker*threads),
	}
}

// sort finds the slots of all rows from the weights that route wrote.
func (d *dispatch) sort(ex *execution, weights *place, rows, used int) error {
	clear(d.first)
	for r := range rows {
		n := 0
		for e, w := range ex.at(weights, r) {
			if w != 0 {
				d.first[e+1]++
				n++
			}
		}
		if n > used {
			return fmt.Errorf("row %d has %d experts, want at most %d", r, n, used)
		}
	}
	for e := range d.next {
		d.next[e] = d.first[e]
		d.first[e+1] += d.first[e]
	}
	for r := range rows {
		slots := d.slot[r*used:][:used]
		n := 0
		for e, w := range ex.at(weights, r) {
			if w != 0 {
				d.row[d.next[e]], slots[n] = int32(r), d.next[e]
				d.next[e]++
				n++
			}
		}
		for ; n < used; n++ {
			slots[n] = -1
		}
	}
	return nil
}

// slots are the slots of an expert.
func (d *dispatch) slots(e int) (from, to int) { return int(d.first[e]), int(d.first[e+1]) }

// divide cuts the experts that have rows into chunks of about equal work. A chunk takes the same tiles of every stack,
// as all have the same number of tiles. Experts whose groups are not in the running part are left out.
func (d *dispatch) divide(ex *execution, stacks ...*stack) int {
	d.chunks = d.chunks[:0]
	total, bytes, tiles, groups := 0, 0, stacks[0].tiles(), stacks[0].groups
	for _, s := range stacks {
		bytes += s.w[0].StripBytes()
	}
	for e, group := range groups {
		if from, to := d.slots(e); to > from && ex.takes(group) {
			total += tiles * (to - from + unpackRows)
		}
	}
	goal := max(total/(chunksPerWorker*ex.device.pool.size()), chunkBytes/bytes*(1+unpackRows), 1)
	for e, group := range groups {
		from, to := d.slots(e)
		if to == from || !ex.takes(group) {
			continue
		}
		if stacks[0].w[e].Data == nil {
			ex.fail(fmt.Errorf("expert %d (group %d) is in no slot, and rows go there", e, group))
			return 0
		}
		pieces := (tiles*(to-from+unpackRows) + goal - 1) / goal
		each := (tiles + pieces - 1) / pieces
		for tile := 0; tile < tiles; tile += each {
			d.chunks = append(d.chunks, expertChunk{e, tile, min(tile+each, tiles)})
		}
	}
	return len(d.chunks)
}
