package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
)

// following has sequences of a draft model follow those of its target. It belongs to the draft model's scheduler, and
// its state is that one's.
type following struct {
	target  *actor.PID // the target's scheduler; nil: the model is no draft model
	known   []int32    // tokens of the model's logits, where they are of some only; nil: of all
	drafted run.Edge[drafted]
	parted  run.Edge[parted]
}

// follow has a sequence go on with a text; if it begins, it is submitted already. Nobody waits where nothing is
// computed for now.
func (f *following) follow(s *batch.State, m *follow, computes bool) {
	x := m.draft
	x.owed, x.answer.tokens, x.answer.lost = true, x.answer.tokens[:0], false
	if !m.begins && !(computes && s.Follow(&x.seq.Seq, m.text[x.heard.base:], m.most)) {
		f.forsake(s, x)
	}
}

// drew takes the tokens that were drawn for a sequence.
func (f *following) drew(s *batch.State, q *batch.Seq, r *outcome) {
	h := q.Owner.(*sequence)
	x := h.follows
	for i := range r.tokens {
		h.state = r.tokens[i].State
		id := r.tokens[i].ID
		if f.known != nil {
			id = f.known[id]
		}
		x.answer.tokens = append(x.answer.tokens, id)
		if s.Append(q, id) != batch.NotEnded {
			f.answer(x)
			return
		}
	}
	if r.err != nil {
		f.forsake(s, x)
	}
}

// answer answers the target, if it waits.
func (f *following) answer(x *draft) {
	if x.owed {
		x.owed = false
		f.drafted.At(f.target).Send(&x.answer)
	}
}

// forsake ends a sequence.
func (f *following) forsake(s *batch.State, x *draft) {
	s.Cancel(x.seq.ID)
	x.answer.tokens, x.answer.lost = x.answer.tokens[:0], true
	f.answer(x)
}

// hopes says whether a draft is of use only if its sequence has kept its place: the target's steps wait for it, or it
// is of a head, which was told no more than is new.
func (x *draft) hopes() bool { return x.ask.waits || x.heard.base > 0 && !x.ask.begins }

// keep ends sequences that have lost their places and are of no use without.
func (f *following) keep(s *batch.State) {
	if f.target == nil {
		return
	}
	for i := len(s.Seqs()) - 1; i >= 0; i-- {
		q := s.Seqs()[i] // the list becomes shorter behind it only
		if x := q.Owner.(*sequence).follows; x != nil && x.owed && x.hopes() && !s.Placed(q) {
			f.forsake(s, x)
		}
	}
}

// forget ends all sequences, since they or those that they follow are lost. The target is not answered.
func (f *following) forget(s *batch.State) {
	for _, q := range slices.Clone(s.Seqs()) {
		if x := q.Owner.(*sequence).follows; x != nil {
			x.owed = false
			s.Cancel(q.ID)
		}
	}
}

// lost ends all sequences in a restart of the model, and tells the target.
func (f *following) lost(s *batch.State) {
	if f.target != nil {
		f.forget(s)
		f.parted.At(f.target).Send(&parted{})
	}
}
