package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// Command is a launch of a stream.
type Command struct {
	Barrier bool // it waits for all launches before it
	Launch  kernel.Launch
	Segment int
}

// Places says where the memory of one stream lies.
type Places struct {
	Scratch       uint64 // values
	Drawn, Best   uint64 // tokens drawn by the step before, by wanted row; memory for drawing
	Entry, Tables uint64 // of the step: Entry's block, and block tables
	Result        uint64
	// where the tables of the addresses of a part's experts begin; 0: the stream has no part of experts
	Experts uint64
	Box     *kernel.Box                         // of the team's; nil: the device is alone
	Listed  uint64                              // ids of the pairs of a part
	Matrix  func(*kernel.Matrix) *kernel.Matrix // where a matrix that may move lies now; nil: where it says
}

// stream expands launches.
type stream struct {
	*Plan
	shape  *Shape
	at     *Places
	wanted bool // rows of the launch are the wanted ones
	n      int  // rows of the launch
	seg    int

	exchanges int // the number of the next one in the step

	out  []Command
	uses kernel.Uses // of the launch at hand
	open kernel.Uses // of all since the last barrier
}

// Stream is the launches of a shape of steps in order, each with a barrier before it where it needs one: it reads what
// a launch since the last barrier wrote, or it writes what such a launch reads or wrote. What was launched before the
// stream is ordered before all of it by whoever records it.
func (p *Plan) Stream(sh *Shape, at *Places) []Command {
	x := &stream{Plan: p, shape: sh, at: at, exchanges: p.exchanges(sh.From, false)}
	for i := range p.launches {
		if l := &p.launches[i]; p.takes(sh, i) {
			x.expand(l)
		}
	}
	if sh.Portion != Before && sh.Portion != Among {
		x.end()
	}
	return x.out
}

// expand adds the kernels of a launch.
func (x *stream) expand(l *launch) {
	x.rowsOf(l.wanted)
	if x.seg = l.segment; x.n > 0 {
		l.kernels.emit(x)
	}
}

// rowsOf sets whether the launches that follow have all rows, or the wanted ones.
func (x *stream) rowsOf(wanted bool) {
	x.wanted, x.n = wanted, x.shape.Rows
	if wanted {
		x.n = x.shape.Wanted
	}
}

// launch adds a kernel's launch, with a barrier before it if it needs one.
func (x *stream) launch(k kernel.Launch) {
	x.uses.Reset()
	k.Uses(&x.uses)
	barrier := meet(x.uses.Reads, x.open.Writes) || meet(x.uses.Writes, x.open.Writes) ||
		meet(x.uses.Writes, x.open.Reads)
	if barrier {
		x.open.Reset()
	}
	x.open.Reads = append(x.open.Reads, x.uses.Reads...)
	x.open.Writes = append(x.open.Writes, x.uses.Writes...)
	x.out = append(x.out, Command{barrier, k, x.seg})
}

func meet(a, b []kernel.Use) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Meets(y) {
				return true
			}
		}
	}
	return false
}

// where is the address of a place in the first row.
func (x *stream) where(p place) uint64 { return x.row(p.b, 0) + uint64(4*p.from) }

// blob is the address of a buffer.
func (x *stream) blob(b *live.Buffer) uint64 { return x.row(b, 0) }

// row is the address of a buffer's row.
func (x *stream) row(b *live.Buffer, r int) uint64 {
	at := x.at.Scratch + uint64(b.Offset)
	if b.Form == asBlob {
		return at
	}
	return at + uint64(bytesOf(b, r))
}

// entry is the address at an offset of the step's entry.
func (x *stream) entry(offset int) uint64 { return x.at.Entry + uint64(offset) }

// count is the address of the number of rows in use from row r on, a multiple of MaxColumns.
func (x *stream) count(r int) uint64 {
	i := 0
	if x.wanted {
		i = 1
	}
	return x.entry(x.Entry.Left[i]) + uint64(4*(r/kernel.MaxColumns))
}

// matrix is a matrix at the address where it lies now.
func (x *stream) matrix(w *kernel.Matrix) *kernel.Matrix {
	if x.at.Matrix == nil {
		return w
	}
	return x.at.Matrix(w)
}
