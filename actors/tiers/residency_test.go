package tiers

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/placetest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// slotted is a model that only has slots.
type slotted struct {
	backend.Model
	place func(group, slot int) error
	none  bool // no memory that is read into
}

func (*slotted) Foresees(int) (int, bool) { return 0, false }

func (m *slotted) Slot(int) []byte {
	if m.none {
		return nil
	}
	return make([]byte, 1<<20)
}

func (m *slotted) Place(group, slot int, _ [][]byte) error { return m.place(group, slot) }

// seer also foresees, whatever a test says.
type seer struct{ slotted }

func (*seer) Foresees(int) (int, bool) { return 0, true }

// warehouse is a residency with what a test knows of it.
type warehouse struct {
	*Residency
	t      *rapid.T
	source Source
	coming map[int]item // by slot, as it was wanted
	lent   []*Loan
	placed map[int]int // by slot
	news   []Landed    // all so far
	gone   []*Landed   // of guesses that were forsaken, and not heard of yet
	early  bool        // slots are placed before they are filled
}

// plans are models with groups that share slots.
func plans(t *testing.T) (all []Source) {
	moe := filepath.Join(testref.Dir(t), "fixtures", "qwen3moe.gguf")
	for _, c := range []struct {
		path string
		few  placetest.Few
	}{
		{filepath.Join("..", "testdata", "qwen3.gguf"), placetest.Few{Ring: 2, Piece: 16 << 10}},
		{moe, placetest.Few{Ring: 3, Shelf: 1, Piece: 16 << 10}},
		{moe, placetest.Few{Shelf: 2}},
		{moe, placetest.Few{Shelf: 5}},
	} {
		f, err := gguf.Open(c.path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		bound := bind(t, f)
		plan, err := place.Make([]place.Ask{{Program: bound}}, place.Machine{Memory: []int64{1 << 30}})
		require.NoError(t, err)
		c.few.Plan(bound, &plan.Models[0])
		all = append(all, Source{File: f, Bound: bound, Plan: &plan.Models[0]})
	}
	return all
}

// bind finds the weights of a file's program.
func bind(t *testing.T, f *gguf.File) *ir.Bound {
	has := func(name string) bool { _, ok := f.Tensor(name); return ok }
	program, err := arch.Record(&f.Meta, has, arch.Options{})
	require.NoError(t, err)
	var tensors []ir.Tensor
	for _, x := range f.Tensors {
		tensors = append(tensors, ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape})
	}
	bound, err := ir.Bind(program, tensors)
	require.NoError(t, err)
	return bound
}

func newWarehouse(t *rapid.T, s Source) *warehouse {
	w := &warehouse{t: t, source: s, coming: map[int]item{}, placed: map[int]int{}, early: rapid.Bool().Draw(t, "early")}
	m := &seer{slotted{place: w.place, none: w.early}}
	w.Residency = NewResidency(NewCargo(s, m, new(Progress)), w.wanted, nil)
	if rapid.Bool().Draw(t, "blind") {
		w.ahead = nil
	}
	w.Fill()
	return w
}

func (w *warehouse) layout() *backend.Config { return &w.source.Plan.Layout }

// place must find nobody who reads the slot.
func (w *warehouse) place(group, slot int) error {
	require.Zero(w.t, w.slots[slot].leases, "group %d is placed in slot %d, which is lent", group, slot)
	require.Contains(w.t, w.layout().Slots[slot], group)
	w.placed[slot] = group
	return nil
}

// wanted must not have a slot written to that is lent or already written to.
func (w *warehouse) wanted(m *Want) {
	require.Zero(w.t, w.slots[m.slot].leases)
	require.Contains(w.t, w.layout().Slots[m.slot], m.group)
	if old, ok := w.coming[m.slot]; ok {
		require.Equal(w.t, old, m.item, "while something else is on its way to the slot")
		if m.urgency == forsaken && rapid.Bool().Draw(w.t, "has not begun") {
			delete(w.coming, m.slot)
			w.gone = append(w.gone, &Landed{item: m.item, Err: errForsaken})
			return
		}
		require.Contains(w.t, []urgency{demanded, forsaken}, m.urgency)
		return
	}
	for _, x := range w.gone {
		require.True(w.t, x.slot != m.slot || x.item == m.item, "the slot is not known to be free")
	}
	w.coming[m.slot] = m.item
}

