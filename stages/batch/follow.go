package batch

// In this file a sequence follows another one's tokens, so that a draft model guesses how that goes on.

// Follow gives a sequence that rests the text of the one that it follows, which has only become longer, and has it draw
// most tokens after it. What it drew before and is not in the text counts as never computed: its rows are written
// again. It returns false if the sequence is not there any more or has lost its place: it is of no use then.
func (s *State) Follow(q *Seq, text []int32, most int) bool {
	if s.byID[q.ID] != q || q.phase != running || !q.rests {
		return false
	}
	same := q.sure
	for same < min(len(text), len(q.Tokens)) && q.Tokens[same] == text[same] {
		same++
	}
	q.Tokens = append(q.Tokens[:same], text[same:]...)
	if s.limits.Apart {
		q.text = q.text[:same]
		for _, token := range text[same:] {
			q.text = append(q.text, answered(token))
		}
	}
	if q.Anew {
		q.done = min(q.done, q.sure)
	}
	q.done = min(q.done, same, len(text)-1) // the logits after the last token are wanted
	q.planned = q.done
	q.sure, q.MaxLen, q.rests = len(text), len(text)+most, false
	q.got = q.sent
	return true
}

// Placed says whether a sequence holds a place. One that follows another is of no use when it has lost it.
func (s *State) Placed(q *Seq) bool { return s.byID[q.ID] == q && q.phase == running }

// Rests says whether a sequence waits to be given more tokens.
func (q *Seq) Rests() bool { return q.rests }

// Room is how many tokens after a sequence's could be proposed in its next step, if nothing is in flight for it and
// only the newest token is left to compute; else 0.
func (s *State) Room(q *Seq) int {
	if q.phase != running || !q.kv.open || !q.able() || q.flying > 0 || q.strikes > 0 || !s.decoding(q) {
		return 0
	}
	return max(0, min(s.limits.Proposed, q.MaxLen-len(q.Tokens)-1, Window-q.unread()-1))
}
