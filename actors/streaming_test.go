package actors

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

// few is a plan in which most weights are streamed.
type few struct {
	ring  int   // slots of dense groups; 0: they stay
	shelf int   // slots of each layer's experts; 0: they stay
	piece int64 // bytes of a piece of the head; 0: as usual
}

// plan is a hook.
func (f few) plan(p *ir.Bound, m *place.Model) {
	p.Piece = f.piece
	part := &m.Parts[0]
	part.Layout.Slots = [][]int{}
	m.Homes = nil
	shelves := map[int]*place.Shelf{}
	for g, group := range p.On(p.All()) {
		home := place.Home{Group: group, Tier: place.Disk, Slot: -1}
		switch {
		case group.Use == ir.Table:
		case group.Use == ir.Matrix && group.Expert != ir.Dense && f.shelf > 0:
			if shelves[group.Segment] == nil {
				part.Shelves = append(part.Shelves, place.Shelf{Segment: group.Segment})
				shelves[group.Segment] = &part.Shelves[len(part.Shelves)-1]
			}
			s := &part.Shelves[len(part.Shelves)-1]
			s.Groups = append(s.Groups, g)
		case group.Use == ir.Matrix && group.Expert == ir.Dense && f.ring > 0:
			part.Ring.Groups = append(part.Ring.Groups, g)
		default:
			home.Tier, home.Slot = place.Device, len(part.Layout.Slots)
			part.Layout.Slots = append(part.Layout.Slots, []int{g})
		}
		m.Homes = append(m.Homes, home)
	}
	share := func(n int, groups []int) (slots []int) {
		for range n {
			slots = append(slots, len(part.Layout.Slots))
			part.Layout.Slots = append(part.Layout.Slots, groups)
		}
		return slots
	}
	if f.ring > 0 {
		part.Ring.Slots = share(f.ring, part.Ring.Groups)
	}
	for i := range part.Shelves {
		part.Shelves[i].Slots = share(f.shelf, part.Shelves[i].Groups)
	}
}

// streamed has a model's weights streamed through few slots.
func streamed(f few) func(*Config) { return func(c *Config) { c.hooks.plan = f.plan } }

// Law Recompute, for weights that come and go: however few slots there are, answers are those of weights that stay.
func TestStreamedAnswers(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, c := range []struct {
		name string
		few
	}{
		{fixture, few{ring: 2}},
		{fixture, few{ring: 3, piece: 16 << 10}},
		{"gemma2", few{ring: 2, piece: 16 << 10}},
		{"qwen2moe", few{shelf: 4}},
		{"qwen2moe", few{ring: 2, shelf: 1}},
		{"qwen3moe", few{ring: 3, shelf: 2, piece: 16 << 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := prompts(8)
			want := alone(t, startFixture(t, c.name, nil), all, 24)
			e := startFixture(t, c.name, streamed(c.few))
			require.Equal(t, want[:2], alone(t, e, all[:2], 24), "alone")
			var wg sync.WaitGroup
			for i, p := range all {
				s := begin(t, e, ask(p, 24))
				wg.Go(func() {
					if got, err := trySpelled(s); err != nil || got != want[i] {
						t.Errorf("prompt %d: error %v\n got %s\nwant %s", i, err, got, want[i])
					}
				})
			}
			wg.Wait()
		})
	}
}
