package ir

import (
	"fmt"
	"math"
)

// balanceOp describes Balance.
var balanceOp = operation{
	name: "balance", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsBalance,
	loop: (*Frame).balance, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%d×%d times=%d ε=%g", n.Heads, n.Heads, n.Every, n.Factor) },
	cases: []Case{
		{"balance", func(b *Builder, x Value, n int) Value {
			return b.Mul(x, b.Slice(b.Balance(b.Slice(x, 0, 16), 7, 1e-3), 5, 1))
		}},
	},
}

// Balance makes a square matrix of each row, of which it has the logits, row after row, nearly doubly stochastic
// (Sinkhorn-Knopp, as manifold-constrained hyper-connections have it, arXiv:2512.24880): a softmax of each of its rows
// plus ε, then columns, and so many times less one rows and columns, are divided by their sums plus ε.
func (b *Builder) Balance(x Value, times int, eps float32) Value {
	side := int(math.Sqrt(float64(b.Width(x))))
	return b.pointwise(Node{Op: Balance, In: []Value{x}, Heads: side, Every: times, Factor: eps})
}

func fitsBalance(p *Program, n *Node) error {
	if n.Heads < 1 || n.Heads*n.Heads != p.Widths[n.Out] || n.Every < 1 || !finite(float64(n.Factor)) || n.Factor < 0 {
		return fmt.Errorf("a matrix of %d rows of %d features, %d times, ε %v", n.Heads, p.Widths[n.Out], n.Every, n.Factor)
	}
	return sameWidths(p, n)
}

func (f *Frame) balance(n *Node) {
	for r := range f.height(n.Out) {
		BalanceMatrix(f.row(n.Out, r), f.row(n.In[0], r), n)
	}
}

// BalanceMatrix computes a row of Balance.
func BalanceMatrix(y, x []float32, n *Node) {
	side, eps := n.Heads, float64(n.Factor)
	for i := range side {
		row, top, sum := x[i*side:][:side], math.Inf(-1), 0.0
		for _, v := range row {
			top = math.Max(top, float64(v))
		}
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		for j, v := range row {
			y[i*side+j] = float32(math.Exp(float64(v)-top)/sum + eps)
		}
	}
	divide(y, 1, side, side, eps)
	for range n.Every - 1 {
		divide(y, side, 1, side, eps)
		divide(y, 1, side, side, eps)
	}
}

// divide divides lines of n values, step apart, by their sums plus ε; lines begin next apart.
func divide(y []float32, next, step, n int, eps float64) {
	for i := range n {
		sum := eps
		for j := range n {
			sum += float64(y[i*next+j*step])
		}
		for j := range n {
			y[i*next+j*step] = float32(float64(y[i*next+j*step]) / sum)
		}
	}
}
