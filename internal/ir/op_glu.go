package ir

import (
	"errors"
	"fmt"
	"math"
)

// Act is the activation function of a GLU.
type Act uint8

const (
	SiLU    Act = iota + 1 // x/(1+e⁻ˣ)
	GELU                   // 0.5·x·(1+tanh(√(2/π)·(x+0.044715·x³)))
	GELUErf                // 0.5·x·(1+erf(x/√2))
	ReLU2                  // max(x,0)²
	Sigmoid                // 1/(1+e⁻ˣ)
	// Clamped has two inputs: g·σ(1.702·g)·(1+u) with g = min(x₀,7) and u = min(max(x₁,−7),7).
	Clamped
	ReLU     // max(x,0)
	Softplus // ln(1+eˣ)
	// SiLUClipped and ClippedSiLU have two inputs, and the node's Factor as limit L, after or before the function:
	// min(silu(x₀),L)·max(min(x₁,L),−L), and silu(min(x₀,L)) times that.
	SiLUClipped
	ClippedSiLU
	Exp  // eˣ
	Root // √max(|x|,10⁻⁶) with the sign of x; 0 of 0
	// SiTU has two inputs, in experts alone, and the node's Factor β as limit: β·tanh(x₀/β)/(1+e⁻ˣ⁰)·c(x₁), where c is
	// what ExpertsArgs.UpCap says.
	SiTU
)

// String is the function's name.
func (a Act) String() string {
	names := [...]string{
		SiLU: "silu", GELU: "gelu", GELUErf: "gelu-erf", ReLU2: "relu²", Sigmoid: "sigmoid", Clamped: "clamped",
		ReLU: "relu", Softplus: "softplus", SiLUClipped: "silu-clipped", ClippedSiLU: "clipped-silu", Exp: "exp", Root: "root",
		SiTU: "situ",
	}
	if a == 0 || int(a) >= len(names) {
		return fmt.Sprintf("activation %d", uint8(a))
	}
	return names[a]
}

// gluOp describes GLU.
var gluOp = operation{
	name: "glu", inputs: [2]int{1, 2}, w: none, b: none, use: 0, fits: fitsGLU,
	loop: (*Frame).glu, byRow: true,
	args: func(n *Node) string { return n.activation() },
	cases: []Case{
		{"swiglu", func(b *Builder, x Value, n int) Value { return b.SwiGLU(x, b.Scale(x, 3)) }},
		{"geglu", func(b *Builder, x Value, n int) Value { return b.GLU(GELU, x, b.Scale(x, 3)) }},
		{"silu", func(b *Builder, x Value, n int) Value { return b.Act(SiLU, x) }},
		{"gelu", func(b *Builder, x Value, n int) Value { return b.Act(GELU, x) }},
		{"gelu erf", func(b *Builder, x Value, n int) Value { return b.Act(GELUErf, x) }},
		{"relu²", func(b *Builder, x Value, n int) Value { return b.Act(ReLU2, x) }},
		{"reglu", func(b *Builder, x Value, n int) Value { return b.GLU(ReLU, x, b.Scale(x, 3)) }},
		{"softplus", func(b *Builder, x Value, n int) Value { return b.Act(Softplus, b.Scale(x, 9)) }},
		{"silu clipped", func(b *Builder, x Value, n int) Value {
			return b.GLUWithin(SiLUClipped, b.Scale(x, 4), b.Scale(x, 5), 2)
		}},
		{"clipped silu", func(b *Builder, x Value, n int) Value {
			return b.GLUWithin(ClippedSiLU, b.Scale(x, 4), b.Scale(x, 5), 2)
		}},
		{"root", func(b *Builder, x Value, n int) Value { return b.Add(b.Act(Root, x), b.Act(Root, b.Scale(x, 0))) }},
		{"exp", func(b *Builder, x Value, n int) Value { return b.Act(Exp, x) }},
		{"sigmoid", func(b *Builder, x Value, n int) Value { return b.Act(Sigmoid, x) }},
		{"clamped", func(b *Builder, x Value, n int) Value {
			return b.GLU(Clamped, b.Scale(x, 4), b.Scale(x, 5))
		}},
	},
}

