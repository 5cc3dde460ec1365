package ir

import "slices"

// Op is the kind of a node. The set is closed: a device that runs every Op runs every model.
type Op uint8

const (
	Embed      Op = iota + 1 // y[r] = W[token(r)]
	Linear                   // y[r,o] = Σᵢ W[o,i]·x[r,i] + b[o]
	Norm                     // y = g·x/√(mean x²+ε) [+ b]; layer: g·(x−mean)/√(var+ε) + b; by groups of Norm.Group
	RoPE                     // rotates pairs of features of each head by position·frequency
	Attend                   // appends K and V, if given, to the cache; y = softmax(scale·q·Kᵀ)·V over visible positions
	GLU                      // y = act(x₀)·x₁; with one input y = act(x₀)
	Add                      // y = x₀ + x₁
	Mul                      // y = x₀·x₁; an x₁ of one feature multiplies the whole row
	Scale                    // y = Factor·x
	SoftCap                  // y = Factor·tanh(x/Factor)
	Temper                   // y = x·(1 + Factor·ln(1+⌊(position+1)/Every⌋))
	Affine                   // y = W·x + B, feature by feature; either may be missing, one value is for all features
	Position                 // y[r] = x[r] + W[position(r)]
	TokenType                // y[r] = x[r] + W[tokens Sep of r's text before r], or the last row of W if there are more
	Slice                    // y[r] = x[r, From : From+width(y)]
	HeadLinear               // y[r,h] = W[h]·x[r,h]: each of Heads parts of a row by a matrix of its own
	HeadSlice                // y[r,h] = x[r,h, From : From+width(y)/Heads], of each of Heads parts of a row
	HeadJoin                 // y[r,h] = x₀[r,h] followed by x₁[r,h], part by part of Heads parts, or by all of x₁[r]
	CausalConv               // y[r,c] = Σⱼ W[c,j]·x[r−K+1+j, c] + b[c], each channel on its own, over the K last positions
	SSMScan                  // Sₜ = e^(A·δ)·Sₜ₋₁ + k⊗(δ·v), y = Scale·Sₜᵀq + D·v, by heads (ScanArgs)
	DeltaRule                // S′ = e^(A·δ)·Sₜ₋₁, Sₜ = S′ + k⊗β(v − S′ᵀk), y = Scale·Sₜᵀq, by heads (ScanArgs)
	Rows                     // y[j] = x[wanted(j)]: from here on rows are the wanted ones
	Route                    // y[r,e] = weight of expert e in row r, by the logits x; 0: it is not chosen (RouteArgs)
	Experts                  // y[r] = Σₑ x₁[r,e]·(Downₑ·act(Gateₑ·x₀[r], Upₑ·x₀[r])) over the chosen e, in ascending order
	lastOp
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
)

// Node is one operation. Which fields count is said by Op; the others are zero (W and B: NoRef).
type Node struct {
	Op  Op
	Out Value
	// In has the inputs in the order of the Op's formula; Attend: q, k, v, or q alone where an earlier Attend fills the
	// cache; SSMScan: q, k, v, δ; DeltaRule: these and β.
	In []Value
	// W is the matrix; Norm: g (NoRef: all ones); RoPE: per-pair divisors of Freq; Attend: sinks; CausalConv: by channel
	// the weights of its positions; Position, TokenType: a row for each one; scans: A by head, which is negative;
	// Route: by expert what multiplies its weight at last.
	W      Ref
	B      Ref // Linear, Norm, Affine, CausalConv: the bias, of Affine the first row; Route, scans: to scores, to δ
	Act    Act
	Factor float32 // Scale, SoftCap, Temper
	Every  int     // Temper: positions
	From   int     // Slice, HeadSlice: first feature
	Sep    int32   // TokenType: the token that ends each part of a text
	Heads  int     // HeadLinear, HeadSlice, HeadJoin
	State  int     // CausalConv, SSMScan, DeltaRule: index into Program.States

	Norm    NormArgs
	RoPE    *RoPEArgs
	Attend  *AttendArgs
	Route   *RouteArgs
	Experts *ExpertsArgs
	Scan    *ScanArgs
}

// Weights lists the weights that a node reads.
func (n *Node) Weights() []Ref {
	refs := []Ref{n.W, n.B}
	if e := n.Experts; e != nil {
		refs = append(append(refs, e.Matrices()...), e.GateBias, e.UpBias, e.DownBias)
	}
	if n.Scan != nil {
		refs = append(refs, n.Scan.D)
	}
	return slices.DeleteFunc(refs, func(r Ref) bool { return r == NoRef })
}

// NormArgs configures Norm. The input's width is a multiple of Group; each group of features is
// normalised on its own with the same g (of Group values) — a per-head norm has Group = head size.
// If g has the whole width while Group is smaller, it is applied by feature.
type NormArgs struct {
	Layer bool // subtract the mean (LayerNorm); else RMS
	Eps   float32
	Group int
}

