package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// goldens are streams of small models. Cards have all that plans make use of, or nothing.
var goldens = []struct {
	name, family string
	card         null.Options
	kv           backend.KV
	moves        bool
}{
	{name: "llama", family: "llama", card: null.Options{Fused: true, Integers: true}, kv: backend.KVF16},
	{name: "llama plain", family: "llama", card: null.Options{Scarce: true}, kv: backend.KVQ8},
	{name: "llama in halves", family: "llama", card: null.Options{Fused: true, Integers: true, Halves: true},
		kv: backend.KVF16},
	{name: "mixture", family: "mixture", card: null.Options{Fused: true, Integers: true, Gathers: kernel.GroupedColumns},
		kv: backend.KVF16},
	{name: "hybrid", family: "hybrid", card: null.Options{Fused: true, Integers: true}, kv: backend.KVF16},
	{name: "encoder", family: backendtest.Encoder, card: null.Options{Fused: true}, kv: backend.KVF16},
	{name: "pieces that move", family: "llama", card: null.Options{Fused: true, Integers: true}, kv: backend.KVF16,
		moves: true},
	{name: "experts that move", family: "mixture", card: null.Options{}, kv: backend.KVF32, moves: true},
}

// TestStreams compares what is launched for an answer's row and for a prompt with what was launched before.
func TestStreams(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			p, err := planOf(g.family, g.card, g.kv, g.moves)
			require.NoError(t, err)
			var text strings.Builder
			for _, s := range p.shapes(g.card.Halves) {
				fmt.Fprintf(&text, "%s\n%s\n", s.name, p.text(p.Stream(&s.Shape, p.placesOf(&s.Shape))))
			}
			path := filepath.Join("testdata", strings.ReplaceAll(g.name, " ", "_")+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), text.String(), "go test ./gpu/plan -update rewrites it")
		})
	}
}

// shaped is a shape with a title.
type shaped struct {
	name string
	plan.Shape
}

// shapes are those of a row that goes on, whose token is drawn, and of a prompt, whose last row is wanted. A segment
// that is divided comes in its portions, and what lies between such segments in one stream.
func (p *planned) shapes(halves bool) (all []shaped) {
	spans := min(1, len(p.p.States))
	for _, s := range []shaped{
		{"a row alone, drawn", plan.Shape{Rows: 1, Wanted: 1, Spans: spans, Alone: true, Draws: true, Samples: true}},
		{"64 rows of a prompt", plan.Shape{Rows: 64, Wanted: 1, Spans: spans, Prompt: halves, Logits: true}},
	} {
		first := 0
		for i := range p.p.Segments {
			last := i == len(p.p.Segments)-1
			if !p.Divided(i) && !last && !p.Divided(i+1) {
				continue
			}
			part := s
			part.From, part.To = first, i
			first = i + 1
			if !p.Divided(i) {
				part.name += fmt.Sprintf(": segments %d to %d", part.From, part.To)
				all = append(all, part)
				continue
			}
			all = append(all, p.portions(part)...)
		}
	}
	return all
}

// portions are the streams of a segment that is divided.
func (p *planned) portions(s shaped) (all []shaped) {
	s.From = s.To
	add := func(name string, portion plan.Portion, group int) {
		part := s
		part.name += fmt.Sprintf(": segment %d, %s", s.To, name)
		part.Portion, part.Group = portion, group
		all = append(all, part)
	}
	add("before its groups", plan.Before, 0)
	if p.RouteOf[s.To] != plan.Absent {
		add("some of its experts", plan.Among, 0)
	} else {
		for g, of := range p.p.On(p.p.All()) {
			if of.Segment == s.To && of.Each > 0 {
				add(fmt.Sprintf("piece %d", of.Piece), plan.Among, g)
			}
		}
	}
	add("after its groups", plan.After, 0)
	return all
}

// placesOf says where all lies for a shape: for some experts, their tables and pairs, too.
func (p *planned) placesOf(s *plan.Shape) *plan.Places {
	at := p.places
	if s.Portion == plan.Among && p.RouteOf[s.To] != plan.Absent {
		at.Experts, at.Listed = p.memoryOf("tables of experts"), p.memoryOf("listed")
	}
	return &at
}

// memoryOf is memory with a name, which is taken when it is asked for first.
func (p *planned) memoryOf(name string) uint64 {
	for at, n := range p.names {
		if n == name {
			return at
		}
	}
	return p.memory(name)
}

