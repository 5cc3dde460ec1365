package live_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// rules are those of a device that is much like the CPU: routers and the experts' up matrices read float32.
func rules(p *ir.Program) live.Rules {
	return live.Rules{
		ByRow: func(op ir.Op) bool { return op != ir.Attend },
		InPlace: func(op ir.Op) bool {
			return slices.Contains([]ir.Op{ir.Norm, ir.RoPE, ir.GLU, ir.Add, ir.Mul, ir.Scale, ir.SoftCap}, op)
		},
		Form: func(w ir.Ref) live.Form {
			if name := p.Weights[w].Name; strings.Contains(name, "gate_inp") || strings.Contains(name, "up_exps") {
				return 0
			}
			return 1
		},
		Passes: func(n *ir.Node) []live.Pass {
			e := n.Experts
			hidden, down := e.Used*p.Weights[e.Down].Cols, e.Used*p.Widths[n.Out]
			return []live.Pass{
				{Matrices: []ir.Ref{e.Gate, e.Up}, Leaves: []live.Left{{Width: hidden, Until: 1}, {Width: hidden}}},
				{Leaves: []live.Left{{Width: down, Until: 2}}},
			}
		},
	}
}

// recorded is a layer's program.
func recorded(t *testing.T, b *ir.Builder) *ir.Program {
	t.Helper()
	p, err := b.Program(1000)
	require.NoError(t, err)
	return p
}

// text shows phases, one a line, each after the number of its segment.
func text(segments [][]live.Phase) string {
	var s strings.Builder
	for i, phases := range segments {
		for j := range phases {
			s.WriteString(strconv.Itoa(i) + " " + phases[j].String() + "\n")
		}
	}
	return s.String()
}

func TestOrder(t *testing.T) {
	p := recorded(t, backendtest.Layer())
	r := rules(p)
	require.Equal(t, `0 chain embed
1 chain norm prepare
1 products linear linear linear
1 chain norm rope rope store
1 alone attend
1 chain prepare
1 products linear
1 chain add
2 chain norm prepare
2 products linear
2 chain glu prepare
2 products linear
2 chain add
3 chain rows norm prepare
3 products linear
3 chain softcap
`, text(live.Order(p, r)))

	r.Observed = true
	require.Equal(t, `0 chain norm prepare
0 observed observe observe observe
0 products linear linear linear
0 chain norm rope rope store
0 alone attend
0 chain prepare
0 observed observe
0 products linear
0 chain add
`, text(live.Order(p, r)[1:2]))

	r = rules(p)
	r.ByRow = func(op ir.Op) bool { return op != ir.Norm && op != ir.Attend }
	require.Equal(t, `0 alone norm
0 chain prepare
0 products linear linear linear
0 chain rope
0 alone norm
0 chain rope store
0 alone attend
0 chain prepare
0 products linear
0 chain add
`, text(live.Order(p, r)[1:2]), "a device that computes no norm by row")
}

// TestOrderOfExperts: the shared expert runs beside the router; the chosen ones take two passes. What they multiply
// is prepared in the route's last chain: the border costs no phase, unless somebody else computes the route.
func TestOrderOfExperts(t *testing.T) {
	alone := recorded(t, backendtest.RoutedLayer(false))
	require.Equal(t, `0 chain norm prepare
0 products linear
0 chain route prepare
1 experts pass-0
1 experts pass-1
1 chain experts add add
`, text(live.Order(alone, rules(alone))[2:4]))

	p := recorded(t, backendtest.RoutedLayer(true))
	require.Equal(t, `0 chain embed
1 chain store
1 alone attend
1 chain add
2 chain norm prepare prepare
2 products linear linear linear
2 chain glu route prepare
2 products linear
3 experts pass-0
3 experts pass-1
3 chain experts add add
4 chain rows norm prepare
4 products linear
`, text(live.Order(p, rules(p))))

	for segment, want := range map[int]string{2: `2 chain norm prepare
2 products linear
2 chain route
`, 3: `3 chain prepare prepare
3 experts pass-0
3 experts pass-1
3 chain experts add add
`} {
		part := (&ir.Bound{Program: alone}).Only([]int{segment}).Program
		require.Equal(t, want, text(live.Order(part, rules(part))))
	}
}

