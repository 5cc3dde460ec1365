package actors

// When a neighbour restarts, messages and answers may be lost with it. Rather than guess which, those who work
// together start a new generation: one of them (the scheduler for computing, the uploader for loading) sends
// flush to the others, who forget what they held, and answer flushed. Mailboxes keep order, so that
// after the answers nothing of an older generation is under way; late messages of one are dropped.

// flush starts generation gen at its receiver.
type flush struct{ gen uint64 }

// flushed says that the sender is in generation gen and holds nothing older.
type flushed struct {
	gen  uint64
	from party
}

// restarted says that the sender has lost its state. during is what it worked on when it failed, if anything.
type restarted struct {
	from   party
	during *step
}

func (*flush) late()       {}
func (*flushed) late()     {}
func (*restarted) urgent() {}
func (*restarted) late()   {}

// party names the actors that take part in generations.
type party uint8

const (
	partyKV party = iota
	partyDevice
	partySampler
	partyReader
	partyPool
	partyScheduler
	partyUploader
	partyPacker
)

// waiting is the set of parties whose answer is due.
type waiting uint8

func waitFor(parties ...party) (w waiting) {
	for _, p := range parties {
		w |= 1 << p
	}
	return w
}

func (w *waiting) done(p party) { *w &^= 1 << p }
