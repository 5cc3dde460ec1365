package backendtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Slots checks that a program with fewer slots than groups has the bits of the program with all weights resident,
// whatever the slots, the order in which groups come and go, and the parts in which segments are computed. A device
// that does not share slots is given one for each group.
func Slots(t *testing.T, d backend.Device, matrixTypes []quant.Type) {
	s := small{layers: 2, width: 32, ffn: 96, vocab: 300, heads: 2, kvHeads: 1, head: 16, used: 3}
	run := func(name string, p *ir.Program, err error) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, err)
			m, err := made(judge.Random(p, 31, inTurn(narrowest(matrixTypes))))
			require.NoError(t, err)
			seeds := uint64(1)
			if d.Traits().Shares {
				seeds = 4
			}
			if d.Traits().Memory == backend.OwnMemory {
				seeds = 2 // each takes a minute where a CPU compiles kernels
			}
			for seed := range seeds {
				m.InSlots(t, d, seed)
			}
		})
	}
	for _, f := range models {
		p, err := f.record(s)
		run(f.name, p, err)
	}
	for _, o := range orders {
		p, err := ordered(s, o.record)
		run(o.name, p, err)
	}
	p, err := biasedHead(s)
	run("biased head", p, err)
	t.Run("steep", func(t *testing.T) {
		p, err := mixtureLike(s)
		require.NoError(t, err)
		m, err := made(judge.Random(p, 31, judge.All(quant.F32)))
		require.NoError(t, err)
		m.steepen(t)
		m.InSlots(t, d, 38)
	})
	t.Run("wide", func(t *testing.T) {
		p, err := mixtureLike(small{layers: 1, width: 256, ffn: 256, vocab: 300, heads: 8, kvHeads: 2, head: 32, used: 2})
		require.NoError(t, err)
		m, err := made(judge.Random(p, 32, inTurn(matrixTypes)))
		require.NoError(t, err)
		m.InSlots(t, d, 33)
	})
	if d.Traits().Shares {
		t.Run("Laws", func(t *testing.T) { lawsInSlots(t, d, narrowest(matrixTypes)) })
	}
	if _, both := d.(split); d.Traits().Shares && !both { // each device has refused it
		t.Run("Refused", func(t *testing.T) { badSlots(t, d) })
		t.Run("Unready", func(t *testing.T) { unready(t, d) })
	}
}

// lawsInSlots checks that rows depend on their own sequence only, whatever groups others in the step need or displace.
func lawsInSlots(t *testing.T, d backend.Device, types []quant.Type) {
	p, err := mixtureLike(small{layers: 2, width: 32, ffn: 96, vocab: 150, heads: 2, kvHeads: 1, head: 16, used: 3})
	require.NoError(t, err)
	m, err := made(judge.Random(p, 39, inTurn(types)))
	require.NoError(t, err)
	m.Piece = 1
	w := newLawful(t, d, m)
	w.loaded = juggle(t, d, m, w.config, 40).loaded
	w.fewTimes(t)
	t.Run("ChunkFree", func(t *testing.T) { rapid.Check(t, w.chunkFree) })
	t.Run("RowAlone", func(t *testing.T) { rapid.Check(t, w.rowAlone) })
	t.Run("Wanted", w.wanted)
}

// biasedHead has no layers, and a head whose bias is added to the outputs of all pieces.
func biasedHead(s small) (*ir.Program, error) {
	b := ir.NewBuilder("biased", func(name string) bool { return name == "output.weight" || name == "output.bias" })
	b.Head(b.Rows(b.Embed("token_embd", s.vocab, s.width)), "output", "")
	return b.Program(1 << 10)
}

// steepen makes routers prefer some experts so much that others get weight 0: rows then use fewer than they may.
func (m *Model) steepen(t *testing.T) {
	for _, s := range m.Segments {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Op == ir.Route {
				w := s.Nodes[i-1].W
				require.Equal(t, quant.F32, m.Types[w])
				x, err := m.Decode(w)
				require.NoError(t, err)
				for k := range x {
					x[k] *= 300
				}
				require.NoError(t, quant.Quantize(quant.F32, m.Weights[w], x))
			}
		}
	}
}