// TestOrders compares the phases of a layer or two of some architectures with a text that was read in review. -update
// rewrites it.
func TestOrders(t *testing.T) {
	for _, name := range []string{"llama", "gemma2", "gptoss", "qwen2moe", "starcoder2_k256"} {
		f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", name+".gguf"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		p, err := arch.Record(&f.Meta, func(name string) bool { _, ok := f.Tensor(name); return ok }, arch.Options{})
		require.NoError(t, err, name)
		golden := filepath.Join("testdata", name+".txt")
		got := text(live.Order(p, rules(p)))
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "%s: go test ./internal/ir/live -update, and read the difference", name)
	}
}

// TestOrderRespectsInputs: in any order of any program every node is computed once, after all that it reads; what
// products read was prepared before; no product waits for another of its phase.
func TestOrderRespectsInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := program(t), device(t)
		r = r.of(p)
		done := map[ir.Value]bool{}
		for _, taken := range p.Taken() {
			done[taken] = true
		}
		prepared := map[live.Prepared]bool{}
		passes := map[*ir.Node]int{}
		for s, phases := range live.Order(p, r.Rules) {
			for _, ph := range phases {
				require.Equal(t, s == len(p.Segments)-1, ph.Wanted)
				c := checker{t: t, p: p, r: r.Rules, done: done, prepared: prepared, passes: passes}
				for i := range ph.Items {
					c.item(&ph, &ph.Items[i])
				}
				for _, out := range c.written {
					done[out] = true
				}
			}
			for i := range p.Segments[s].Nodes {
				n := &p.Segments[s].Nodes[i]
				require.True(t, done[n.Out] || n.Op == ir.Slice, "%s is not computed in its segment", n.Op)
			}
		}
	})
}

type checker struct {
	t        *rapid.T
	p        *ir.Program
	r        live.Rules
	done     map[ir.Value]bool // before the phase; of a chain, before the item
	prepared map[live.Prepared]bool
	passes   map[*ir.Node]int
	written  []ir.Value
}

// there says whether a value is: of a slice, whether its root is.
func (c *checker) there(v ir.Value) bool { return c.done[live.ValuesOf(c.p).Root[v]] }

func (c *checker) item(ph *live.Phase, it *live.Item) {
	for _, v := range it.Reads() {
		require.True(c.t, c.there(v), "%s %s reads value %d too early", ph.Kind, it, v)
	}
	switch it.Verb {
	case live.Prepare:
		require.Equal(c.t, live.Chain, ph.Kind)
		require.False(c.t, c.prepared[it.Input], "prepared twice")
		c.prepared[it.Input] = true
	case live.ComputePass:
		require.Equal(c.t, live.Experts, ph.Kind)
		require.Equal(c.t, c.passes[it.Node], it.Pass)
		c.passes[it.Node]++
		for _, w := range c.r.Passes(it.Node)[it.Pass].Matrices {
			require.True(c.t, c.prepared[live.Prepared{Value: it.Node.In[0], Form: c.r.Form(w)}])
		}
	case live.Compute:
		c.compute(ph, it.Node)
	}
}

func (c *checker) compute(ph *live.Phase, n *ir.Node) {
	require.False(c.t, c.done[n.Out], "computed twice")
	require.NotEqual(c.t, ir.Slice, n.Op)
	switch {
	case n.Op == ir.Linear:
		require.Equal(c.t, live.Products, ph.Kind)
		require.True(c.t, c.prepared[live.Prepared{Value: n.In[0], Form: c.r.Form(n.W)}])
		c.written = append(c.written, n.Out)
		return
	case n.Op == ir.Experts:
		require.Equal(c.t, live.Chain, ph.Kind)
		require.Len(c.t, c.r.Passes(n), c.passes[n])
	case c.r.ByRow(n.Op):
		require.Equal(c.t, live.Chain, ph.Kind)
	default:
		require.Equal(c.t, live.Alone, ph.Kind)
		require.Len(c.t, ph.Items, 1)
	}
	c.done[n.Out] = true
}
