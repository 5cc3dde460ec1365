package tiers

import (
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/arch"
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

func (m *slotted) Slot(int) []byte {
	if m.none {
		return nil
	}
	return make([]byte, 1<<20)
}

func (m *slotted) Place(group, slot int, _ [][]byte) error { return m.place(group, slot) }

// warehouse is a residency with what a test knows of it.
type warehouse struct {
	*Residency
	t      *rapid.T
	source Source
	coming map[int]item // by slot, as it was wanted
	lent   []*Loan
	placed map[int]int // by slot
	news   []Landed    // all so far
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
	} {
		f, err := gguf.Open(c.path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		bound := bind(t, f)
		plan, err := place.Make([]place.Ask{{Program: bound}}, place.Machine{Memory: 1 << 30})
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
	m := &slotted{place: w.place, none: w.early}
	w.Residency = NewResidency(NewCargo(s, m, new(atomic.Int64)), w.wanted, nil)
	w.Fill()
	return w
}

func (w *warehouse) layout() *backend.Config { return &w.source.Plan.Parts[0].Layout }

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
		require.Equal(w.t, demanded, m.urgency)
		return
	}
	w.coming[m.slot] = m.item
}

// land has something arrive, or fail to.
func (w *warehouse) land() {
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
	for i := range w.segment {
		s := &w.segment[i]
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
			if len(w.coming) > 0 && rapid.Bool().Draw(w.t, "something lands") || len(l.Groups) == 0 {
				require.NotEmpty(w.t, w.coming, "nothing is on its way, and %v are missing", left)
				w.land()
			}
		}
	}
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
	c := NewCargo(s, &slotted{place: func(int, int) error { return nil }}, new(atomic.Int64))
	r := NewResidency(c, func(m *Want) { came = m.item }, nil)
	segment := s.Plan.Parts[0].Shelves[0].Segment
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
