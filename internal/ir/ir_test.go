package ir

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
)

// record makes a legal program of one layer with an optional bias.
func record(t *testing.T, has func(string) bool) *Program {
	t.Helper()
	b := NewBuilder("test", has)
	x := b.Embed("token_embd", 20, 8)
	b.Layer(0)
	n := b.RMSNorm(x, "attn_norm", 1e-5)
	r := RoPEArgs{HeadDim: 4, Dims: 4, Freq: []float64{1, 0.1}, Mscale: 1}
	q := b.Rope(b.Linear(n, "attn_q", 8), r, "rope_freqs.weight")
	k := b.Rope(b.Linear(n, "attn_k", 4), r, "rope_freqs.weight")
	v := b.Linear(n, "attn_v", 4)
	o := b.Attend(q, k, v, AttendArgs{Heads: 2, KVHeads: 1, KDim: 4, VDim: 4, Scale: 0.5})
	x = b.Add(x, b.Linear(o, "attn_output", 8))
	b.FFN()
	x = b.Add(x, b.Act(SiLU, x))
	b.Logits(b.SoftCap(b.Head(b.LayerNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd"), 3))
	p, err := b.Program(100)
	require.NoError(t, err)
	return p
}

// TestEveryOpIsWhole: an op that is added has all that there is to know of one.
func TestEveryOpIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, op := range Ops() {
		o := operations[op]
		require.NotNil(t, o, "op %d is not in the list of operation.go", op)
		require.NotEmpty(t, o.name, "op %d has no name", op)
		require.False(t, names[o.name], "a second op is named %s", o.name)
		names[o.name] = true
		require.NotNil(t, o.fits, "%s has no rule", op)
		require.NotNil(t, o.loop, "%s has no loop", op)
		require.NotEmpty(t, o.cases, "%s has no case", op)
		costs(t, op)
	}
	require.Equal(t, "op 200", Op(200).String())
}

// costs: what multiplies by matrices says how often, and so does what reads positions or keeps a matrix of each head.
func costs(t *testing.T, op Op) {
	for _, c := range op.Cases() {
		b := NewBuilder("case", func(string) bool { return true })
		x := b.Embed("token_embd", 256, 256)
		b.Layer(0)
		x = c.Build(b, x, 256)
		b.Layer(1)
		b.FFN()
		b.Logits(b.Scale(b.Rows(b.Scale(x, 0.5)), 2))
		p, err := b.Program(1 << 10)
		require.NoError(t, err, c.Name)
		for i := range p.Segments {
			for j := range p.Segments[i].Nodes {
				n := &p.Segments[i].Nodes[j]
				cost := p.CostOf(n)
				require.Equal(t, len(n.Matrices()) > 0, cost.Products > 0, "products of %s", n.Op)
				require.Equal(t, n.Attend != nil, cost.Seen > 0 && cost.Looks > 0, "positions of %s", n.Op)
				require.Equal(t, n.Scan != nil, cost.Scanned > 0, "state of %s", n.Op)
			}
		}
	}
}

func TestOptionalTensors(t *testing.T) {
	tied := record(t, func(string) bool { return false })
	require.Equal(t, Matrix|Table, tied.Weights[0].Use)
	require.NotContains(t, tied.String(), "attn_q.bias")

	own := record(t, func(name string) bool { return name == "output.weight" || name == "blk.0.attn_q.bias" })
	require.Equal(t, Table, own.Weights[0].Use)
	require.Contains(t, own.String(), "linear %1  blk.0.attn_q.weight  blk.0.attn_q.bias")
}

// broken breaks one thing in a legal program. The text is part of what Check says.
var broken = []struct {
	name string
	edit func(p *Program)
	want string
}{
	{"no segments", func(p *Program) { p.Segments = nil }, "0 segments, the last is segment kind 0, want head or pool"},
	{"no head", func(p *Program) { p.Segments = p.Segments[:3] }, "3 segments, the last is ffn 0, want head or pool"},
	{"no embed", func(p *Program) { p.Segments = p.Segments[1:] }, "the first segment is mix 0, want embed"},
	{"layer number", func(p *Program) { p.Segments[1].Layer = 1 }, "ffn 0 cannot follow mix 1"},
	{"empty segment", func(p *Program) { p.Segments[2].Nodes = nil }, "ffn 0: no nodes"},
	{"unknown op", func(p *Program) { p.Segments[2].Nodes[0].Op = 200 }, "op 200: unknown"},
	{"written twice", func(p *Program) { p.Segments[2].Nodes[1].Out = p.Segments[2].Nodes[0].Out }, "a second time"},
	{"not written", func(p *Program) { p.Segments[1].Nodes[0].In[0] = 5 }, "reads value 5 before it is written"},
	{"outside", func(p *Program) { p.Segments[1].Nodes[0].In[0] = 99 }, "reads value 99 before"},
	{"outlived", func(p *Program) { p.Segments[2].Nodes[0].In[0] = 1 }, "glu: reads value 1, which mix 0 does not carry"},
	{"no such output", func(p *Program) { p.Segments[1].Nodes[0].Out = -1 }, "writes value -1"},
	{"inputs", func(p *Program) { n := &p.Segments[1].Nodes[0]; n.In = append(n.In, 0) }, "2 inputs, want 1 to 1"},
	{"width", func(p *Program) { p.Widths[2] = 0 }, "a value has 0 features"},
	{"matrix", func(p *Program) { p.Weights[2].Cols = 9 }, "blk.0.attn_q.weight is 8×9, want 8×8"},
	{"no weight", func(p *Program) { p.Segments[1].Nodes[1].W = NoRef }, "a weight is missing"},
	{"weight of none", func(p *Program) { p.Segments[2].Nodes[1].W = 0 }, "add: has no use for token_embd.weight"},
	{"weight outside", func(p *Program) { p.Segments[1].Nodes[1].W = 99 }, "weight 99 of"},
	{"use", func(p *Program) { p.Weights[2].Use = Vector }, "for use 4, want use 1"},
	{"unused", func(p *Program) { p.Weights = append(p.Weights, Weight{Name: "x", Rows: 1, Cols: 1, Use: Vector}) }, "weight x is recorded and"},
	{"group", func(p *Program) { p.Segments[1].Nodes[0].Norm.Group = 3 }, "groups of 3 features do not tile 8"},
	{"eps", func(p *Program) { p.Segments[1].Nodes[0].Norm.Eps = float32(math.NaN()) }, "eps is NaN"},
	{"rope heads", func(p *Program) { p.Segments[1].Nodes[2].RoPE.Heads = 3 }, "3 heads of 4 do not make 8"},
	{"rope dims", func(p *Program) { p.Segments[1].Nodes[2].RoPE.Dims = 6 }, "6 features rotate"},
	{"rope freq", func(p *Program) { p.Segments[1].Nodes[2].RoPE.Freq[0] = math.Inf(1) }, "a frequency is +Inf"},
	{"rope args", func(p *Program) { p.Segments[1].Nodes[2].RoPE = nil }, "no arguments"},
	{"heads", func(p *Program) { p.Segments[1].Nodes[6].Attend.KVHeads = 0 }, "cannot share 0 KV heads"},
	{"cache", func(p *Program) { p.KV[0].KDim = 3 }, "cache 0 is {KVHeads:1 KDim:3"},
	{"class", func(p *Program) { p.Classes[0].Window = 3 }, "cache 0 is of class 0 of [{Window:3 Chunked:false State:false}], want {Window:0 Chunked:false State:false}"},
	{"no class", func(p *Program) { p.KV[0].Class = 1 }, "cache 0 is of class 1"},
	{"act", func(p *Program) { p.Segments[2].Nodes[0].Act = 77 }, "activation 77"},
	{"cap", func(p *Program) { p.Segments[3].Nodes[3].Factor = 0 }, "limit is 0"},
	{"rows", func(p *Program) { p.Segments[3].Nodes[0].Op = Scale }, "the last segment, and only that, starts with rows"},
	{"logits", func(p *Program) { p.Outputs[0].Value = 0 }, "the head ends with value 15, want the logits, 0"},
	{"few columns", func(p *Program) { p.Known = []int32{3, 1} }, "head ends with 20 features, want 2"},
	{"no token", func(p *Program) { p.Known = []int32{19, 20} }, "column 1 of the logits is token 20's, want tokens from 0 to 19"},
	{"twice", func(p *Program) { p.Known = []int32{5, 5} }, "column 1 of the logits is token 5's"},
	{"narrow head", func(p *Program) { p.Widths[p.End()] = 19 }, "head ends with 19 features, want 20"},
	{"vocab", func(p *Program) { p.Vocab = 21 }, "token_embd.weight is 20×8, want 21×8"},
}

func TestCheckFindsFaults(t *testing.T) {
	for _, c := range broken {
		p := record(t, nil)
		c.edit(p)
		require.ErrorContains(t, Check(p), c.want, c.name)
	}
}

// file lists the tensors that p wants.
func file(p *Program, typ quant.Type) []Tensor {
	var tensors []Tensor
	for i := range p.Weights {
		w := &p.Weights[i]
		tensors = append(tensors, Tensor{Name: w.Name, Type: typ, Shape: w.Shape()})
	}
	return tensors
}

func TestBind(t *testing.T) {
	p := record(t, nil)
	tensors := file(p, quant.F16)
	for i, j := 0, len(tensors)-1; i < j; i, j = i+1, j-1 {
		tensors[i], tensors[j] = tensors[j], tensors[i]
	}
	tensors[0].Shape = append(tensors[0].Shape, 1, 1)
	p.Ignore = []string{"spare", "blk.7."}
	b, err := Bind(p, append(tensors, Tensor{Name: "spare", Type: 99}, Tensor{Name: "blk.7.ffn_up.weight", Type: 99}))
	require.NoError(t, err)
	for _, name := range []string{"spare.weight", "blk.77.ffn_up.weight", "blk.7"} {
		_, err := Bind(p, append(tensors, Tensor{Name: name}))
		require.ErrorContains(t, err, fmt.Sprintf("%q is surplus", name))
	}
	for r, i := range b.Tensors {
		require.Equal(t, p.Weights[r].Name, tensors[i].Name)
		require.Equal(t, quant.F16, b.Types[r])
	}
	// The tied table is the head's; the ffn has no weights, and so no group.
	groups := b.On(b.All())
	require.Len(t, groups, 4)
	norm := []Ref{Ref(len(p.Weights) - 2), Ref(len(p.Weights) - 1)}
	require.EqualValues(t, 2*(8+2), groups[0].Bytes)
	require.Equal(t, Group{Segment: 3, Use: Vector, Expert: Dense, Weights: norm, Bytes: 2 * (8 + 8)}, groups[1])
	require.EqualValues(t, 2*(8*8+4*8+4*8+8*8), groups[2].Bytes)
	require.Equal(t, Group{Segment: 3, Use: Matrix, Expert: Dense, Weights: []Ref{0}, Bytes: 2 * 20 * 8}, groups[3])
}

func TestBindReportsAllFaults(t *testing.T) {
	p := record(t, nil)
	tensors := file(p, quant.F32)
	tensors[1].Name = "blk.7.attn_norm.weight"    // one missing, one surplus
	tensors[2].Shape = []int{8, 7}                // misshapen
	tensors[3].Shape = []int{2, 1, 3}             // more than dimensions of 1
	tensors[4].Type = 33                          // a removed type
	tensors[5].Type = quant.Q8_0                  // rows that do not fill blocks
	tensors = append(tensors, tensors[0])         // twice
	tensors = append(tensors, Tensor{Name: "%d"}) // nothing that a format would interpret
	_, err := Bind(p, tensors)
	require.EqualError(t, err, strings.TrimPrefix(`
the tensors do not fit the architecture (8 faults):
  "%d" is surplus: test has no use for it
  "blk.0.attn_k.weight" has rows of 8 values: type 33 is not a known ggml type: its size is unknown
  "blk.0.attn_norm.weight" is missing, want 8
  "blk.0.attn_q.weight" is 8×7, want 8×8
  "blk.0.attn_v.weight" has rows of 8 values: Q8_0 comes in blocks of 32 values, and 8 is not a multiple of it
  "blk.7.attn_norm.weight" is surplus: test has no use for it
  "rope_freqs.weight" is 2×1×3, want 2
  "token_embd.weight" is in the file twice`, "\n"))
}

func TestBindErrorIsBounded(t *testing.T) {
	p := record(t, nil)
	tensors := make([]Tensor, 1000)
	for i := range tensors {
		tensors[i].Name = fmt.Sprint(i, strings.Repeat("x", 1000))
	}
	_, err := Bind(p, tensors)
	require.ErrorContains(t, err, "more")
	require.Less(t, len(err.Error()), 10000)
}
