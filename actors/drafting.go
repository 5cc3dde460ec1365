package actors

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/speculate"
)

// drafting has a draft model guess tokens for the sequences of its target. It belongs to the target's scheduler, whose
// steps wait for the answers, so that all sequences stay together. Until the draft model has read a text, which may be
// long, nobody waits.
type drafting struct {
	by      *drafter          // nil: there is no draft model, or it is gone
	learned *speculate.Drafts // nil: there never was one
	vocab   int               // tokens that the target knows
	took    time.Duration     // the time that a test says each step has taken; 0: the real one
	out     draftingEdges

	incarnation int // of the scheduler

	due     int       // answers that steps wait for
	reading int       // texts that are being read
	began   time.Time // when the first answer of due was asked for
	most    int       // most tokens that any of them is to have
	all     int       // how many answers were asked for since began
}

// drafter is what a target's scheduler knows of its draft model.
type drafter struct {
	at      *actor.PID     // its scheduler
	ids     *atomic.Uint64 // the last sequence's number
	context int            // positions that one sequence may hold
	vocab   int            // tokens that it knows
	head    bool           // it is the target's head, which is told hidden states
	few     bool           // its logits are of some tokens only
	row     float64        // what reading a token costs, in steps of the target of one row
}

type draftingEdges struct {
	follow run.Edge[follow]
	cancel run.Edge[cancel]
	parted run.Edge[parted]
}

// closeBy is how many tokens a draft model may have missed so that steps wait until it has read them.
const closeBy = 16

// ask has tokens guessed for the sequences whose next steps should try some.
func (d *drafting) ask(s *batch.State) {
	if d.by == nil {
		return
	}
	for _, q := range s.Seqs() {
		h := q.Owner.(*sequence)
		if h.guesses == nil || d.waits(h) {
			continue
		}
		most := s.Room(q)
		if most == 0 {
			continue
		}
		if n := min(h.guesses.Drafts(q.Tokens), most); n > 0 && !d.begin(h, n) {
			h.guesses.Drafted(nil)
		}
	}
}

// waits says whether steps wait for guesses of a sequence's next tokens.
func (*drafting) waits(h *sequence) bool { return h.draft != nil && h.draft.due && h.draft.ask.waits }

// begin asks for n tokens after a sequence's, if the draft model has read those before them, or all but a few. Else it
// has them read, once that is worth it, and returns false.
func (d *drafting) begin(h *sequence, n int) bool {
	missed := d.missed(h) // it may drop the draft
	x := h.draft
	switch {
	case missed == 0 || x != nil && x.due, len(h.Tokens)+n > d.by.context, !d.knows(h.Tokens[len(h.Tokens)-missed:]),
		!d.learned.Reads(missed, int(h.Sent()), d.by.row, h.guesses.Looks()): //nolint:gosec // tokens of an answer
		return false
	case x == nil:
		h.draft = d.newDraft(h)
		d.send(h, 1, false)
		return false
	case missed > closeBy:
		d.send(h, 1, false)
		return false
	}
	if d.due == 0 {
		d.began, d.most, d.all = now(), 0, 0
	}
	d.most, d.all = max(d.most, n), d.all+1
	d.send(h, n, true)
	return true
}

// missed is how many of a sequence's last tokens the draft model has not read. A head reads only those before which
// the hidden state is known; one that lacks others begins anew. 0: it can read nothing.
func (d *drafting) missed(h *sequence) int {
	x, all := h.draft, len(h.Tokens)
	if d.by.head {
		known := h.hidden.before(all - 1)
		if x != nil && !x.due && (all-x.read > known || known == 0) {
			d.drop(h)
			x = nil
		}
		if x == nil {
			return known
		}
	}
	if x != nil {
		return max(all-x.read, 1)
	}
	return all
}

// knows says whether the draft model has tokens in its vocabulary. It may lack the last ones of its target's.
func (d *drafting) knows(tokens []int32) bool {
	return d.by.vocab >= d.vocab || !slices.ContainsFunc(tokens, func(id int32) bool { return int(id) >= d.by.vocab })
}

