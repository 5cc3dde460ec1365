package ref

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// run computes m.values[n.Out], which has its size and is zero.
func (m *model) run(n *ir.Node, s *backend.Step) {
	switch n.Op {
	case ir.Embed:
		m.embed(n, s)
	case ir.Linear:
		m.linear(n)
	case ir.Norm:
		m.norm(n)
	case ir.RoPE:
		m.rope(n, s)
	case ir.Attend:
		m.attend(n, s)
	case ir.GLU:
		m.glu(n)
	case ir.Add:
		m.each(n, func(x []float32) float32 { return x[0] + x[1] })
	case ir.Mul:
		m.mul(n)
	case ir.Scale:
		m.each(n, func(x []float32) float32 { return n.Factor * x[0] })
	case ir.SoftCap:
		m.each(n, func(x []float32) float32 { return softCap(x[0], n.Factor) })
	case ir.HeadLinear:
		m.headLinear(n)
	case ir.HeadSlice:
		m.headSlice(n)
	case ir.HeadJoin:
		m.headJoin(n)
	case ir.CausalConv:
		m.causalConv(n, s)
	case ir.SSMScan, ir.DeltaRule:
		m.scan(n, s)
	case ir.Temper:
		m.temper(n, s)
	case ir.Affine:
		m.affine(n)
	case ir.Position:
		m.position(n, s)
	case ir.TokenType:
		m.tokenType(n, s)
	case ir.Slice:
		m.slice(n)
	case ir.Rows:
		m.rows(n, s)
	case ir.Route:
		m.route(n)
	case ir.Experts:
		m.experts(n)
	default:
		panic(fmt.Sprintf("ref: %s has no loop", n.Op))
	}
}

// row is row i of a value.
func (m *model) row(v ir.Value, i int) []float32 {
	w := m.p.Widths[v]
	return m.values[v][i*w : (i+1)*w]
}

// height is the number of rows of a value.
func (m *model) height(v ir.Value) int { return len(m.values[v]) / m.p.Widths[v] }

func (m *model) embed(n *ir.Node, s *backend.Step) {
	for r, token := range s.Tokens {
		m.weights[n.W].row(m.row(n.Out, r), int(token))
	}
}

func (m *model) temper(n *ir.Node, s *backend.Step) {
	for _, span := range s.Spans {
		for i := range span.Rows {
			far := math.Floor(float64(span.Pos+i+1) / float64(n.Every))
			factor := 1 + float64(n.Factor)*math.Log1p(far)
			for j, x := range m.row(n.In[0], span.Row+i) {
				m.row(n.Out, span.Row+i)[j] = float32(float64(x) * factor)
			}
		}
	}
}

func (m *model) linear(n *ir.Node) {
	if m.height(n.Out) == 0 {
		return // nobody wants logits
	}
	w := &m.weights[n.W]
	bias := m.vector(n.B, w.Rows, 0)
	weights := make([]float32, w.Cols)
	for r := range m.height(n.Out) {
		m.observe(n.W, 0, m.row(n.In[0], r))
	}
	for o := range w.Rows {
		w.row(weights, o)
		for r := range m.height(n.Out) {
			sum := float64(bias[o])
			for i, x := range m.row(n.In[0], r) {
				sum += float64(weights[i]) * float64(x)
			}
			m.row(n.Out, r)[o] = float32(sum)
		}
	}
}

func (m *model) norm(n *ir.Node) {
	width, a := m.p.Widths[n.Out], &n.Norm
	g, b := m.normVector(n.W, width, a.Group, 1), m.normVector(n.B, width, a.Group, 0)
	for r := range m.height(n.Out) {
		x, y := m.row(n.In[0], r), m.row(n.Out, r)
		for from := 0; from < width; from += a.Group {
			mean, scale := moments(x[from:from+a.Group], a)
			for i := from; i < from+a.Group; i++ {
				y[i] = float32((float64(x[i])-mean)*scale*float64(g[i]) + float64(b[i]))
			}
		}
	}
}

