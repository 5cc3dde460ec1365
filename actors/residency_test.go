package actors

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/place"
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
	*residency
	t      *rapid.T
	spec   *spec
	coming map[int]item // by slot, as it was wanted
	lent   []*loan
	placed map[int]int // by slot
	news   []landed    // all so far
	early  bool        // slots are placed before they are filled
}

// plans are programs with groups that share slots.
func plans(t *testing.T) (all []*spec) {
	for _, c := range []struct {
		name string
		few
	}{
		{fixture, few{ring: 2, piece: 16 << 10}}, {"qwen3moe", few{ring: 3, shelf: 1, piece: 16 << 10}},
		{"qwen3moe", few{shelf: 2}},
	} {
		f, err := gguf.Open(fixturePath(t, c.name))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		m := Model{File: f}
		s, err := specOf(&m)
		require.NoError(t, err)
		plan, err := place.Make([]place.Ask{{Program: s.bound}}, place.Machine{Memory: 1 << 30})
		require.NoError(t, err)
		c.plan(s.bound, &plan.Models[0])
		s.settle(&plan.Models[0], &m, backend.Traits{Flight: 1})
		all = append(all, s)
	}
	return all
}

func newWarehouse(t *rapid.T, s *spec) *warehouse {
	w := &warehouse{t: t, spec: s, coming: map[int]item{}, placed: map[int]int{}, early: rapid.Bool().Draw(t, "early")}
	m := &slotted{place: w.place, none: w.early}
	c := newCargo(&guest{spec: s, model: m})
	w.residency = newResidency(c, &s.plan.Parts[0], s.bound, w.wanted, nil)
	w.fill()
	return w
}

// place must find nobody who reads the slot.
func (w *warehouse) place(group, slot int) error {
	require.Zero(w.t, w.slots[slot].leases, "group %d is placed in slot %d, which is lent", group, slot)
	require.Contains(w.t, w.spec.layout.Slots[slot], group)
	w.placed[slot] = group
	return nil
}

// wanted must not have a slot written to that is lent or already written to.
func (w *warehouse) wanted(m *want) {
	require.Zero(w.t, w.slots[m.slot].leases)
	require.Contains(w.t, w.spec.layout.Slots[m.slot], m.home)
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
	m := &landed{item: w.coming[at]}
	if rapid.IntRange(0, 5).Draw(w.t, "fails") == 0 {
		m.err = errors.New("input/output error")
	}
	delete(w.coming, at)
	w.landed(m)
	w.news = append(w.news, landed{item: m.item})
	w.landed(&w.news[rapid.IntRange(0, len(w.news)-1).Draw(w.t, "heard again")])
	if m.err == nil {
		require.Equal(w.t, m.home, w.placed[at])
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
			left = w.choose(i, nil, chosen)
		} else if rapid.IntRange(0, 9).Draw(w.t, "unwanted") == 0 {
			w.pass(s.groups)
			left = nil
		}
		for patience := 1000; len(left) > 0; patience-- {
			require.Positive(w.t, patience, "groups %v never come", left)
			if rapid.IntRange(0, 12).Draw(w.t, "given up") == 0 {
				return
			}
			w.demand(i, left)
			l := w.lend(left)
			for _, g := range l.groups {
				at := w.groups[g].slot
				require.NotContains(w.t, w.coming, at, "group %d is half read", g)
				if w.cargo.homes[g].Slot < 0 {
					require.Equal(w.t, g, w.placed[at])
				}
			}
			left = slices.DeleteFunc(left, func(g int) bool { return slices.Contains(l.groups, g) })
			w.lent = append(w.lent, l)
			if len(l.groups) == 0 || rapid.Bool().Draw(w.t, "returns") {
				w.returnAll()
			}
			w.demand(i, left)
			if len(w.coming) > 0 && rapid.Bool().Draw(w.t, "something lands") || len(l.groups) == 0 {
				require.NotEmpty(w.t, w.coming, "nothing is on its way, and %v are missing", left)
				w.land()
			}
		}
	}
}

func (w *warehouse) returnAll() {
	for _, l := range w.lent {
		w.settle(l)
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
		w.want = func(m *want) {
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
					w.landed(&landed{item: w.coming[at]})
					delete(w.coming, at)
				}
				w.settle(w.lend([]int{g}))
			}
			require.Equal(t, len(order), wants)
		}
	})
}

// TestExpertsStay: where tokens use one expert after another and they do not all fit, some stay, and are found.
func TestExpertsStay(t *testing.T) {
	s := plans(t)[2]
	var came item
	c := newCargo(&guest{spec: s, model: &slotted{place: func(int, int) error { return nil }}})
	r := newResidency(c, &s.plan.Parts[0], s.bound, func(m *want) { came = m.item }, nil)
	segment := s.plan.Parts[0].Shelves[0].Segment
	const tokens = 2000
	hits := 0
	for i := range tokens {
		need := r.choose(segment, nil, []int32{int32(i % len(r.segment[segment].expert))})
		require.Len(t, need, 1)
		if r.groups[need[0]].there {
			hits++
			continue
		}
		r.demand(segment, need)
		require.Equal(t, need[0], came.home)
		r.landed(&landed{item: came})
	}
	slots, experts := len(r.segment[segment].shelf), len(r.segment[segment].expert)
	t.Logf("%d hits of %d with %d slots for %d experts", hits, tokens, slots, experts)
	require.Greater(t, hits, tokens*(slots-1)/experts*8/10)
}
