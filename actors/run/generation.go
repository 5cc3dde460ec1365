package run

// When a neighbour restarts, messages and answers may be lost with it. Rather than guess which, those who work
// together start a new generation: one of them sends Flush to the others, who forget what they held, and answer
// Flushed. Mailboxes keep order, so that after the answers nothing of an older generation is under way; late messages
// of one are dropped.

// Flush starts generation Gen at its receiver.
type Flush struct{ Gen uint64 }

// Flushed says that the sender is in generation Gen and holds nothing older.
type Flushed struct {
	Gen  uint64
	From Party
}

// Restarted says that the sender has lost its state. During is the work W that it was at when it failed, if any.
type Restarted[W any] struct {
	From   Party
	During *W
}

// Late implements Late: whoever restarts meanwhile begins a generation anyway.
func (*Flush) Late() {}

// Late implements Late.
func (*Flushed) Late() {}

// Urgent implements Urgent: until its receiver knows, it waits for answers that will not come.
func (*Restarted[W]) Urgent() {}

// Late implements Late.
func (*Restarted[W]) Late() {}

// Party is a number below 8 by which one of those who share generations is known to the others.
type Party uint8

// Waiting is the set of parties whose answer is due. The zero value waits for nobody.
type Waiting uint8

// WaitFor returns a set of these parties.
func WaitFor(parties ...Party) (w Waiting) {
	for _, p := range parties {
		w |= 1 << p
	}
	return w
}

// Done takes a party that has answered out of the set.
func (w *Waiting) Done(p Party) { *w &^= 1 << p }
