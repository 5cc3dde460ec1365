package ir

import (
	"fmt"
	"math"
)

// ScanArgs configures SSMScan and DeltaRule: q and k [rows][Groups·KDim], v [rows][Heads·VDim], δ and β [rows][Heads] →
// [rows][Heads·VDim]. Each head keeps a matrix S of KDim × VDim, zero before the first position. Head h reads the q and
// k of group h/(Heads/Groups), or, Tiled, of group h mod Groups. δ is Softplus(δ+B) = ln(1+e^(δ+B)) before it is used.
// ByKey, the rows of a matrix decay each at its own rate: of an SSMScan, whose heads have one feature then, A has a
// value for each row, [Heads][KDim]; of a DeltaRule δ and B have. A WKV always decays so: see op_wkv.go.
// Sources: Mamba, arXiv:2312.00752; Mamba-2, arXiv:2405.21060; gated delta networks, arXiv:2412.06464; Kimi Delta
// Attention, arXiv:2510.26692.
type ScanArgs struct {
	Heads, Groups, KDim, VDim int
	Tiled, ByKey              bool
	Before                    bool // WKV: y reads the state before the row
	Scale                     float32
	Slopes                    float32 // WKV: heads decay by Slope, and there is no g; 0: there is
	D                         Ref     // SSMScan: the factor of v that is added to y, bypassing the state; NoRef: 0
}

// Group is the group whose q and k head h reads.
func (a *ScanArgs) Group(h int) int {
	if a.Tiled {
		return h % a.Groups
	}
	return h / (a.Heads / a.Groups)
}

// Slope is the decay of head h where they are constant, as a logarithm: −Slopes·2^(−8(h+1)/Heads), as of ALiBi.
func (a *ScanArgs) Slope(h int) float64 {
	return -float64(a.Slopes) * math.Exp2(-8*float64(h+1)/float64(a.Heads))
}

// String shows the sizes.
func (a *ScanArgs) String() string {
	s := fmt.Sprintf("heads=%d/%d dims=%d/%d scale=%g", a.Heads, a.Groups, a.KDim, a.VDim, a.Scale)
	if a.Tiled {
		s += " tiled"
	}
	if a.ByKey {
		s += " by key"
	}
	if a.Before {
		s += " before"
	}
	if a.Slopes != 0 {
		s += fmt.Sprintf(" slopes=%g", a.Slopes)
	}
	return s
}

// costOfScan counts each value of the state three times: it decays, takes in a row and is read.
func costOfScan(_ *Program, n *Node) Cost {
	return Cost{Scanned: 3 * float64(n.Scan.Heads*n.Scan.KDim*n.Scan.VDim)}
}

// ssmScanOp describes SSMScan.
var ssmScanOp = operation{
	name: "ssm scan", inputs: [2]int{4, 4}, w: required, b: required, use: Vector, fits: fitsScan,
	loop: (*Frame).scan, cost: costOfScan, keeps: true, more: func(n *Node) []operand { return []operand{{n.Scan.D, optional, Vector}} },
	args: func(n *Node) string { return fmt.Sprintf("state=%d %s", n.State, n.Scan) },
	cases: []Case{
		{"ssm scan", func(b *Builder, x Value, n int) Value {
			return CaseScan(b, x, false, ScanArgs{Heads: 6, Groups: 2, KDim: 16, VDim: 24, Scale: 1})
		}},
		{"ssm scan tiled", func(b *Builder, x Value, n int) Value {
			return CaseScan(b, x, false, ScanArgs{Heads: 4, Groups: 2, KDim: 7, VDim: 96, Scale: 2, Tiled: true})
		}},
		{"ssm scan by key", func(b *Builder, x Value, n int) Value {
			return CaseScan(b, x, false, ScanArgs{Heads: 600, Groups: 1, KDim: 5, VDim: 1, Scale: 0.5, ByKey: true})
		}},
	},
}

