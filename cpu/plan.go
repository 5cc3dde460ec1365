package cpu

import (
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// Passes of an Experts. A chain after them adds the results of the chosen experts.
const (
	expand   = iota // products by gate and up, and the activation
	contract        // products by down
	combine
)

// Indices of what expand and contract leave; in parts, expand leaves room for contract's result, too.
const (
	leftHidden, leftUp, leftRoom = 0, 1, 2
	leftDown                     = 0
)

// rulesOf are the CPU's planning rules for a program. In parts, the contract pass of one expert comes before the expand
// pass of another, so contract may not write over what expand reads.
func rulesOf(p *ir.Bound, observed, parts bool) live.Rules {
	return live.Rules{
		ByRow: func(op ir.Op) bool { return own(op) && op.ByRow() && op != ir.HeadLinear },
		InPlace: func(op ir.Op) bool {
			switch op {
			case ir.Norm, ir.RoPE, ir.GLU, ir.Add, ir.Mul, ir.Scale, ir.SoftCap, ir.Temper, ir.Leaky, ir.Clip,
				ir.Exceed, ir.Level,
				ir.Affine, ir.Position, ir.TokenType, ir.Adapt:
				return true
			}
			return false
		},
		Form: func(w ir.Ref) live.Form { return liveForm(kernels.FormOf(p.Types[w])) },
		Passes: func(n *ir.Node) []live.Pass {
			e := n.Experts
			hidden := live.Left{Width: e.Used * p.Weights[e.Down].Cols, Until: contract}
			up, down := live.Left{Width: hidden.Width, Until: expand}, live.Left{Width: e.Used * p.Widths[n.Out], Until: combine}
			if e.Ungated() {
				up.Width = e.Used // nobody writes it
			}
			passes := []live.Pass{
				expand:   {Matrices: e.Takes(), Leaves: []live.Left{leftHidden: hidden, leftUp: up}},
				contract: {Leaves: []live.Left{leftDown: down}},
			}
			if parts {
				passes[expand].Leaves, passes[contract].Leaves = append(passes[expand].Leaves, down), nil
			}
			return passes
		},
		Observed: observed,
	}
}

// liveForm and formOf are each other's inverse: Plain rows are read as they are.
func liveForm(f kernels.Form) live.Form { return live.Form(f - kernels.Plain) }
func formOf(f live.Form) kernels.Form   { return kernels.Form(f) + kernels.Plain }

// layout says where all values and prepared rows lie.
type layout struct {
	p       *ir.Bound
	buffers *live.Buffers
	config  backend.Config
	tiled   bool         // prepared rows have Acts.Tiles behind them
	output  *live.Buffer // the buffer in the caller's logits; nil: there is none
	size    int          // of the scratch memory, float32
}

func newLayout(p *ir.Bound, buffers *live.Buffers, c backend.Config, tiled bool) *layout {
	l := &layout{p: p, buffers: buffers, config: c, tiled: tiled}
	if l.leaves() {
		if b, from := buffers.Of(p.End()); from == 0 && b.Width == p.OutputWidth() {
			l.output = b
		}
	}
	l.size = live.Place(buffers.All, func(b *live.Buffer) int {
		if b == l.output {
			return 0
		}
		rows, tiles := l.bytes(b)
		return (rows + tiles) / 4
	})
	return l
}

// bytes is the size of a buffer's rows, and of the Acts.Tiles behind them, in whole cache lines.
func (l *layout) bytes(b *live.Buffer) (rows, tiles int) {
	n := l.config.MaxRows
	if b.Wanted {
		n = l.config.MaxWanted
	}
	row := rowBytes(formOf(b.Form), b.Width)
	if l.tiled && b.Form != 0 {
		tiles = align(kernels.TileBytes(n, row))
	}
	return align(n * row), tiles
}

// down is the buffer for contract's rows.
func (l *layout) down(n *ir.Node) *live.Buffer {
	if left := l.buffers.Left(n, contract); len(left) > 0 {
		return left[leftDown]
	}
	return l.buffers.Left(n, expand)[leftRoom]
}

// place is where a value lies.
func (l *layout) place(v ir.Value) place {
	b, from := l.buffers.Of(v)
	return place{logits: b == l.output, off: b.Offset + from, stride: b.Width, width: l.p.Widths[v]}
}

// leaves says whether the program's end is computed here, and writes logits or vectors.
func (l *layout) leaves() bool {
	if l.p.End() == ir.NoValue {
		return false
	}
	b, _ := l.buffers.Of(l.p.End())
	return b != nil
}

// borders are the places of values that come from other segments or go to them.
func (l *layout) borders() map[ir.Value]place {
	at := map[ir.Value]place{}
	for _, v := range l.p.Taken() {
		at[v] = l.place(v)
	}
	for s := range l.p.Segments {
		for _, v := range l.p.Handed(s) {
			at[v] = l.place(v)
		}
	}
	return at
}
