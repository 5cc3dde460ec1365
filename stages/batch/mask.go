package batch

// mask is the state of a sequence's mask: whether the tokens that may follow are known. Without a constraint it is
// always found.
type mask uint8

const (
	found mask = iota // known, or not needed
	due               // to be found before the next step
	asked             // being found
)

// Hold keeps a sequence out of steps until its mask is Found.
func (s *State) Hold(q *Seq) {
	if q.mask == found {
		q.mask = due
	}
}

// Found lets a sequence go on that was held.
func (s *State) Found(q *Seq) { q.mask = found }

// Held says that the sequence waits for its mask.
func (s *State) Held(q *Seq) bool { return q.phase != ended && q.mask != found }

// NextMask returns the sequence whose mask is to be found next, and counts it as asked for; nil: none is due.
// Clients take turns: however many masks one client needs, and however long each takes, another client waits for one
// of them only. A new client goes before the one that had a mask last, and before no other.
func (s *State) NextMask() *Seq {
	var next *Seq
	for _, q := range s.seqs {
		if q.phase != ended && q.mask == due && (next == nil || q.before(next)) {
			next = q
		}
	}
	if next != nil {
		s.masks++
		next.mask, next.turn, next.client.turn = asked, s.masks, s.masks
	}
	return next
}

// before says that the mask of q is found before that of p, which arrived earlier.
func (q *Seq) before(p *Seq) bool {
	if q.client != p.client {
		return q.client.turn < p.client.turn
	}
	return q.turn < p.turn
}
