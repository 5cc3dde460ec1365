package ir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
)

// TestOrders: a layer has a mix, a feed-forward part, both or neither, and a program ends in logits or vectors.
func TestOrders(t *testing.T) {
	b := NewBuilder("test", nil)
	x := b.Embed("token_embd", 20, 8)
	b.Layer(0)
	x = b.Add(x, b.Attend(x, x, x, AttendArgs{Heads: 2, KVHeads: 2, KDim: 4, VDim: 4, Scale: 0.5}))
	b.Layer(1)
	b.FFN()
	x = b.Linear(x, "ffn_up", 8)
	b.Layer(2)
	b.FFN()
	b.Layer(3)
	b.FFN()
	w := b.Route(x, "", RouteArgs{Scoring: SoftmaxAll, Used: 2, Scale: 1})
	x = b.Experts(x, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", 5, 2, SiLU)
	b.Vectors(b.Linear(b.Pool(x), "dense_2", 3))
	p, err := b.Program(100)
	require.NoError(t, err)
	require.Equal(t, `test: width 8, vocab 20, context 100
embed
  %0[8] = embed  token_embd.weight
mix 0
  %1[8] = attend %0 %0 %0  kv=0 heads=2/2 dims=4/4 scale=0.5 cap=0 window=0
  %2[8] = add %0 %1
ffn 1
  %3[8] = linear %2  blk.1.ffn_up.weight
route 3
  %4[8] = route %3  softmax used=2 normalise=false scale=1
  carries %3 %4
experts 3
  %5[8] = experts %3 %4  blk.3.ffn_gate_exps.weight  blk.3.ffn_up_exps.weight  blk.3.ffn_down_exps.weight  silu used=2
pool
  %6[8] = rows %5
  %7[3] = linear %6  dense_2.weight
vectors %7
`, p.String())
	require.Equal(t, 3, p.OutputWidth())
	require.Empty(t, p.Takes(0))
	require.Equal(t, []Value{2}, p.Takes(2))
	require.Equal(t, []Value{3, 4}, p.Takes(4))
	require.Equal(t, []Value{5}, p.Takes(5))
}

// TestIllegalOrders moves, turns or drops whole segments of a legal program.
func TestIllegalOrders(t *testing.T) {
	seg := func(kind SegmentKind, layer int) Segment { return Segment{Kind: kind, Layer: layer} }
	embed, head := seg(SegEmbed, -1), seg(SegHead, -1)
	for _, c := range []struct {
		segments []Segment
		want     string // empty: legal
	}{
		{[]Segment{embed, head}, ""},
		{[]Segment{embed, seg(SegPool, -1)}, ""},
		{[]Segment{embed, seg(SegMix, 4), seg(SegMix, 7), seg(SegFFN, 7), seg(SegFFN, 8), head}, ""},
		{[]Segment{embed, seg(SegRoute, 0), seg(SegExperts, 0), seg(SegMix, 1), head}, ""},
		{[]Segment{embed}, "1 segments, the last is embed, want head or pool"},
		{[]Segment{head}, "the first segment is head, want embed"},
		{[]Segment{embed, embed, head}, "embed cannot follow embed"},
		{[]Segment{seg(SegEmbed, 0), head}, "the first segment is embed 0, want embed"},
		{[]Segment{embed, seg(SegMix, -1), head}, "mix cannot follow embed"},
		{[]Segment{embed, seg(SegFFN, -1), head}, "ffn cannot follow embed"},
		{[]Segment{embed, seg(SegMix, 0), seg(SegMix, 0), head}, "mix 0 cannot follow mix 0"},
		{[]Segment{embed, seg(SegFFN, 0), seg(SegMix, 0), head}, "mix 0 cannot follow ffn 0"},
		{[]Segment{embed, seg(SegFFN, 0), seg(SegFFN, 0), head}, "ffn 0 cannot follow ffn 0"},
		{[]Segment{embed, seg(SegMix, 1), seg(SegFFN, 0), head}, "ffn 0 cannot follow mix 1"},
		{[]Segment{embed, seg(SegFFN, 1), seg(SegMix, 0), head}, "mix 0 cannot follow ffn 1"},
		{[]Segment{embed, seg(SegRoute, 0), head}, "head cannot follow route 0"},
		{[]Segment{embed, seg(SegRoute, 0), seg(SegMix, 1), head}, "mix 1 cannot follow route 0"},
		{[]Segment{embed, seg(SegMix, 0), seg(SegExperts, 0), head}, "experts 0 cannot follow mix 0"},
		{[]Segment{embed, head, head}, "head cannot follow head"},
		{[]Segment{embed, seg(SegPool, -1), head}, "head cannot follow pool"},
		{[]Segment{embed, seg(SegHead, 0)}, "head 0 cannot follow embed"},
		{[]Segment{embed, seg(0, -1), head}, "segment kind 0 cannot follow embed"},
	} {
		k := checker{p: &Program{Segments: c.segments}}
		k.order()
		if c.want == "" {
			require.Empty(t, k.faults)
			continue
		}
		require.NotEmpty(t, k.faults, c.want)
		require.EqualError(t, k.faults[0], c.want)
	}
}

// TestOn: a device holds each weight once, whichever of its segments use it, and every device has all that it needs.
func TestOn(t *testing.T) {
	b, err := Bind(mixture(t, biased), file(mixture(t, biased), quant.F16))
	require.NoError(t, err)
	const embed, mix, route, experts, head = 0, 1, 2, 3, 4
	require.Equal(t, []int{0, 1, 2, 3, 4}, b.All())
	all := b.On(b.All())
	table := Group{Segment: embed, Use: Table, Expert: Dense, Weights: []Ref{0}, Bytes: 2 * 20 * 8}
	require.Equal(t, []Group{table}, b.On([]int{embed}))
	table.Segment, table.Use = head, Matrix
	require.Equal(t, table, all[len(all)-1], "the head multiplies the embedding")
	require.Equal(t, []Group{table}, b.On([]int{embed, head}))
	require.Equal(t, []Group{table}, b.On([]int{head}), "another device has a table of its own")
	require.Equal(t, append([]Group{all[2]}, all[4:10]...), b.On([]int{experts}))
	require.Equal(t, append(all[:2:2], all[3]), b.On([]int{mix, route}))
	require.Empty(t, b.On(nil))

	total := int64(0)
	for _, g := range b.On(b.All()) {
		total += g.Bytes
	}
	want := int64(0)
	for r := range b.Weights {
		want += 2 * int64(b.Weights[r].Rows) * int64(b.Weights[r].Cols)
	}
	require.Equal(t, want, total)
}

// TestOnSharesPartOfAGroup: divisors that two layers share are in the first one's group, and the second keeps the rest.
func TestOnSharesPartOfAGroup(t *testing.T) {
	b := NewBuilder("test", nil)
	r := RoPEArgs{HeadDim: 4, Dims: 4, Freq: []float64{1, 0.1}, Mscale: 1}
	x := b.Embed("token_embd", 20, 8)
	for l := range 2 {
		b.Layer(l)
		x = b.Rope(b.RMSNorm(x, "attn_norm", 1e-5), r, "rope_freqs.weight")
	}
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(100)
	require.NoError(t, err)
	bound, err := Bind(p, file(p, quant.F32))
	require.NoError(t, err)
	first, second, divisors := Ref(1), Ref(3), Ref(2)
	require.Equal(t, []Ref{second, divisors}, bound.On([]int{2})[0].Weights)
	on := bound.On([]int{1, 2})
	require.Equal(t, []Group{
		{Segment: 1, Use: Vector, Expert: Dense, Weights: []Ref{first, divisors}, Bytes: 4 * (8 + 2)},
		{Segment: 2, Use: Vector, Expert: Dense, Weights: []Ref{second}, Bytes: 4 * 8},
	}, on)
}

// TestPieces: a large head moves in pieces of about the size asked for, whose rows are the matrix's, and nothing else
// does.
func TestPieces(t *testing.T) {
	for _, rows := range []int{1, 64, 65, 1000, 1024} {
		b := NewBuilder("test", func(name string) bool { return name == "output.weight" })
		x := b.Embed("token_embd", rows, 64)
		b.Layer(0)
		x = b.Add(x, b.Linear(b.RMSNorm(x, "attn_norm", 1e-5), "attn_q", 64))
		b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "")
		p, err := b.Program(100)
		require.NoError(t, err)
		bound, err := Bind(p, file(p, quant.F16))
		require.NoError(t, err)
		whole := bound.On(bound.All())
		require.Len(t, whole, 2+3)
		for _, pieceRows := range []int{1, 64, 100, 300, 1 << 20} {
			bound.Piece = int64(pieceRows * 2 * 64)
			groups := bound.On(bound.All())
			require.Equal(t, whole[:4], groups[:4])
			end, bytes := 0, int64(0)
			for i, g := range groups[4:] {
				from, to := g.Rows(&p.Weights[g.Weights[0]])
				require.Equal(t, end, from)
				require.Greater(t, to, from)
				if len(groups) > 5 {
					require.Zero(t, from%64)
					require.LessOrEqual(t, to-from, (pieceRows+63)/64*64)
					require.Equal(t, i, g.Piece)
				}
				end, bytes = to, bytes+g.Bytes
			}
			require.Equal(t, rows, end)
			require.Equal(t, whole[4].Bytes, bytes)
			if pieceRows >= rows {
				require.Equal(t, whole, groups)
			}
		}
	}

	b := NewBuilder("test", nil)
	x := b.Embed("token_embd", 1000, 64)
	b.Vectors(b.Linear(b.Linear(b.Pool(x), "dense_2", 640), "dense_3", 64))
	p, err := b.Program(100)
	require.NoError(t, err)
	bound, err := Bind(p, file(p, quant.F16))
	require.NoError(t, err)
	bound.Piece = 1
	require.Len(t, bound.On(bound.All()), 2, "outputs of the first are not outputs of the end")
}