// deltaRuleOp describes DeltaRule.
var deltaRuleOp = operation{
	name: "delta rule", inputs: [2]int{5, 5}, w: required, b: required, use: Vector, fits: fitsScan,
	loop: (*Frame).scan, cost: costOfScan, keeps: true, more: func(n *Node) []operand { return []operand{{n.Scan.D, none, Vector}} },
	args: func(n *Node) string { return fmt.Sprintf("state=%d %s", n.State, n.Scan) },
	cases: []Case{
		{"delta rule", func(b *Builder, x Value, n int) Value {
			return CaseScan(b, x, true, ScanArgs{Heads: 6, Groups: 3, KDim: 16, VDim: 24, Scale: 0.25})
		}},
		{"delta rule tiled", func(b *Builder, x Value, n int) Value {
			return CaseScan(b, x, true, ScanArgs{Heads: 4, Groups: 2, KDim: 32, VDim: 128, Scale: 1, Tiled: true})
		}},
		{"delta rule by key", func(b *Builder, x Value, n int) Value {
			return CaseScan(b, x, true, ScanArgs{Heads: 4, Groups: 4, KDim: 24, VDim: 20, Scale: 0.5, ByKey: true})
		}},
	},
}

// SSMScan is the scan of Mamba-2, and by key of Mamba. decay, shift and skip are the full names of A, of what is added
// to δ, and of D; skip may be empty. Files of Mamba-2 have A and D as columns: a row for each head.
func (b *Builder) SSMScan(q, k, v, delta Value, decay, shift, skip string, a ScanArgs) Value {
	a.D = NoRef
	if skip != "" && a.ByKey {
		a.D = b.vector(skip, a.Heads)
	} else if skip != "" {
		a.D = b.weight(skip, a.Heads, 1, Vector)
	}
	w := b.weight(decay, a.Heads, a.rates(), Vector)
	return b.scan(Node{Op: SSMScan, In: []Value{q, k, v, delta}, W: w, Scan: &a}, b.vector(shift, a.Heads))
}

// DeltaRule is the update of gated delta networks, and by key of Kimi Delta Attention, whose files have A as a column.
func (b *Builder) DeltaRule(q, k, v, delta, beta Value, decay, shift string, a ScanArgs) Value {
	a.D = NoRef
	n := Node{Op: DeltaRule, In: []Value{q, k, v, delta, beta}, Scan: &a}
	if a.ByKey {
		n.W = b.weight(decay, a.Heads, 1, Vector)
	} else {
		n.W = b.vector(decay, a.Heads)
	}
	return b.scan(n, b.vector(shift, a.Heads*a.rates()))
}

// rates is how many rates of decay, by rows of its matrix, a head has in A, or in the δ and B of a DeltaRule.
func (a *ScanArgs) rates() int {
	if a.ByKey {
		return a.KDim
	}
	return 1
}

func (b *Builder) scan(n Node, shift Ref) Value {
	a := n.Scan
	n.B = shift
	n.State = b.state(a.Heads * a.KDim * a.VDim)
	return b.add(n, a.Heads*a.VDim)
}

func fitsScan(p *Program, n *Node) error {
	a := n.Scan
	if a.Heads <= 0 || a.Groups <= 0 || a.Heads%a.Groups != 0 || a.KDim <= 0 || a.VDim <= 0 {
		return fmt.Errorf("%d heads of %d cannot share %d groups of %d", a.Heads, a.VDim, a.Groups, a.KDim)
	}
	if a.ByKey && n.Op == SSMScan && a.VDim != 1 {
		return fmt.Errorf("heads of %d features decay by key, want 1", a.VDim)
	}
	deltas, decays := a.Heads, a.Heads*a.rates()
	if n.Op == DeltaRule {
		deltas, decays = decays, deltas
	}
	want := []int{a.Groups * a.KDim, a.Groups * a.KDim, a.Heads * a.VDim, deltas, a.Heads}[:len(n.In)]
	if err := a.widths(p, n, want); err != nil {
		return err
	}
	for _, at := range []struct {
		r Ref
		n int
	}{{n.W, decays}, {n.B, deltas}, {a.D, a.Heads}} {
		if at.r != NoRef && p.Weights[at.r].Rows*p.Weights[at.r].Cols != at.n {
			w := &p.Weights[at.r]
			return fmt.Errorf("%s is %d×%d, want %d values for %d heads", w.Name, w.Rows, w.Cols, at.n, a.Heads)
		}
	}
	return fitsState(p, n, a.Heads*a.KDim*a.VDim)
}

// widths checks the widths of a scan's inputs and of its result.
func (a *ScanArgs) widths(p *Program, n *Node, want []int) error {
	for i, v := range n.In {
		if p.Widths[v] != want[i] {
			return fmt.Errorf("input %d has %d features, want %d", i, p.Widths[v], want[i])
		}
	}
	if p.Widths[n.Out] != a.Heads*a.VDim {
		return fmt.Errorf("%d features, want %d", p.Widths[n.Out], a.Heads*a.VDim)
	}
	if !finite(float64(a.Scale)) {
		return fmt.Errorf("scale is %v", a.Scale)
	}
	return nil
}

