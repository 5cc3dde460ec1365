package cpu

import (
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// scanGrain is about how many elements of states a chunk processes.
const scanGrain = 32 << 10

// heads is how a scan is divided. A chunk is some heads of a span, whose rows it takes one after another, in the
// recurrent form, however many there are: prompts get the same bits as answers, and a head's state stays in L1 or L2.
type heads struct {
	ex     *execution
	args   *ir.ScanArgs
	out    place
	state  *state
	stride int // of a state's rows
	each   int // heads of a chunk in the running step
}

func (s *heads) parts() int { return (s.args.Heads + s.each - 1) / s.each }

func (s *heads) chunks() int {
	spans := len(s.ex.step.Spans)
	rows := max(1, s.ex.step.Rows()/spans)
	s.each = max(1, scanGrain/(rows*s.args.KDim*s.stride))
	return spans * s.parts()
}

// rowScan brings the state of a head to a row's position, and reads it.
type rowScan interface {
	row(r *vec.Recurrence, row, h int)
}

// visit computes the heads of a chunk, row by row.
func (s *heads) visit(worker, chunk int, of rowScan) {
	span, part := &s.ex.step.Spans[chunk/s.parts()], chunk%s.parts()
	for h := part * s.each; h < min((part+1)*s.each, s.args.Heads); h++ {
		s.head(&s.ex.workers[worker], span, h, of)
	}
}

// head computes one head for the rows of a span.
func (s *heads) head(work *workspace, span *backend.Span, h int, of rowScan) {
	r, memory := &work.recurrence, work.state
	*r = vec.Recurrence{N: s.stride, Stride: s.stride, W: memory[:s.stride], Y: memory[s.stride:][:s.stride]}
	block, kept := int32(-1), span.Kept()
	for i := range span.Rows {
		pos := span.Pos + i
		if b := s.state.block(span, pos); b != block && i < kept {
			r.S, block = s.begin(span, pos, b, h), b
		}
		if i == kept { // later rows are proposed: they leave nothing in the block
			trial := memory[2*s.stride:][:len(r.S)]
			copy(trial, r.S)
			r.S = trial
		}
		of.row(r, span.Row+i, h)
	}
}

// begin sets a block's state to what the row at position pos goes on from.
func (s *heads) begin(span *backend.Span, pos int, block int32, h int) []float32 {
	size := s.args.KDim * s.stride
	state := s.state.at(block)[h*size:][:size]
	if pos == 0 {
		clear(state)
	} else if before := s.state.block(span, pos-1); before != block {
		copy(state, s.state.at(before)[h*size:])
	}
	return state
}

func (b *binder) heads(n *ir.Node) heads {
	return heads{ex: &b.m.execution, args: n.Scan, out: b.layout.place(n.Out), state: &b.m.states[n.State],
		stride: strideOfScan(n.Scan)}
}

// scan is an SSMScan or a DeltaRule.
type scan struct {
	heads
	delta       bool     // it is a DeltaRule
	in          [5]place // q, k, v, δ, β
	decay       []float32
	shift, skip []float32
}

func (s *scan) run(worker, chunk int) { s.visit(worker, chunk, s) }

// row updates the state by one row, and reads it.
func (s *scan) row(r *vec.Recurrence, row, h int) {
	isa, a, ex := s.ex.device.isa, s.args, s.ex
	keys, values := a.Group(h)*a.KDim, h*a.VDim
	r.Q, r.K = ex.at(&s.in[0], row)[keys:][:a.KDim], ex.at(&s.in[1], row)[keys:][:a.KDim]
	v := ex.at(&s.in[2], row)[values:][:a.VDim]
	step := s.decays(r, row, h)
	if s.delta {
		p := vec.Product{C: r.W, A: r.K, Rows: 1, K: a.KDim, N: s.stride, BStride: s.stride}
		isa.Panel(&p, r.S, nil)
		beta := ex.at(&s.in[4], row)[h]
		isa.Merge(r.W[:a.VDim], v, -beta*r.Decay, beta)
	} else {
		isa.Scale(r.W[:a.VDim], v, step)
		clear(r.W[a.VDim:])
	}
	isa.Recur(r)
	y := ex.at(&s.out, row)[values:][:a.VDim]
	isa.Scale(y, r.Y[:a.VDim], a.Scale)
	if s.skip != nil {
		isa.Merge(y, v, 1, s.skip[h])
	}
}

// decays sets how much of the state a row keeps, and returns its δ. By key, the state itself decays.
func (s *scan) decays(r *vec.Recurrence, row, h int) float32 {
	n := len(s.shift) / s.args.Heads
	deltas, shift := s.ex.at(&s.in[3], row)[h*n:][:n], s.shift[h*n:][:n]
	if !s.args.ByKey {
		step := float32(softplus(float64(deltas[0]) + float64(shift[0])))
		r.Decay = float32(math.Exp(float64(s.decay[h] * step)))
		return step
	}
	r.Decay = 1
	for i, v := range deltas {
		keep := float32(math.Exp(float64(s.decay[h]) * softplus(float64(v)+float64(shift[i]))))
		line := r.S[i*s.stride:][:s.stride]
		s.ex.device.isa.Scale(line, line, keep)
	}
	return 0
}

// softplus is ln(1+eˣ).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func (b *binder) scan(n *ir.Node) *scan {
	s := &scan{
		heads: b.heads(n), delta: n.Op == ir.DeltaRule, decay: b.vector(n.W), shift: b.vector(n.B), skip: b.vector(n.Scan.D),
	}
	for i, v := range n.In {
		s.in[i] = b.layout.place(v)
	}
	return s
}