// InSlots runs a prompt in one step and in chunks, and a step without wanted rows, with random slots; all must have the
// bits of the model with all weights resident.
func (m *Model) InSlots(t *testing.T, d backend.Device, seed uint64) {
	t.Helper()
	const n = 20
	tokens := prompt(34, n, m.Vocab)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 2), MaxRows: n,
		MaxWanted: n}}
	want := load(t, d, m, c).sequence(t, tokens, table(n, 0), n)
	cut := *m.Bound
	cut.Piece = 1 // rounded up to some rows
	pieces := &Model{&judge.Model{Bound: &cut, Weights: m.Weights}}
	sameBits(t, "in pieces", m.OutputWidth(), load(t, d, pieces, c).sequence(t, tokens, table(n, 0), n), want)
	j := juggle(t, d, pieces, c, seed)
	sameBits(t, "in slots", m.OutputWidth(), j.sequence(t, tokens, table(n, 0), n), want)
	sameBits(t, "in slots, in chunks", m.OutputWidth(), j.sequence(t, tokens, table(n, 1), 1, 7, 1), want)
	j.unwanted(t, tokens)
	sameBits(t, "in slots, after a step for its cache", m.OutputWidth(), j.step(t, rows{tokens[n-1:], n - 1, table(n, 0)}),
		want[(n-1)*m.OutputWidth():])
}

// unwanted runs all but the last token only to fill the cache: the end then needs no group.
func (j *juggler) unwanted(t *testing.T, tokens []int32) {
	t.Helper()
	s := j.Steps()[0]
	n := len(tokens) - 1
	s.Tokens, s.Wanted = tokens[:n], nil
	s.Spans = []backend.Span{{Rows: n, Tables: Tables(j.m.Program, table(n, 0))}}
	require.NoError(t, j.run(s))
}

// juggler drives a model whose groups share slots: it places the groups that a segment needs over others, computes with
// them part by part, and overwrites those that are no longer leased.
type juggler struct {
	*loaded
	shares bool // the device shares slots
	traits backend.Traits
	kept   []int // groups of which the device keeps a copy
	t      *testing.T
	rng    *rand.Rand
	groups []ir.Group
	own    []bool
	slots  [][]int // by group: those that it may be placed in
	at     []int   // by group: the slot that it is in; -1: none
	holds  []int   // by slot: a group; -1: none
	chosen []int32 // of the last route
	told   chan []int32
}

// juggle compiles a model for random slots.
func juggle(t *testing.T, d backend.Device, m *Model, c backend.Config, seed uint64) *juggler {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 35))
	groups := m.On(m.All())
	for _, side := range sides(d, m.Bound, groups) {
		var here []ir.Group
		for _, g := range side {
			here = append(here, groups[g])
		}
		for _, fit := range randomSlots(rng, here, d.Traits().Shares) {
			for i, g := range fit {
				fit[i] = side[g]
			}
			c.Slots = append(c.Slots, fit)
		}
	}
	return newJuggler(t, d, m, c, rng)
}