// moments are what to subtract from a group of features and what to multiply it by.
func moments(x []float32, a *ir.NormArgs) (mean, scale float64) {
	if a.Layer {
		for _, v := range x {
			mean += float64(v)
		}
		mean /= float64(len(x))
	}
	square := 0.0
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, 1 / math.Sqrt(square/float64(len(x))+float64(a.Eps))
}

// observe adds a row of what a matrix is multiplied by to the sums that were asked for.
func (m *model) observe(w ir.Ref, expert int, x []float32) {
	if m.config.Inputs != nil {
		m.config.Inputs.Add(w, expert, 0, x)
	}
}

// normVector is a norm's weight or bias by feature: one of a group's size is repeated for every group.
func (m *model) normVector(r ir.Ref, width, group int, otherwise float32) []float32 {
	one := m.vector(r, group, otherwise)
	if r != ir.NoRef {
		one = m.table(r)
	}
	v := make([]float32, 0, width)
	for len(v) < width {
		v = append(v, one...)
	}
	return v
}

func (m *model) rope(n *ir.Node, s *backend.Step) {
	a := n.RoPE
	divisors := m.vector(n.W, a.Dims/2, 1)
	for _, span := range s.Spans {
		for i := range span.Rows {
			x, y := m.row(n.In[0], span.Row+i), m.row(n.Out, span.Row+i)
			copy(y, x)
			for h := range a.Heads {
				turn(y[h*a.HeadDim:], x[h*a.HeadDim:], a, divisors, float64(span.Pos+i))
			}
		}
	}
}

// turn rotates the pairs of one head at a position.
func turn(y, x []float32, a *ir.RoPEArgs, divisors []float32, pos float64) {
	for i, freq := range a.Freq {
		first, second := i, i+a.Dims/2
		if a.Interleaved {
			first, second = 2*i, 2*i+1
		}
		sin, cos := math.Sincos(pos * freq / float64(divisors[i]))
		sin *= float64(a.Mscale)
		cos *= float64(a.Mscale)
		p, q := float64(x[first]), float64(x[second])
		y[first] = float32(p*cos - q*sin)
		y[second] = float32(p*sin + q*cos)
	}
}

func (m *model) glu(n *ir.Node) {
	m.each(n, func(x []float32) float32 {
		if len(x) == 2 {
			return float32(gate(n.Act, float64(x[0]), float64(x[1])))
		}
		return float32(activate(n.Act, float64(x[0])))
	})
}

// gate is a GLU of two inputs.
func gate(a ir.Act, x, up float64) float64 {
	if a == ir.Clamped {
		x = math.Min(x, 7)
		return x / (1 + math.Exp(-1.702*x)) * (math.Max(math.Min(up, 7), -7) + 1)
	}
	return activate(a, x) * up
}

func activate(a ir.Act, x float64) float64 {
	switch a {
	case ir.SiLU:
		return x / (1 + math.Exp(-x))
	case ir.GELU:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case ir.GELUErf:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case ir.ReLU2:
		return math.Max(x, 0) * math.Max(x, 0)
	case ir.Sigmoid:
		return 1 / (1 + math.Exp(-x))
	}
	panic(fmt.Sprintf("ref: %s has no formula", a))
}

func softCap(x, limit float32) float32 {
	return float32(float64(limit) * math.Tanh(float64(x)/float64(limit)))
}

// each computes every element of the output from the same elements of the inputs.
func (m *model) each(n *ir.Node, f func(x []float32) float32) {
	x := make([]float32, len(n.In))
	y := m.values[n.Out]
	for i := range y {
		for j, v := range n.In {
			x[j] = m.values[v][i]
		}
		y[i] = f(x)
	}
}

func (m *model) mul(n *ir.Node) {
	for r := range m.height(n.Out) {
		x, by := m.row(n.In[0], r), m.row(n.In[1], r)
		for i := range x {
			m.row(n.Out, r)[i] = x[i] * by[min(i, len(by)-1)]
		}
	}
}

func (m *model) slice(n *ir.Node) {
	for r := range m.height(n.Out) {
		copy(m.row(n.Out, r), m.row(n.In[0], r)[n.From:])
	}
}

func (m *model) rows(n *ir.Node, s *backend.Step) {
	for j, r := range s.Wanted {
		copy(m.row(n.Out, j), m.row(n.In[0], int(r)))
	}
}
