package ir

// Op is the kind of a node. The set is closed: a device that runs every Op runs every model. What there is to know of
// one stands in its file, op_NAME.go.
type Op uint8

const (
	Embed      Op = iota + 1 // y[r] = W[token(r)]
	Linear                   // y[r,o] = Σᵢ W[o,i]·x[r,i] + b[o]
	Norm                     // y = g·x/√(mean x²+ε) [+ b]; layer: g·(x−mean)/√(var+ε) + b; by groups of Norm.Group
	RoPE                     // rotates pairs of features of each head by position·frequency
	Attend                   // appends K and V, if given, to the cache; y = softmax(scale·q·Kᵀ+B)·V over what is visible
	GLU                      // y = act(x₀)·x₁; with one input y = act(x₀)
	Add                      // y = x₀ + x₁
	Mul                      // y = x₀·x₁; a feature of an x₁ of fewer multiplies a head
	Scale                    // y = Factor·x
	SoftCap                  // y = Factor·tanh(x/Factor)
	Temper                   // y = x·(1 + Factor·ln(1+⌊(position+1)/Every⌋))
	Affine                   // y = W·x + B, either may be missing; by feature, W of fewer values by heads
	Position                 // y[r] = x[r] + W[position(r)]
	TokenType                // y[r] = x[r] + W[tokens Sep of r's text before r], or the last row of W if there are more
	Slice                    // y[r] = x[r, From : From+width(y)]
	HeadLinear               // y[r,h] = W[h]·x[r,h]: each of Heads parts of a row by a matrix of its own
	HeadSlice                // y[r,h] = x[r,h, From : From+width(y)/Heads], of each of Heads parts of a row
	HeadJoin                 // y[r,h] = x₀[r,h] followed by x₁[r,h], part by part of Heads parts, or by all of x₁[r]
	CausalConv               // y[r,c] = Σⱼ W[c,j]·x[r+(j−K+1)·Every, c] + b[c]: each channel over K positions before
	SSMScan                  // Sₜ = e^(A·δ)·Sₜ₋₁ + k⊗(δ·v), y = Scale·Sₜᵀq + D·v, by heads (ScanArgs)
	DeltaRule                // S′ = e^(A·δ)·Sₜ₋₁, Sₜ = S′ + k⊗β(v − S′ᵀk), y = Scale·Sₜᵀq, by heads (ScanArgs)
	Rows                     // y[j] = x[wanted(j)]: from here on rows are the wanted ones
	Route                    // y[r,e] = weight of expert e in row r, by the logits x; 0: it is not chosen (RouteArgs)
	Experts                  // y[r] = Σₑ x₁[r,e]·(Downₑ·act(Gateₑ·x₀[r], Upₑ·x₀[r])) over the chosen e, in ascending order
	Adapt                    // y[r] = x₀[r] + Σₐ sₐ·Bₐ(Aₐ·x₁[r]) over r's adapters; without x₁: row token(r) of Aₐ
	Around                   // y[r] = x of the Size × Size rows around r on its grid, line by line, 0 beyond the edge
	Conv2D                   // y[p,o] = Σ W[o,t,c]·x[p+t,c] + b[o]: a convolution of a picture's pixels (Conv2DArgs)
	GridNorm                 // y[p,c] = W[c]·(x−mean)/√(var+ε) + B[c] over a picture's pixels, by groups of channels
	Leaky                    // y = x where it is positive, else Factor·x
	XIELU                    // y = xIELU(x)
	Clip                     // y = min(max(x, −Factor), Factor)
	Exceed                   // y = max(x − mean x − Factor·√(var x), 0)
	Level                    // y = x₀·√(mean x₁²/mean x₀²), by heads as wide as x₁
	Previous                 // y[r] = x of the row before r in its sequence; 0 of the first
	WKV                      // Sₜ = e^g·Sₜ₋₁ + b⊗Sₜ₋₁ᵀa + k⊗v, y = Scale·Sₜᵀq, by heads and rows of S (ScanArgs)
	HeadDot                  // y[r,h] = Σᵢ x₀[r,h,i]·x₁[r,h,i], of each of Heads parts of a row
	Token                    // y[r] = token(r) + 1
	Gram                     // y[r] = rows of W that hashes of the tokens x[r] name, one after another (GramArgs)
	Compress                 // y[r] = mean of x₁ of r's chunk of Every positions, by e^(x₀ + W[position in it])
	Balance                  // y[r] = a Heads × Heads matrix of logits x[r], divided by rows' and columns' sums
)

// Node is one operation. Which fields count is said by Op; the others are zero (W and B: NoRef).
// Wide: each op has arguments of its own, and a node is data that any code may walk.
type Node struct {
	Op  Op
	Out Value
	// In has the inputs in the order of the Op's formula; Attend: q, k, v, or q alone where an earlier Attend fills the
	// cache; SSMScan: q, k, v, δ; DeltaRule: these and β; WKV: q, k, v, g or none, and a and b or neither.
	In []Value
	// W is the matrix; Norm: g (NoRef: all ones); RoPE: divisors of Freq, one for each pair; Attend: sinks; CausalConv:
	// the weights of the last positions, [channel][position]; Position, TokenType: a row for each position or type;
	// scans but WKV: A, negative, one for each head; Embed, Gram: a table; Route: the factor of each expert's weight,
	// applied last.
	W Ref
	// B is the bias of Linear, Norm, Affine (its first row), convolutions; Attend: of scores, a row for each bucket of
	// distances; Route, scans: added to scores, to δ.
	B      Ref
	Act    Act
	Factor float32 // Scale, SoftCap, Temper, Leaky, Clip, Exceed; Balance: ε; GLU, Experts: an activation's limit
	Every  int     // Temper, Compress: positions; CausalConv: from one weight to the next, 0: 1; Balance: times
	From   int     // Slice, HeadSlice: first feature; Temper: the number of the first position
	Sep    int32   // TokenType: the token that ends each part of a text
	Heads  int     // HeadLinear, HeadSlice, HeadJoin, HeadDot, Balance
	Size   int     // Around: odd
	State  int     // of ops that keep a state: index into Program.States
	Site   int     // Adapt: index into Program.Sites

	Norm    NormArgs
	RoPE    *RoPEArgs
	Attend  *AttendArgs
	Route   *RouteArgs
	Experts *ExpertsArgs
	Scan    *ScanArgs
	Conv2D  *Conv2DArgs
	XIELU   *XIELUArgs
	Gram    *GramArgs
}