// scan keeps the matrix of each head as KDim rows of VDim.
func (f *Frame) scan(n *Node) {
	a, state := n.Scan, f.States[n.State]
	decay, shift := f.table(n.W), f.table(n.B)
	var skip []float32
	if a.D != NoRef {
		skip = f.table(a.D)
	}
	for i, span := range f.Spans {
		for j := range span.Rows {
			row, next := span.Row+j, state.After(i, span.Pos+j)
			copy(next, state.Before(i, span.Pos+j))
			x := Scanned{Q: f.row(n.In[0], row), K: f.row(n.In[1], row), V: f.row(n.In[2], row), Delta: f.row(n.In[3], row)}
			if n.Op == DeltaRule {
				x.Beta = f.row(n.In[4], row)
			}
			a.Next(f.row(n.Out, row), next, &x, decay, shift, skip)
		}
	}
}

// Scanned is a scan's inputs in one row. Beta is nil but for a DeltaRule.
type Scanned struct{ Q, K, V, Delta, Beta []float32 }

// Next brings the states of all heads to the position of x and reads them. decay, shift and skip have their values head
// by head; a skip of nil is zero.
func (a *ScanArgs) Next(y, state []float32, x *Scanned, decay, shift, skip []float32) {
	for h := range a.Heads {
		keep, delta := a.keeps(x, h, decay, shift)
		q, k := part(x.Q, a.Group(h), a.Groups), part(x.K, a.Group(h), a.Groups)
		v, out, matrix := part(x.V, h, a.Heads), part(y, h, a.Heads), part(state, h, a.Heads)
		for c := range out {
			add := delta * float64(v[c])
			if x.Beta != nil {
				add = float64(x.Beta[h]) * (float64(v[c]) - a.known(matrix, k, keep, c))
			}
			read := 0.0
			for i := range k {
				at := &matrix[i*a.VDim+c]
				*at = float32(keep[i]*float64(*at) + float64(k[i])*add)
				read += float64(*at) * float64(q[i])
			}
			if out[c] = float32(read * float64(a.Scale)); skip != nil {
				out[c] += float32(float64(skip[h]) * float64(v[c]))
			}
		}
	}
}

// keeps is what each row of a head's matrix keeps, and the head's last δ.
func (a *ScanArgs) keeps(x *Scanned, h int, decay, shift []float32) (keep []float64, delta float64) {
	keep = make([]float64, a.KDim)
	decays, deltas, shifts := part(decay, h, a.Heads), part(x.Delta, h, a.Heads), part(shift, h, a.Heads)
	for i := range keep {
		at := min(i, len(deltas)-1)
		delta = Softplus.Of(float64(deltas[at]) + float64(shifts[at]))
		keep[i] = math.Exp(float64(decays[min(i, len(decays)-1)]) * delta)
	}
	return keep, delta
}

// known is what a head's matrix already holds for a key, in column c: S′ᵀk.
func (a *ScanArgs) known(matrix, k []float32, keep []float64, c int) (sum float64) {
	for i := range k {
		sum += keep[i] * float64(matrix[i*a.VDim+c]) * float64(k[i])
	}
	return sum
}

// CaseScan is a scan whose inputs are parts of x, some through a gate.
func CaseScan(b *Builder, x Value, delta bool, a ScanArgs) Value {
	n := b.Width(x)
	keys, deltas := a.Groups*a.KDim, a.Heads
	if delta {
		deltas *= a.rates()
	}
	all := b.Linear(x, "in", 2*keys+a.Heads*a.VDim+deltas+a.Heads)
	q, k := b.L2Norm(b.Slice(all, 0, keys), a.KDim, 1e-6), b.L2Norm(b.Slice(all, keys, keys), a.KDim, 1e-6)
	v, gates := b.Slice(all, 2*keys, a.Heads*a.VDim), b.Slice(all, 2*keys+a.Heads*a.VDim, deltas+a.Heads)
	step := b.Slice(gates, 0, deltas)
	if !delta {
		return b.Linear(b.SSMScan(q, k, v, step, "a", "dt.bias", "d", a), "out", n)
	}
	beta := b.Act(Sigmoid, b.Slice(gates, deltas, a.Heads))
	return b.Linear(b.DeltaRule(q, k, v, step, beta, "a", "dt.bias", a), "out", n)
}