// land has something arrive, or fail to.
func (w *warehouse) land() {
	if len(w.gone) > 0 {
		m := w.gone[0]
		w.gone = w.gone[1:]
		w.Landed(m)
		return
	}
	slots := make([]int, 0, len(w.coming))
	for at := range w.coming {
		slots = append(slots, at)
	}
	slices.Sort(slots)
	at := rapid.SampledFrom(slots).Draw(w.t, "lands")
	m := &Landed{item: w.coming[at]}
	if rapid.IntRange(0, 5).Draw(w.t, "fails") == 0 {
		m.Err = errors.New("input/output error")
	}
	delete(w.coming, at)
	w.Landed(m)
	w.news = append(w.news, Landed{item: m.item})
	w.Landed(&w.news[rapid.IntRange(0, len(w.news)-1).Draw(w.t, "heard again")])
	if m.Err == nil {
		require.Equal(w.t, m.group, w.placed[at])
	}
}

// step goes through the program and may be given up anywhere. Every group that it reads is there, and it never waits
// for what nobody brings.
func (w *warehouse) step() {
	w.Begin(rapid.SliceOfN(rapid.Int32Range(-1, 3), 0, 2).Draw(w.t, "tokens"))
	for i := range w.segment {
		s := &w.segment[i]
		w.foresee(i)
		if !s.streams {
			continue
		}
		left := slices.Clone(s.groups)
		if len(s.expert) > 0 {
			chosen := rapid.SliceOfN(rapid.Int32Range(-1, int32(len(s.expert)-1)), 0, 8).Draw(w.t, "chosen")
			left = w.Choose(i, nil, chosen)
		} else if rapid.IntRange(0, 9).Draw(w.t, "unwanted") == 0 {
			w.Pass(s.groups)
			left = nil
		}
		for patience := 1000; len(left) > 0; patience-- {
			require.Positive(w.t, patience, "groups %v never come", left)
			if rapid.IntRange(0, 12).Draw(w.t, "given up") == 0 {
				return
			}
			w.Demand(i, left)
			l := w.Lend(left)
			for _, g := range l.Groups {
				at := w.groups[g].slot
				require.NotContains(w.t, w.coming, at, "group %d is half read", g)
				if w.cargo.home(g).Slot < 0 {
					require.Equal(w.t, g, w.placed[at])
				}
			}
			left = slices.DeleteFunc(left, func(g int) bool { return slices.Contains(l.Groups, g) })
			w.lent = append(w.lent, l)
			if len(l.Groups) == 0 || rapid.Bool().Draw(w.t, "returns") {
				w.returnAll()
			}
			w.Demand(i, left)
			if len(w.coming)+len(w.gone) > 0 && rapid.Bool().Draw(w.t, "something lands") || len(l.Groups) == 0 {
				require.True(w.t, len(w.coming)+len(w.gone) > 0, "nothing is on its way, and %v are missing", left)
				w.land()
			}
		}
	}
}

// foresee may tell what a route could choose.
func (w *warehouse) foresee(segment int) {
	if w.ahead == nil || w.ahead.routes[segment] < 0 || rapid.Bool().Draw(w.t, "nothing is foreseen") {
		return
	}
	require.True(w.t, w.Foresees(segment))
	n := len(w.ahead.layers[w.ahead.routes[segment]].expert)
	margins := rapid.SliceOfN(rapid.Int8Range(backend.MarginFloor, 60), n, 2*n).Draw(w.t, "margins")
	w.Foreseen(segment, rapid.Bool().Draw(w.t, "late"), margins)
	coming := 0
	for at := range w.slots {
		if x := &w.slots[at]; x.group >= 0 && x.asked == guessed && !w.groups[x.group].there {
			coming++
		}
	}
	require.Equal(w.t, w.guesses, coming)
	require.LessOrEqual(w.t, coming, mostGuesses)
}

func (w *warehouse) returnAll() {
	for _, l := range w.lent {
		w.Settle(l)
	}
	w.lent = nil
}

// Nothing is overwritten that is read, nothing is read that is not whole, and every step gets what it needs, in
// whatever order things come, fail and are given up.
func TestResidency(t *testing.T) {
	all := plans(t)
	rapid.Check(t, func(t *rapid.T) {
		w := newWarehouse(t, all[rapid.IntRange(0, len(all)-1).Draw(t, "plan")])
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			w.step()
		}
	})
}

// A ring reads ahead from the end of one step into the next, each group once a step.
func TestRingWraps(t *testing.T) {
	s := plans(t)[0]
	rapid.Check(t, func(t *rapid.T) {
		w := newWarehouse(t, s)
		wants := 0
		w.want = func(m *Want) {
			w.wanted(m)
			if m.urgency == ahead {
				wants++
			}
		}
		order := w.ring.order
		for range 3 {
			wants = 0
			for _, g := range order {
				for !w.groups[g].there {
					at := w.groups[g].slot
					require.GreaterOrEqual(t, at, 0, "it was read ahead")
					w.Landed(&Landed{item: w.coming[at]})
					delete(w.coming, at)
				}
				w.Settle(w.Lend([]int{g}))
			}
			require.Equal(t, len(order), wants)
		}
	})
}

