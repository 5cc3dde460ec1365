package live_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// recorder records a random program, segment by segment, and now and then reads what was computed long before.
type recorder struct {
	*ir.Builder
	t      *rapid.T
	stream ir.Value
	beside []ir.Value       // that embed leaves besides it
	filled map[int]ir.Value // by width: the last Attend that stored
	values []ir.Value       // of the segment
	names  int
}

const width = 8

// program is a random one, reduced to some of its segments now and then.
func program(t *rapid.T) *ir.Program {
	r := recorder{Builder: ir.NewBuilder("random", func(string) bool { return false }), t: t, filled: map[int]ir.Value{}}
	r.stream = r.Embed("token_embd", 10, width)
	if rapid.Bool().Draw(t, "beside the stream") {
		r.beside = []ir.Value{r.Lookup("others", width)}
		r.stream = r.Scale(r.stream, 3)
	}
	for l := range rapid.IntRange(1, 3).Draw(t, "layers") {
		r.Layer(l)
		r.begin()
		r.nodes(true)
		r.end()
		if rapid.Bool().Draw(t, "feed-forward part") {
			r.FFN()
			r.begin()
			r.nodes(false)
			if rapid.Bool().Draw(t, "experts") {
				r.experts()
				r.stream = r.Add(r.stream, r.any(width)) // they have no other matrices
			} else {
				r.end()
			}
		}
	}
	r.values = []ir.Value{r.Rows(r.stream)}
	r.nodes(false)
	logits := r.Logits(r.Linear(r.any(0), "output", 10))
	if rapid.Bool().Draw(t, "soft cap") {
		r.Logits(r.SoftCap(logits, 3))
	}
	p, err := r.Program(100)
	require.NoError(t, err)
	if rapid.Bool().Draw(t, "a part") {
		some := slices.DeleteFunc(p.All(), func(int) bool { return rapid.Bool().Draw(t, "elsewhere") })
		p = (&ir.Bound{Program: p}).Only(some).Program
	}
	return p
}

func (r *recorder) begin() { r.values = append([]ir.Value{r.stream}, r.beside...) }

// end adds something to the stream.
func (r *recorder) end() { r.stream = r.Add(r.stream, r.Linear(r.any(0), r.name(), width)) }

func (r *recorder) name() string {
	r.names++
	return "w" + string(rune('a'+r.names%26)) + string(rune('a'+r.names/26))
}

// any is a value of the segment; of so many features if that is not 0.
func (r *recorder) any(features int) ir.Value {
	fit := slices.DeleteFunc(slices.Clone(r.values), func(v ir.Value) bool {
		return features != 0 && r.Width(v) != features
	})
	return rapid.SampledFrom(fit).Draw(r.t, "value")
}

// nodes adds some. Attention is for segments that mix.
func (r *recorder) nodes(mix bool) {
	for range rapid.IntRange(1, 8).Draw(r.t, "nodes") {
		r.values = append(r.values, r.node(mix))
	}
}

func (r *recorder) node(mix bool) ir.Value {
	x := r.any(0)
	n := r.Width(x)
	switch rapid.IntRange(0, 8).Draw(r.t, "op") {
	case 0:
		return r.RMSNorm(x, r.name(), 1e-5)
	case 1:
		return r.Add(x, r.any(n))
	case 2:
		return r.Scale(x, 2)
	case 3:
		return r.SwiGLU(x, r.any(n))
	case 4:
		from := rapid.IntRange(0, n-4).Draw(r.t, "from") / 4 * 4
		return r.Slice(x, from, min(4*rapid.IntRange(1, 4).Draw(r.t, "features"), n-from))
	case 5:
		if mix {
			a := ir.AttendArgs{Heads: n / 4, KVHeads: n / 4, KDim: 4, VDim: 4, Scale: 1}
			if filled, ok := r.filled[n]; ok && rapid.Bool().Draw(r.t, "shared") {
				return r.AttendShared(x, filled, a)
			}
			r.filled[n] = r.Attend(x, r.any(n), r.any(n), a)
			return r.filled[n]
		}
	}
	return r.Linear(x, r.name(), 4*rapid.IntRange(1, 4).Draw(r.t, "outputs"))
}

// experts end the segment with a router, and begin theirs with what they read of it.
func (r *recorder) experts() {
	x := r.any(width)
	w := r.Route(r.Linear(r.any(0), r.name(), 4), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Scale: 1})
	y := r.Experts(x, w, r.name(), r.name(), r.name(), 4, 2, ir.SiLU)
	shared := r.any(0)
	r.values = []ir.Value{y}
	if r.Width(shared) == width {
		r.values = append(r.values, r.Add(y, shared))
	}
}

// rule is a random device.
type rule struct {
	live.Rules
	byRow, inPlace []ir.Op
	forms          []live.Form // by weight, over and over
	passes         int
}

func device(t *rapid.T) rule {
	some := func(name string) []ir.Op {
		return slices.DeleteFunc(ir.Ops(), func(ir.Op) bool { return rapid.Bool().Draw(t, name) })
	}
	return rule{
		byRow: some("not by row"), inPlace: some("not in place"),
		forms:  rapid.SliceOfN(rapid.SampledFrom([]live.Form{0, 1, 2}), 1, 5).Draw(t, "forms"),
		passes: rapid.IntRange(1, 3).Draw(t, "passes"),
		Rules:  live.Rules{Observed: rapid.Bool().Draw(t, "observed")},
	}
}

// of makes the rules for a program.
func (r rule) of(p *ir.Program) rule {
	r.ByRow = func(op ir.Op) bool { return op != ir.Attend && slices.Contains(r.byRow, op) }
	pointwise := rules(p).InPlace
	r.InPlace = func(op ir.Op) bool { return pointwise(op) && slices.Contains(r.inPlace, op) }
	r.Form = func(w ir.Ref) live.Form { return r.forms[int(w)%len(r.forms)] }
	r.Passes = func(n *ir.Node) []live.Pass {
		e := n.Experts
		passes := make([]live.Pass, r.passes)
		for i := range passes {
			passes[i].Leaves = []live.Left{{Width: 8, Until: i}, {Width: 4, Until: i + 1}, {Width: 12, Until: r.passes}}
		}
		passes[0].Matrices = []ir.Ref{e.Gate}
		passes[r.passes-1].Matrices = append(passes[r.passes-1].Matrices, e.Up)
		return passes
	}
	return r
}