func (d *drafting) send(h *sequence, n int, waits bool) {
	x := h.draft
	x.ask = follow{draft: x, text: h.Tokens[:len(h.Tokens):len(h.Tokens)], most: n, begins: x.read == 0,
		waits: waits}
	if x.due = true; d.by.head {
		x.heard.listen(h.hidden, max(min(x.read, len(h.Tokens)-1), x.heard.base), len(h.Tokens))
	}
	d.count(waits, 1)
	d.out.follow.At(d.by.at).Send(&x.ask)
}

// count counts answers that are due.
func (d *drafting) count(waits bool, n int) {
	if waits {
		d.due += n
	} else {
		d.reading += n
	}
}

// answered takes the draft model's answer for a sequence.
func (d *drafting) answered(m *drafted) {
	x := m.draft
	h := x.of
	if x.by != d.incarnation || h.draft != x {
		return // it was let go meanwhile
	}
	x.due, x.read = false, len(x.ask.text)
	d.count(x.ask.waits, -1)
	if x.ask.waits {
		h.guesses.Drafted(d.known(m.tokens))
		if d.due == 0 && d.reading == 0 && !m.lost {
			d.learned.Observe(d.most, d.all, cmp.Or(d.took*time.Duration(d.most)/mostProposed, now().Sub(d.began)))
		}
	}
	if m.lost {
		d.drop(h)
	}
}

// known returns tokens up to one that the target does not know.
func (d *drafting) known(tokens []int32) []int32 {
	if i := slices.IndexFunc(tokens, func(id int32) bool { return int(id) >= d.vocab }); i >= 0 {
		return tokens[:i]
	}
	return tokens
}

// drop ends what follows a sequence, if anything does.
func (d *drafting) drop(h *sequence) {
	x := h.draft
	if x == nil {
		return
	}
	if h.draft = nil; x.due && x.by == d.incarnation { // an older scheduler's answers were never counted here
		d.count(x.ask.waits, -1)
	}
	x.seq.cancelled.Store(true)
	if d.by != nil {
		d.out.cancel.At(d.by.at).Send(&x.seq.cancel)
	}
}

// parted takes in that the draft model has lost all that followed these sequences, or is gone.
func (d *drafting) parted(all []*batch.Seq, gone bool) {
	switch {
	case gone:
		d.by = nil
	case d.learned != nil:
		d.learned.Lost()
	}
	for _, q := range all {
		h := q.Owner.(*sequence)
		if h.guesses == nil {
			continue
		}
		h.guesses.Drafted(nil)
		if d.drop(h); gone {
			h.guesses.Undrafted()
		}
	}
}

// unshared is an odd factor that makes salts of numbers of sequences: what a head leaves in its caches depends on
// hidden states, too, and is nobody else's.
const unshared = 0x9e3779b97f4a7c15

// newDraft makes a sequence of the draft model that follows one of the target. It draws as that one does.
func (d *drafting) newDraft(h *sequence) *draft {
	x := &draft{of: h, by: d.incarnation}
	x.asks.Sampling, x.asks.Salt = h.of.Sampling, h.of.Salt
	x.asks.Sampling.LogProbs, x.asks.Sampling.Masked = -1, false // nobody reads them, and no mask is found
	if d.by.few {
		x.asks.Sampling = x.asks.Sampling.Unnamed()
	}
	id, text := d.by.ids.Add(1), h.Tokens
	if d.by.head {
		x.heard.base = len(text) - h.hidden.before(len(text)-1)
		text = text[x.heard.base:]
		x.asks.Salt = id * unshared
	}
	x.asks.terms = batch.Terms{Client: h.Client, Prompt: len(text), MaxLen: len(text) + 1}
	q := &x.seq
	q.of, q.cached, q.follows = &x.asks, -1, x
	room := min(h.MaxLen-x.heard.base, len(text)+tokenSlack) + mostProposed
	q.Seq = batch.Seq{Terms: &x.asks.terms, ID: batch.ID(id), Follows: true, Anew: d.by.head, Owner: q,
		Tokens: append(make([]int32, 0, room), text...)}
	q.cancel.seq = q
	x.answer = drafted{draft: x, tokens: make([]int32, 0, mostProposed)}
	return x
}

// begun tells the draft model, after a restart, that those that its sequences follow are lost.
func (d *drafting) begun() {
	if d.by != nil {
		d.out.parted.At(d.by.at).Send(&parted{})
	}
}