// TestExpertsStay: where tokens use one expert after another and they do not all fit, some stay, and are found.
func TestExpertsStay(t *testing.T) {
	s := plans(t)[2]
	var came item
	c := NewCargo(s, &slotted{place: func(int, int) error { return nil }}, new(Progress))
	r := NewResidency(c, func(m *Want) { came = m.item }, nil)
	segment := s.Plan.Shelves[0].Segment
	const tokens = 2000
	hits := 0
	for i := range tokens {
		need := r.Choose(segment, nil, []int32{int32(i % len(r.segment[segment].expert))})
		require.Len(t, need, 1)
		if r.groups[need[0]].there {
			hits++
			continue
		}
		r.Demand(segment, need)
		require.Equal(t, need[0], came.group)
		r.Landed(&Landed{item: came})
	}
	slots, experts := len(r.segment[segment].shelf), len(r.segment[segment].expert)
	t.Logf("%d hits of %d with %d slots for %d experts", hits, tokens, slots, experts)
	require.Greater(t, hits, tokens*(slots-1)/experts*8/10)
}

// TestGuesses: what is foreseen is there when it is chosen; what is not chosen is forsaken, and may come all the same.
func TestGuesses(t *testing.T) {
	s := plans(t)[3]
	var wants []*Want
	c := NewCargo(s, &seer{slotted{place: func(int, int) error { return nil }}}, new(Progress))
	r := NewResidency(c, func(m *Want) { wants = append(wants, m) }, nil)
	segment := s.Plan.Shelves[0].Segment
	x := &r.segment[segment]
	margins := slices.Repeat([]int8{backend.MarginFloor}, len(x.expert))
	margins[3], margins[5] = 60, 40
	r.Begin([]int32{7})
	require.Empty(t, wants)
	require.True(t, r.Foresees(x.route))
	r.Foreseen(x.route, false, margins)
	require.Len(t, wants, 2)
	require.Equal(t, x.expert[3], wants[0].group)
	require.Equal(t, x.expert[5], wants[1].group)
	require.Equal(t, guessed, wants[0].urgency)
	r.Landed(&Landed{item: wants[0].item})
	need := r.Choose(segment, nil, []int32{3, 4})
	require.Equal(t, forsaken, wants[2].urgency)
	require.Equal(t, x.expert[5], wants[2].group)
	r.Demand(segment, need)
	require.Len(t, wants, 4, "expert 3 is there")
	require.Equal(t, x.expert[4], wants[3].group)
	require.Equal(t, demanded, wants[3].urgency)
	r.Landed(&Landed{item: wants[2].item, Err: errForsaken})
	require.Negative(t, r.groups[x.expert[5]].slot)
	require.Zero(t, r.guesses)
	require.False(t, r.Foresees(segment))
}

// TestForsakenIsWantedAgain: the word that a forsaken guess will not come crosses the next step's demand for its group.
// The group keeps its slot then, and is there once it lands.
func TestForsakenIsWantedAgain(t *testing.T) {
	s := plans(t)[3]
	var wants []*Want
	c := NewCargo(s, &seer{slotted{place: func(int, int) error { return nil }}}, new(Progress))
	r := NewResidency(c, func(m *Want) { wants = append(wants, m) }, nil)
	segment := s.Plan.Shelves[0].Segment
	x := &r.segment[segment]
	margins := slices.Repeat([]int8{backend.MarginFloor}, len(x.expert))
	margins[5] = 40
	r.Begin([]int32{7})
	r.Foreseen(x.route, false, margins)
	r.Choose(segment, nil, []int32{3})
	require.Equal(t, []urgency{guessed, forsaken}, []urgency{wants[0].urgency, wants[1].urgency})

	r.Demand(segment, r.Choose(segment, nil, []int32{5}))
	require.Equal(t, demanded, wants[2].urgency)
	slot := r.groups[x.expert[5]].slot
	r.Landed(&Landed{item: wants[1].item, Err: errForsaken})
	require.Equal(t, slot, r.groups[x.expert[5]].slot, "its slot is kept")
	require.False(t, r.groups[x.expert[5]].there)
	r.Landed(&Landed{item: wants[2].item})
	require.True(t, r.groups[x.expert[5]].there)
}