// newJuggler compiles a model, and uploads the groups that have slots of their own.
func newJuggler(t *testing.T, d backend.Device, m *Model, c backend.Config, rng *rand.Rand) *juggler {
	t.Helper()
	groups := m.On(m.All())
	c.Weights, c.Kept = backend.Uploaded{Tables: m.Weights}, nil
	if d.Traits().Memory == backend.OwnMemory {
		main := sides(d, m.Bound, groups)[0]
		c.Kept = slices.DeleteFunc(randomKept(rng, c.Own(len(groups)), groups), func(g int) bool {
			return !slices.Contains(main, g)
		})
	}
	model, err := compile(t, d, m, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	j := &juggler{shares: d.Traits().Shares, traits: d.Traits(), kept: c.Kept, t: t, rng: rng, groups: groups,
		own:   c.Own(len(groups)),
		slots: make([][]int, len(groups)), at: slices.Repeat([]int{-1}, len(groups)),
		holds: slices.Repeat([]int{-1}, len(c.Slots))}
	j.loaded = &loaded{Model: model, m: m, config: c, through: j.through}
	for s, fit := range c.Slots {
		for _, g := range fit {
			j.slots[g] = append(j.slots[g], s)
		}
	}
	for g := range groups {
		if j.own[g] || slices.Contains(j.kept, g) {
			j.upload(g)
		}
	}
	if _, both := d.(split); j.shares && !both {
		j.withinBudget()
	}
	return j
}

// randomKept picks some groups that share slots.
func randomKept(rng *rand.Rand, own []bool, groups []ir.Group) (kept []int) {
	keep := rng.IntN(5) // of 4
	for g := range groups {
		if !own[g] && groups[g].Use == ir.Matrix && rng.IntN(4) < keep {
			kept = append(kept, g)
		}
	}
	return kept
}

// randomSlots makes up slots: some matrices have their own, the others share a few. A table may be in none.
func randomSlots(rng *rand.Rand, groups []ir.Group, share bool) (slots [][]int) {
	var streamed []int
	keep := rng.IntN(3) // of 4
	for g := range groups {
		switch {
		case share && groups[g].Use == ir.Matrix && rng.IntN(4) >= keep:
			streamed = append(streamed, g)
		case groups[g].Use != ir.Table || !share || rng.IntN(2) == 0:
			slots = append(slots, []int{g})
		}
	}
	if len(streamed) == 1 {
		return append(slots, streamed)
	}
	for n := 1 + rng.IntN(4); n > 0 && len(streamed) > 0; n-- {
		fit := slices.Clone(streamed) // the last one takes all, so that each group has a slot
		if n > 1 {
			rng.Shuffle(len(fit), func(a, b int) { fit[a], fit[b] = fit[b], fit[a] })
			fit = fit[:2+rng.IntN(len(fit)-1)]
		}
		slots = append(slots, fit)
	}
	rng.Shuffle(len(slots), func(a, b int) { slots[a], slots[b] = slots[b], slots[a] })
	return slots
}

// withinBudget checks that the memory of weights is at most what a plan assumes: groups with slots of their own as in
// the file, padded to whole tiles, and shared slots. Vectors are float32.
func (j *juggler) withinBudget() {
	most, p := int64(0), j.m.Bound
	for s, fit := range j.config.Slots {
		slot := int64(0)
		for _, g := range fit {
			slot = max(slot, j.traits.RoomFor(p, &j.groups[g], true))
		}
		if len(fit) == 1 && j.traits.Bytes == nil {
			slot = 2*j.groups[fit[0]].Bytes + 64
			for _, r := range j.groups[fit[0]].Weights {
				slot += int64(j.RowGrain()*j.m.RowBytes(r)) + 64
			}
		} else if memory := j.Slot(s); memory != nil {
			require.GreaterOrEqual(j.t, int64(len(memory)), slot)
		}
		most += slot
	}
	require.LessOrEqual(j.t, j.Memory().Weights, most)
}

// through runs a step.
func (j *juggler) through(s *backend.Step) (err error) {
	if !j.shares {
		return j.whole(s)
	}
	for i := 0; i < len(j.m.Segments) && err == nil; i++ {
		err = j.segment(i, s)
		if j.m.Segments[i].Kind == ir.SegRoute && len(j.m.Segments[i].Nodes) > 0 && err == nil {
			j.hear(i, s)
		}
	}
	return errors.Join(err, finish(j.Model, s))
}

// segment computes a segment whole if all groups that it needs fit the slots together, else in parts.
func (j *juggler) segment(i int, s *backend.Step) error {
	need, chosen := j.needs(i, s), j.hears(i)
	j.rng.Shuffle(len(need), func(a, b int) { need[a], need[b] = need[b], need[a] })
	if now, rest := j.gather(need, len(need)); len(rest) == 0 && j.rng.IntN(3) == 0 {
		err := j.Run(backend.Work{Segment: i, Whole: true, Chosen: chosen}, s)
		j.ruin(now)
		return err
	}
	for {
		most := 1 + j.rng.IntN(4)
		if !j.divided(i) {
			most = 1
		}
		now, rest := j.gather(need, most)
		w := backend.Work{Segment: i, Groups: now, Last: len(rest) == 0, Chosen: chosen}
		if w.Last && j.divided(i) && j.rng.IntN(4) == 0 {
			w.Last = false // it comes alone
		}
		if err := j.part(w, s); err != nil {
			return err
		}
		if w.Last {
			return nil
		}
		need = rest
	}
}

// part computes a part, and waits until its groups may be displaced.
func (j *juggler) part(w backend.Work, s *backend.Step) error {
	done := make(chan struct{}, 1)
	w.Done = func() { done <- struct{}{} }
	err := j.Run(w, s)
	<-done
	if err == nil {
		j.ruin(w.Groups)
	}
	return err
}

// divided says whether a segment may have several parts.
func (j *juggler) divided(i int) bool {
	n := 0
	for _, g := range j.groups {
		if g.Segment == i && g.Use == ir.Matrix {
			n++
		}
	}
	return n > 1
}

// needs lists the groups that the parts of a segment have to name, and sometimes one more.
func (j *juggler) needs(i int, s *backend.Step) (need []int) {
	for g := range j.groups {
		x := &j.groups[g]
		switch {
		case x.Segment != i || x.Use != ir.Matrix:
		case x.Expert != ir.Dense && !j.goes(x.Expert) && j.rng.IntN(4) > 0:
		case j.m.Segments[i].Kind.Ends() && len(s.Wanted) == 0 && j.rng.IntN(4) > 0:
		default:
			need = append(need, g)
		}
	}
	return need
}

// gather places some groups in slots where they do not displace each other, at least one, and returns those left.
func (j *juggler) gather(need []int, most int) (now, rest []int) {
	taken := make([]bool, len(j.holds))
	for _, g := range need {
		slot := -1
		if !j.own[g] && len(now) < most {
			slot = j.room(g, taken)
		}
		if len(now) == most || !j.own[g] && slot < 0 {
			rest = append(rest, g)
			continue
		}
		if slot >= 0 {
			taken[slot] = true
			j.place(g, slot)
		}
		now = append(now, g)
	}
	return now, rest
}

// room returns a slot for a group, preferably the one that it is in; -1: none is left.
func (j *juggler) room(g int, taken []bool) int {
	if at := j.at[g]; at >= 0 && !taken[at] && j.rng.IntN(4) > 0 {
		return at
	}
	free := slices.DeleteFunc(slices.Clone(j.slots[g]), func(s int) bool { return taken[s] })
	if len(free) == 0 {
		return -1
	}
	return free[j.rng.IntN(len(free))]
}

// place puts a group into a slot, unless it is there: each weight at a random offset in a sector, as a drive reads it.
func (j *juggler) place(g, slot int) {
	if j.at[g] == slot {
		return
	}
	if out := j.holds[slot]; out >= 0 {
		j.at[out] = -1
	}
	if at := j.at[g]; at >= 0 {
		j.holds[at] = -1
	}
	j.holds[slot], j.at[g] = g, slot
	memory := j.Slot(slot)
	if memory == nil {
		require.NoError(j.t, j.Place(g, slot, nil))
		if !slices.Contains(j.kept, g) {
			j.upload(g)
		}
		return
	}
	require.NoError(j.t, j.Place(g, slot, j.lay(g, memory)))
}

// lay writes a group's rows into memory.
func (j *juggler) lay(g int, memory []byte) (data [][]byte) {
	at := 0
	for _, r := range j.groups[g].Weights {
		rows := j.rowsOf(g, r)
		there := memory[at+j.rng.IntN(backend.Sector):][:len(rows)]
		copy(there, rows)
		data, at = append(data, there), at+int(backend.ExtentBytes(int64(len(rows))))
	}
	return data
}

// rowsOf returns the rows that a group has of a weight, as in the file.
func (j *juggler) rowsOf(g int, r ir.Ref) []byte {
	from, to := j.groups[g].Rows(&j.m.Program.Weights[r])
	size := j.m.RowBytes(r)
	return j.m.Weights[r][from*size : to*size]
}

func (j *juggler) upload(g int) {
	for _, r := range j.groups[g].Weights {
		from, _ := j.groups[g].Rows(&j.m.Program.Weights[r])
		require.NoError(j.t, j.Upload(r, from, j.rowsOf(g, r)), "%s", j.m.Program.Weights[r].Name)
	}
}

// ruin overwrites the slots of some groups half of the time: nobody may read them any more.
func (j *juggler) ruin(groups []int) {
	for _, g := range groups {
		if slot := j.at[g]; slot >= 0 && j.rng.IntN(2) == 0 {
			data := j.Slot(slot)
			for i := range data {
				data[i] = 0xff
			}
			j.at[g], j.holds[slot] = -1, -1
		}
	}
}

// hears returns the callback for a segment's chosen experts, if it is a route.
func (j *juggler) hears(i int) func(experts []int32) {
	if s := &j.m.Segments[i]; s.Kind != ir.SegRoute || len(s.Nodes) == 0 {
		return nil
	}
	j.told = make(chan []int32, 1)
	return func(experts []int32) { j.told <- slices.Clone(experts) }
}

// hear waits for the choice of a route, and checks that it is the experts with a weight.
func (j *juggler) hear(i int, s *backend.Step) {
	j.chosen = <-j.told
	for k := range j.m.Segments[i].Nodes {
		n := &j.m.Segments[i].Nodes[k]
		if n.Op != ir.Route {
			continue
		}
		experts := j.m.Widths[n.Out]
		weights := make([]float32, len(s.Tokens)*experts)
		require.NoError(j.t, j.Out(n.Out, s, weights))
		require.Len(j.t, j.chosen, len(s.Tokens)*n.Route.Used)
		for r := range s.Tokens {
			want := slices.Repeat([]int32{-1}, n.Route.Used)
			k := 0
			for e, w := range weights[r*experts:][:experts] {
				if w != 0 {
					want[k] = int32(e)
					k++
				}
			}
			require.Equal(j.t, want, j.chosen[r*n.Route.Used:][:n.Route.Used], fmt.Sprintf("experts of row %d", r))
		}
	}
}
