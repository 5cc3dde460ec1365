package answer

import (
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
)

const (
	beat = time.Second            // how often a client hears that its prompt is being read
	soon = 100 * time.Millisecond // how often one that asked for it hears how far
)

// teller tells a client how far its prompt has been read, until the first token comes.
type teller struct {
	e       Encoder
	choices []*Choice
	asked   bool // the client wants to know
	since   time.Time
	tick    <-chan time.Time
	said    actors.Reading
}

func newTeller(o *Order, e Encoder, choices []*Choice, every time.Duration) *teller {
	if o.Reading {
		every = min(every, soon)
	}
	return &teller{e: e, choices: choices, asked: o.Reading, since: time.Now(), tick: time.NewTicker(every).C}
}

// reading is how far the first of the choices that the engine has begun is.
func (t *teller) reading() (r actors.Reading) {
	for _, c := range t.choices {
		if s := c.begun.Load(); s != nil {
			if r = s.Reading(); r.Total > 0 {
				return r
			}
		}
	}
	return r
}

// news returns the events that say how far it is now; none, if there is nothing new, or the dialect has no such events.
func (t *teller) news() []byte {
	r := t.reading()
	if r.Total == 0 || t.asked && r == t.said {
		return nil
	}
	t.said = r
	return t.e.Reading(nil, r, time.Since(t.since))
}

// whole returns the event that says that all of the prompt was read, if the client wants to know.
func (t *teller) whole() []byte {
	r := t.reading()
	if r.Done = r.Total; !t.asked || r.Total == 0 || r == t.said {
		return nil
	}
	return t.e.Reading(nil, r, time.Since(t.since))
}

// follow sends news until there is a token, or the end.
func (t *teller) follow(w *exchange.Writer, begun, ended <-chan struct{}) {
	for {
		select {
		case <-begun:
			t.send(w, t.whole())
			return
		case <-ended:
			return
		case <-t.tick:
			t.send(w, t.news())
		}
	}
}

func (t *teller) send(w *exchange.Writer, events []byte) {
	if len(events) > 0 {
		w.Send(events) //nolint:errcheck // the answer's next part returns the same error
	}
}
