package cpu

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// ropeTable holds cos and sin of the angles of every row of the step. Layers share it, and a row's angles are computed
// once: by the first chain that rotates it, as long as the row keeps its position.
type ropeTable struct {
	args     *ir.RoPEArgs
	divisors []float32 // nil, or of Freq
	pairs    int
	pos      []int     // by row: the position of its angles, −1 for none
	cos, sin []float32 // [rows][pairs]
}

// ropeOp rotates the heads of a row.
type ropeOp struct {
	out, x place
	args   *ir.RoPEArgs
	table  *ropeTable
}

func (b *binder) rope(n *ir.Node, out, x place) *ropeOp {
	return &ropeOp{out: out, x: x, args: n.RoPE, table: b.ropeTable(n.RoPE, b.vector(n.W))}
}

// ropeTable finds the table of the same angles, or makes one.
func (b *binder) ropeTable(a *ir.RoPEArgs, divisors []float32) *ropeTable {
	for _, t := range b.m.ropes {
		if slices.Equal(t.args.Freq, a.Freq) && t.args.Mscale == a.Mscale && same(t.divisors, divisors) {
			return t
		}
	}
	rows, pairs := b.m.config.MaxRows, a.Dims/2
	t := &ropeTable{
		args: a, divisors: divisors, pairs: pairs,
		pos: slices.Repeat([]int{-1}, rows), cos: make([]float32, rows*pairs), sin: make([]float32, rows*pairs),
	}
	b.m.ropes = append(b.m.ropes, t)
	return t
}

// same says whether two weights are one.
func same(a, b []float32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// angles gives cos and sin for row r at a position.
func (t *ropeTable) angles(r, pos int) (cos, sin []float32) {
	cos, sin = t.cos[r*t.pairs:][:t.pairs], t.sin[r*t.pairs:][:t.pairs]
	if t.pos[r] == pos {
		return cos, sin
	}
	t.pos[r] = pos
	for i, freq := range t.args.Freq {
		angle := float64(pos) * freq
		if t.divisors != nil {
			angle /= float64(t.divisors[i])
		}
		s, c := math.Sincos(angle)
		cos[i], sin[i] = float32(c)*t.args.Mscale, float32(s)*t.args.Mscale
	}
	return cos, sin
}

func (o *ropeOp) row(m *model, _, r int) error {
	a, y := o.args, m.at(&o.out, r)
	copy(y, m.at(&o.x, r)) // onto itself, usually
	cos, sin := o.table.angles(r, m.pos[r])
	for h := range a.Heads {
		head := y[h*a.HeadDim:][:a.Dims]
		if a.Interleaved {
			m.device.isa.RotatePairs(head, cos, sin)
		} else {
			m.device.isa.Rotate(head[:a.Dims/2], head[a.Dims/2:], cos, sin)
		}
	}
	return nil
}