// SwiGLU is silu(gate)·up.
func (b *Builder) SwiGLU(gate, up Value) Value { return b.GLU(SiLU, gate, up) }

// GLU is act(gate)·up.
func (b *Builder) GLU(act Act, gate, up Value) Value {
	return b.pointwise(Node{Op: GLU, In: []Value{gate, up}, Act: act})
}

// GLUWithin is GLU of an activation that has a limit; without one (0) it is SwiGLU.
func (b *Builder) GLUWithin(act Act, gate, up Value, limit float32) Value {
	if limit == 0 {
		return b.SwiGLU(gate, up)
	}
	return b.pointwise(Node{Op: GLU, In: []Value{gate, up}, Act: act, Factor: limit})
}

// Act is act(x).
func (b *Builder) Act(act Act, x Value) Value {
	return b.pointwise(Node{Op: GLU, In: []Value{x}, Act: act})
}

func fitsGLU(p *Program, n *Node) error {
	if n.Act < SiLU || n.Act > Root || (n.Act == Clamped || n.Act.Limited()) && len(n.In) != 2 {
		return fmt.Errorf("activation %d of %d inputs", n.Act, len(n.In))
	}
	return errors.Join(n.fitsLimit(), sameWidths(p, n))
}

// fitsLimit checks that a node has a limit if its activation needs one.
func (n *Node) fitsLimit() error {
	if n.Act.Limited() != (n.Factor > 0) || !finite(float64(n.Factor)) {
		return fmt.Errorf("activation %s with limit %v", n.Act, n.Factor)
	}
	return nil
}

// activation shows the activation and its limit.
func (n *Node) activation() string {
	if n.Act.Limited() {
		return fmt.Sprintf("%s to %g", n.Act, n.Factor)
	}
	return n.Act.String()
}

func (f *Frame) glu(n *Node) {
	f.each(n, func(x []float32) float32 {
		if len(x) == 2 {
			return float32(n.gate(float64(x[0]), float64(x[1])))
		}
		return float32(n.Act.Of(float64(x[0])))
	})
}

// Limited says whether the function has a limit.
func (a Act) Limited() bool { return a == SiLUClipped || a == ClippedSiLU || a == SiTU }

// gate is the function of two inputs, within its limit if it has one.
func (n *Node) gate(x, up float64) float64 {
	limit := float64(n.Factor)
	within := math.Max(math.Min(up, limit), -limit)
	switch n.Act {
	case SiLUClipped:
		return math.Min(SiLU.Of(x), limit) * within
	case ClippedSiLU:
		return SiLU.Of(math.Min(x, limit)) * within
	case SiTU:
		if c := float64(n.Experts.UpCap); c > 0 {
			up = Cap(up, c)
		}
		return Cap(x, limit) * Sigmoid.Of(x) * up
	}
	return n.Act.Gate(x, up)
}

// Gate is the function of two inputs that has no limit: act(x)·up, or Clamped.
func (a Act) Gate(x, up float64) float64 {
	if a == Clamped {
		x = math.Min(x, 7)
		return x / (1 + math.Exp(-1.702*x)) * (math.Max(math.Min(up, 7), -7) + 1)
	}
	return a.Of(x) * up
}

// Of is the function of one input.
func (a Act) Of(x float64) float64 {
	switch a {
	case SiLU:
		return x / (1 + math.Exp(-x))
	case GELU:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case GELUErf:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case ReLU:
		return math.Max(x, 0)
	case ReLU2:
		return math.Max(x, 0) * math.Max(x, 0)
	case Sigmoid:
		return 1 / (1 + math.Exp(-x))
	case Softplus:
		return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	case Exp:
		return math.Exp(x)
	case Root:
		if x == 0 {
			return 0
		}
		return math.Copysign(math.Sqrt(math.Max(math.Abs(x), 1e-6)), x)
	}
	panic(fmt.Sprintf("ir: %s has no formula", a))
}
