package exec

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// teamed is a program on the cards of a team. Its steps are the first card's; every other card has a step of its own
// for each.
type teamed struct {
	backend.Joined // a block is all cards' heads
	backend.Blind
	whole   *ir.Bound
	parts   []*plan.Part
	members []*model
	ends    []*teamEnd // by step
	pieces  sync.Pool  // of *[]byte: columns of rows
}

// teamEnd tracks the end of a step: it ends when it has ended on all cards.
type teamEnd struct {
	mu   sync.Mutex
	left int
	err  error
	done func(error)
	told func(error) // what each card calls
}

// open connects the cards, and makes them ready.
func (m *teamed) open(counted bool) error {
	if counted {
		return nil
	}
	if err := meet(m.members); err != nil {
		return err
	}
	for _, x := range m.members {
		if err := x.open(); err != nil {
			return err
		}
	}
	for range m.Steps() {
		e := &teamEnd{}
		e.told = e.tell
		m.ends = append(m.ends, e)
	}
	return nil
}

func (m *teamed) Steps() []*backend.Step { return m.members[0].ring.steps }

// index is where a step is in the ring.
func (m *teamed) index(s *backend.Step) int {
	for i, x := range m.members[0].ring.steps {
		if x == s {
			return i
		}
	}
	panic("gpu: a step of another model")
}

// step is a card's step for one of the first card's.
func (m *teamed) step(member, i int, s *backend.Step) *backend.Step {
	at := m.members[member].ring.steps[i]
	if at != s {
		at.Tokens, at.Spans, at.Wanted, at.Draws, at.Prompt = s.Tokens, s.Spans, s.Wanted, s.Draws, s.Prompt
	}
	return at
}

// Run has each card enqueue the segment. What they record is submitted when all have recorded it.
func (m *teamed) Run(w backend.Work, s *backend.Step) error {
	defer w.Release()
	i, own := m.index(s), w
	own.Done, own.Foreseen = nil, nil
	for n, x := range m.members {
		if err := x.Run(own, m.step(n, i, s)); err != nil {
			return err
		}
	}
	return m.release()
}

// release submits what all cards have recorded.
func (m *teamed) release() (err error) {
	for _, x := range m.members {
		if err := x.prepare(); err != nil {
			return err
		}
	}
	for _, x := range m.members {
		err = errors.Join(err, x.release())
	}
	return err
}

// Finish ends the step on every card.
func (m *teamed) Finish(s *backend.Step, done func(error)) {
	i := m.index(s)
	e := m.ends[i]
	e.mu.Lock()
	e.left, e.err, e.done = len(m.members), nil, done
	e.mu.Unlock()
	for n, x := range m.members {
		x.Finish(m.step(n, i, s), e.told)
	}
}

// tell is called when a card has ended a step.
func (e *teamEnd) tell(err error) {
	e.mu.Lock()
	if err != nil && (e.err == nil || errors.Is(err, backend.ErrLost)) {
		e.err = err // what is lost explains why the others had no answer
	}
	e.left--
	left, all, done := e.left, e.err, e.done
	e.mu.Unlock()
	if left == 0 {
		done(all)
	}
}

// In gives a value to every card: each has all of what segments hand on.
func (m *teamed) In(v ir.Value, s *backend.Step, rows []float32) error {
	i, err := m.index(s), m.flush(s)
	for n, x := range m.members {
		err = errors.Join(err, x.In(v, m.step(n, i, s), rows))
	}
	return err
}

// Out asks the first card.
func (m *teamed) Out(v ir.Value, s *backend.Step, rows []float32) error {
	if err := m.flush(s); err != nil {
		return err
	}
	return m.members[0].Out(v, s, rows)
}

// flush submits what was enqueued, on all cards.
func (m *teamed) flush(s *backend.Step) error {
	i := m.index(s)
	for n, x := range m.members {
		if err := x.flush(x.ring.of(m.step(n, i, s))); err != nil {
			return err
		}
	}
	return m.release()
}

// Upload uploads what each card has of the rows.
func (m *teamed) Upload(r ir.Ref, row int, data []byte) error {
	if r < 0 || int(r) >= len(m.whole.Weights) {
		return fmt.Errorf("weight %d of %d", r, len(m.whole.Weights))
	}
	w := &m.whole.Weights[r]
	size, err := m.whole.Types[r].RowBytes(w.Cols)
	if err != nil {
		return err
	}
	n := len(data) / size
	if len(data)%size != 0 || row < 0 || row > w.Rows-n {
		return fmt.Errorf("%s: %d bytes for row %d, want whole rows of %d bytes, %d in all", w.Name, len(data), row, size,
			w.Rows)
	}
	for i, x := range m.members {
		for _, piece := range m.parts[i].Pieces[r] {
			from, to := max(row, piece.Row), min(row+n, piece.Row+piece.Rows)
			if from >= to {
				continue
			}
			if err := m.uploadPiece(x, r, &piece, from-piece.Row, data[(from-row)*size:(to-row)*size]); err != nil {
				return err
			}
		}
	}
	return nil
}

// uploadPiece uploads rows to a card that has a piece of a weight: row is the first of them among the piece's.
func (m *teamed) uploadPiece(x *model, r ir.Ref, piece *plan.Piece, row int, data []byte) error {
	w, t := &m.whole.Weights[r], m.whole.Types[r]
	if piece.Cols == w.Cols {
		return x.Upload(piece.To, row, data)
	}
	sizes := [3]int{}
	for i, cols := range []int{w.Cols, piece.Col, piece.Cols} {
		var err error
		if sizes[i], err = t.RowBytes(cols); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	own, ok := m.pieces.Get().(*[]byte)
	if !ok {
		own = new([]byte)
	}
	defer m.pieces.Put(own)
	*own = (*own)[:0]
	for ; len(data) > 0; data = data[sizes[0]:] {
		*own = append(*own, data[sizes[1]:][:sizes[2]]...)
	}
	return x.Upload(piece.To, row, *own)
}

func (m *teamed) RowGrain() int { return m.members[0].RowGrain() }

// Slot and Place: groups share no slots.
func (*teamed) Slot(int) []byte { return nil }

func (*teamed) Place(group, slot int, _ [][]byte) error {
	return fmt.Errorf("group %d, slot %d: all weights of a team stay on its cards: %w", group, slot, errors.ErrUnsupported)
}

// Memory is what the model takes of the card that has most of it.
func (m *teamed) Memory() (most backend.Memory) {
	for _, x := range m.members {
		if of := x.Memory(); of.Own() >= most.Own() {
			most = of
		}
	}
	return most
}

// Close waits for the cards and frees their memory.
func (m *teamed) Close() error {
	var errs []error
	for _, x := range m.members {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}