// RoPEArgs configures RoPE of a value holding Heads heads of HeadDim features, of which the first Dims rotate.
// Feature pair i of a head is (2i, 2i+1) when Interleaved, else (i, i+Dims/2), and turns by
// position·Freq[i]/factor[i] radians; cos and sin are multiplied by Mscale.
// All scalings (linear, YaRN, Llama 3) are already folded into Freq and Mscale by the architecture.
type RoPEArgs struct {
	Heads, HeadDim, Dims int
	Interleaved          bool
	Freq                 []float64 // Dims/2 values, radians per position
	Mscale               float32
}

// AttendArgs configures Attend: q [rows][Heads·KDim], k [rows][KVHeads·KDim], v [rows][KVHeads·VDim] →
// [rows][Heads·VDim]. Query head h reads KV head h/(Heads/KVHeads). A row at position p sees positions
// max(0, p−Window+1)…p, or 0…p when Window is 0, or, Chunked, those of its own chunk of Window positions up to p. A
// Both, a row sees all positions of its text, which is one span from position 0 on, and there is no window. A
// sink adds e^(W[h]) to the sum that head h's softmax divides by, as a position whose value is 0 would.
type AttendArgs struct {
	KV                         int // index into Program.KV
	Heads, KVHeads, KDim, VDim int
	Scale                      float32 // multiplies q·k
	SoftCap                    float32 // s = SoftCap·tanh(s/SoftCap) before the mask; 0 = none
	Window                     int
	Chunked                    bool
	Both                       bool // ways: an encoder
}

// Class is the cache class of what a row sees.
func (a *AttendArgs) Class() Class { return Class{Window: a.Window, Chunked: a.Chunked} }

// Scoring makes the scores of experts from their logits.
type Scoring uint8

const (
	SoftmaxAll    Scoring = iota + 1 // over all experts
	SoftmaxChosen                    // over the chosen ones; logits decide which these are
	SigmoidEach                      // 1/(1+e⁻ˣ), each on its own
	// SparseMixer chooses one expert after the other. Of those that are left, the best one's weight is its part in a
	// softmax over all whose logits are as good: (best−x)/max(|x|, best) ≤ Near. Source: arXiv:2310.00811, as computed
	// by transformers, modeling_phimoe.py, which is not what is trained: nothing is random.
	SparseMixer
)

// Near is how near two logits are between which SparseMixer would choose by chance in training.
const Near = 0.02

// RouteArgs configures Route. The Used experts of the highest scores plus bias are chosen, of equal ones those of lower
// numbers; the weights are their scores without bias. With Groups, experts fall into so many groups of neighbours, and
// only those of the GroupsUsed best take part: a group is as good as its GroupBest best experts together.
type RouteArgs struct {
	Scoring            Scoring
	Used               int
	Groups, GroupsUsed int     // 0: no groups
	GroupBest          int     // 1 or 2
	Normalise          bool    // weights are divided by their sum
	Scale              float32 // multiplies the weights at last
}

// ExpertsArgs configures Experts. The matrices of all experts are stacked: [experts·ffn][width] twice, and
// [experts·width][ffn]. Biases have a row for each expert, or are NoRef. Up may be Gate: then an expert's rows of Up
// come after its rows of Gate, [experts·2·ffn][width], without biases.
type ExpertsArgs struct {
	Used                       int  // most experts of a row
	Before                     bool // y[r] = Σₑ Downₑ·act(Gateₑ·w·x₀[r], Upₑ·w·x₀[r]) with w = x₁[r,e]; no biases
	Gate, Up, Down             Ref
	GateBias, UpBias, DownBias Ref
}

// Joined says whether Gate and Up are one weight.
func (e *ExpertsArgs) Joined() bool { return e.Gate == e.Up }

// Matrices lists the weights of products.
func (e *ExpertsArgs) Matrices() []Ref {
	if e.Joined() {
		return []Ref{e.Gate, e.Down}
	}
	return []Ref{e.Gate, e.Up, e.Down}
}

// ScanArgs configures SSMScan and DeltaRule: q and k [rows][Groups·KDim], v [rows][Heads·VDim], δ and β [rows][Heads] →
// [rows][Heads·VDim]. Each head keeps a matrix S of KDim × VDim, zero before the first position. Head h reads the q and
// k of group h/(Heads/Groups), or, Tiled, of group h mod Groups. δ is softplus(δ+B) = ln(1+e^(δ+B)) before it is used.
// Sources: Mamba-2, arXiv:2405.21060; gated delta networks, arXiv:2412.06464.
type ScanArgs struct {
	Heads, Groups, KDim, VDim int
	Tiled                     bool
	Scale                     float32
	D                         Ref // SSMScan: what passes by the state, by head; NoRef: nothing does
}

// Group is what head h reads q and k of.
func (a *ScanArgs) Group(h int) int {
	if a.Tiled {
		return h % a.Groups
	}
	return h / (a.Heads / a.Groups)
}

// KeepsState says whether the op goes on from what it left of the sequence's rows before: see Program.States.
func (op Op) KeepsState() bool { return op == CausalConv || op == SSMScan || op == DeltaRule }
