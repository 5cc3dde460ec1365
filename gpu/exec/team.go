package exec

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Team is a backend.Device of several cards that compute each segment together: plan.Divide gives each a part of the
// program, and their kernels exchange what all of them need. All weights stay on the cards.
type Team struct {
	cards []*Device

	mu    sync.Mutex // guards what follows
	of    *ir.Bound  // the program that was divided last
	parts []*plan.Part
	err   error
}

// NewTeam makes a team of cards of one kind, which are closed with it, also after an error.
func NewTeam(cards ...*Device) (*Team, error) {
	t := &Team{cards: cards}
	if len(cards) < 2 || len(cards) > kernel.MostMembers {
		return nil, errors.Join(fmt.Errorf("%d cards: a team has 2 to %d", len(cards), kernel.MostMembers), t.Close())
	}
	for _, c := range cards[1:] {
		if first := &cards[0].facts; c.facts.Name != first.Name || c.facts.Driver != first.Driver {
			return nil, errors.Join(fmt.Errorf("%s and %s: cards of a team are alike: have them compute layers, as 0,1", first.Name,
				c.facts.Name), t.Close())
		}
	}
	return t, nil
}

// Name says what the arithmetic depends on, too: sums of a team are those of its number of cards.
func (t *Team) Name() string { return fmt.Sprintf("%s, rows on %d", t.cards[0].Name(), len(t.cards)) }

// Traits implements backend.Device: what is said of memory holds for each card.
func (t *Team) Traits() backend.Traits {
	x := t.cards[0].Traits()
	for _, c := range t.cards[1:] {
		x.Free = min(x.Free, c.Traits().Free)
	}
	x.Shares, x.Bytes, x.Meter, x.Abreast = false, t.bytes, t, len(t.cards)
	return x
}

// Rates implements backend.Meter: cards read their parts at the same time.
func (t *Team) Rates() (backend.Rates, error) {
	r, err := t.cards[0].Rates()
	r.Memory *= float64(len(t.cards))
	return r, err
}

// Ceilings implements backend.Meter.
func (t *Team) Ceilings(halves bool) (read, multiply []float64, err error) {
	read, multiply, err = t.cards[0].Ceilings(halves)
	for _, all := range [][]float64{read, multiply} {
		for i := range all {
			all[i] *= float64(len(t.cards))
		}
	}
	return read, multiply, err
}

// Close closes the cards.
func (t *Team) Close() error {
	var errs []error
	for _, c := range t.cards {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// divided is the parts of a program.
func (t *Team) divided(p *ir.Bound) ([]*plan.Part, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != p {
		t.of = p
		t.parts, t.err = plan.Divide(p, len(t.cards))
	}
	return t.parts, t.err
}

// bytes is the most memory that a group takes of one card.
func (t *Team) bytes(p *ir.Bound, g *ir.Group) (most int64) {
	parts, err := t.divided(p)
	if err != nil {
		return t.cards[0].groupBytes(p, g) // Compile refuses it
	}
	for i, x := range parts {
		total := int64(0)
		for _, r := range g.Weights {
			from, to := g.Rows(&p.Weights[r])
			for _, piece := range x.Pieces[r] {
				rows := min(to, piece.Row+piece.Rows) - max(from, piece.Row)
				total += t.cards[i].weightBytes(p.Types[r], g.Use, max(rows, 0), piece.Cols)
			}
		}
		most = max(most, total)
	}
	return most
}

// Compile gives each card its part of the program.
func (t *Team) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, t.Traits()); err != nil {
		return nil, err
	}
	parts, err := t.divided(p)
	if err != nil {
		return nil, fmt.Errorf("%w: have the cards compute layers, as 0,1", err)
	}
	m := &teamed{whole: p, parts: parts}
	c.Slots, c.Kept = nil, nil // each group has its place
	for i, card := range t.cards {
		x, err := card.laid(parts[i].Bound, c, &parts[i].Team)
		if x != nil {
			m.members, m.Joined = append(m.members, x), append(m.Joined, x)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("card %d of %d: %w", i+1, len(t.cards), err), m.Close())
		}
		c.Observer = backend.Observer{} // the first card's times are all
	}
	if err := m.open(c.Counted); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}