// text shows commands, one a line: a barrier, the segment, the kernel and its rows; weights and what the host tells by
// the name of the argument; what is read, and what is written.
func (p *planned) text(commands []plan.Command) string {
	var s strings.Builder
	for _, c := range commands {
		mark := ' '
		if c.Barrier {
			mark = '|'
		}
		var uses kernel.Uses
		c.Launch.Uses(&uses)
		k := reflect.ValueOf(c.Launch).Elem()
		line := fmt.Sprintf("%c %d %s%s %s: %s > %s", mark, c.Segment, k.Type().Name(), rowsOf(k),
			strings.Join(p.arguments(k, &uses), " "), p.uses(uses.Reads), p.uses(uses.Writes))
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return s.String()
}

// rowsOf is how many rows a kernel has.
func rowsOf(k reflect.Value) string {
	for _, name := range []string{"Rows", "N", "Columns", "Pairs"} {
		if v := k.FieldByName(name); v.IsValid() && v.Kind() == reflect.Int {
			return fmt.Sprintf(" ×%d", v.Int())
		}
	}
	return ""
}

// arguments are addresses that no use has, with their names.
func (p *planned) arguments(k reflect.Value, uses *kernel.Uses) (all []string) {
	used := map[uint64]bool{0: true}
	for _, u := range append(append([]kernel.Use(nil), uses.Reads...), uses.Writes...) {
		used[u.At] = true
	}
	for i := range k.NumField() {
		field, name := k.Field(i), k.Type().Field(i).Name
		switch v := field.Interface().(type) {
		case uint64:
			if !used[v] && v >= far {
				all = append(all, name+"="+p.name(v))
			}
		case *kernel.Matrix:
			all = append(all, p.name(v.Address))
		case *kernel.Choice:
			if v != nil {
				all = append(all, fmt.Sprintf("of %d entries of %d", v.Entries, v.Grouped))
			}
		case kernel.Attention:
			all = append(all, p.arguments(field, uses)...)
			if v.Alone {
				all = append(all, "alone")
			}
		case kernel.Recurrent:
			all = append(all, p.arguments(field, uses)...)
		case kernel.Formula:
			all = append(all, [...]string{"copy", "sum", "product", "scaled", "soft cap", "activate", "gate"}[v])
		}
	}
	return all
}

// name is that of what has an address, and how far behind its begin that is.
func (p *planned) name(at uint64) string {
	name, behind := p.names[at/far*far], at%far
	if name == "entry" {
		return p.told(int(behind))
	}
	if behind == 0 {
		return name
	}
	return fmt.Sprintf("%s+%d", name, behind)
}

// told is what the host tells of a step at an offset.
func (p *planned) told(at int) string {
	e := &p.Entry
	best, name := -1, ""
	look := func(n string, begins ...int) {
		for i, b := range begins {
			if b <= at && b > best {
				best, name = b, n
				if len(begins) > 1 {
					name += fmt.Sprint(i)
				}
			}
		}
	}
	look("left", e.Left[0])
	look("wanted.left", e.Left[1])
	look("ids", e.IDs)
	look("wanted", e.Wanted)
	look("draws", e.Draws)
	for c := range e.Rows {
		if !p.p.Classes[c].State {
			look(fmt.Sprint("rows", c), e.Rows[c])
			if e.LooksAhead {
				look(fmt.Sprint("ends", c), e.Ends[c])
			}
		} else {
			look(fmt.Sprint("spans", c), e.Spans[c])
		}
	}
	look("angles", e.Angles...)
	look("tempers", e.Tempers...)
	look("numbers", e.Numbers...)
	if at != best {
		name += fmt.Sprintf("+%d", at-best)
	}
	return name
}

// uses shows rows of bytes: how many, and of those that do not touch each other how far apart.
func (p *planned) uses(all []kernel.Use) string {
	var s []string
	for _, u := range all {
		switch {
		case u.Rows == 0:
		case u.Rows == 1 && u.Width == 1:
			s = append(s, p.name(u.At))
		case u.Rows == 1:
			s = append(s, fmt.Sprintf("%s:%d", p.name(u.At), u.Width))
		case u.Width == u.Stride:
			s = append(s, fmt.Sprintf("%s:%d×%d", p.name(u.At), u.Rows, u.Width))
		default:
			s = append(s, fmt.Sprintf("%s:%d×%d/%d", p.name(u.At), u.Rows, u.Width, u.Stride))
		}
	}
	return strings.Join(s, " ")
}

// TestBarriers: between two commands of which one writes what the other touches there is a barrier, and each barrier is
// needed by two commands that no other one orders.
func TestBarriers(t *testing.T) {
	plans := map[string]*planned{}
	rapid.Check(t, func(t *rapid.T) {
		o := null.Options{Fused: rapid.Bool().Draw(t, "fused"), Integers: rapid.Bool().Draw(t, "integers"),
			Halves: rapid.Bool().Draw(t, "halves"), Scarce: rapid.Bool().Draw(t, "scarce"),
			Gathers: rapid.SampledFrom([]int{kernel.MaxColumns, kernel.GroupedColumns}).Draw(t, "gathers")}
		family := rapid.SampledFrom(backendtest.Families()).Draw(t, "family")
		kv := rapid.SampledFrom([]backend.KV{backend.KVF16, backend.KVF32, backend.KVQ8}).Draw(t, "cache")
		moves := rapid.Bool().Draw(t, "moves")
		key := fmt.Sprint(o, family, kv, moves)
		if plans[key] == nil {
			p, err := planOf(family, o, kv, moves)
			require.NoError(t, err)
			plans[key] = p
		}
		p := plans[key]
		s := rapid.SampledFrom(p.shapes(o.Halves)).Draw(t, "shape").Shape
		s.Rows = plan.RowClass(rapid.IntRange(1, 200).Draw(t, "rows"))
		s.Wanted = plan.RowClass(rapid.IntRange(1, s.Rows).Draw(t, "wanted"))
		s.Alone = rapid.Bool().Draw(t, "alone")
		s.Draws, s.Logits = rapid.Bool().Draw(t, "draws"), rapid.Bool().Draw(t, "logits")
		s.Samples = s.Draws && rapid.Bool().Draw(t, "samples")
		barriers(t, p, p.Stream(&s, p.placesOf(&s)))
	})
}

func barriers(t *rapid.T, p *planned, commands []plan.Command) {
	uses, epoch := make([]kernel.Uses, len(commands)), make([]int, len(commands)) // epoch: barriers so far
	for i := range commands {
		commands[i].Launch.Uses(&uses[i])
		if i > 0 {
			epoch[i] = epoch[i-1]
		}
		needed := false
		if commands[i].Barrier {
			epoch[i]++
		}
		for j := range i {
			if !conflict(&uses[i], &uses[j]) {
				continue
			}
			if epoch[i] == epoch[j] {
				t.Fatalf("no barrier between two of these:\n%s", p.text([]plan.Command{commands[j], commands[i]}))
			}
			needed = needed || epoch[j] == epoch[i]-1
		}
		if commands[i].Barrier && !needed {
			t.Fatalf("a barrier that nothing needs before\n%s", p.text(commands[i:i+1]))
		}
	}
}

// conflict says whether one writes what the other touches.
func conflict(a, b *kernel.Uses) bool {
	for _, both := range [...][2][]kernel.Use{{a.Writes, b.Writes}, {a.Writes, b.Reads}, {a.Reads, b.Writes}} {
		for _, u := range both[0] {
			for _, v := range both[1] {
				if u.Meets(v) {
					return true
				}
			}
		}
	}
	return false
}

// bare is a card that plays no loops.
type bare struct{ kernel.Table }

func (bare) Plays(ir.Op) bool { return false }

// TestEveryOpHasKernels: each op is planned for cards that have kernels alone.
func TestEveryOpHasKernels(t *testing.T) {
	d := null.Open(null.Options{})
	defer d.Close(false)
	for _, op := range ir.Ops() {
		for _, c := range op.Cases() {
			m, err := backendtest.CaseModel(c)
			require.NoError(t, err)
			_, err = planOn(bare{d.Kernels()}, m, backend.KVF32, false)
			if lacks := plan.Lacks(m.Program); lacks != nil {
				require.ErrorContains(t, err, lacks.Error(), "what a card says that it lacks it refuses")
				continue
			}
			require.NoError(t, err, "%s has no kernels: plan it in gpu/plan/nodes.go", op)
		}
	}
}

// narrow is a card where few rows attend at once.
type narrow struct{ kernel.Table }

func (narrow) AttentionRows() int { return 24 }

// TestAttentionRows: rows attend as many at once as a card says, all of them, one after the other.
func TestAttentionRows(t *testing.T) {
	d := null.Open(null.Options{})
	defer d.Close(false)
	m, err := backendtest.Small("llama", quant.Q8_0)
	require.NoError(t, err)
	p, err := planOn(narrow{d.Kernels()}, m, backend.KVF32, false)
	require.NoError(t, err)
	for _, s := range p.shapes(false) {
		var rows []int
		for _, c := range p.Stream(&s.Shape, p.placesOf(&s.Shape)) {
			if a, ok := c.Launch.(*kernel.Attend); ok {
				rows = append(rows, a.N)
			}
		}
		if s.Rows == 64 && len(rows) > 0 {
			require.Equal(t, []int{24, 24, 16}, rows[:3], s.name)
			require.Zero(t, len(rows)%3)
			return
		}
	}
	require.Fail(t, "nothing attends")
}
