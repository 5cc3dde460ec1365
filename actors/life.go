package actors

import "sync/atomic"

// stage is how far a request has come. Each stage may be followed by the next one, or by lifeEnded.
type stage uint32

const (
	lifeOpened    stage = iota // it has a place in the engine
	lifeEncoded                // what was asked is complete
	lifeSubmitted              // the scheduler has a sequence of it, or is about to have one again after a restart
	lifeAnswering              // its first token, or the first rows of a score, have come
	lifeEnded                  // its stream has its end: nothing is computed for it any more
)

// life is the stage of a request, which only advances: a session that restarts submits its sequence again, but the
// stage stays. The session advances it; whoever ends the request sets lifeEnded; anybody may read it.
type life struct {
	at   atomic.Uint32
	gone atomic.Bool // nobody reads the stream any more: what is left of the life is to end
}

// reach goes on to a stage, and returns true if the request was not there yet.
func (l *life) reach(to stage) bool {
	for {
		at := l.at.Load()
		if stage(at) >= to {
			return false
		}
		if l.at.CompareAndSwap(at, uint32(to)) {
			return true
		}
	}
}

// past says whether the request has come to a stage.
func (l *life) past(s stage) bool { return stage(l.at.Load()) >= s }
