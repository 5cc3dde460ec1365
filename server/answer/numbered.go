package answer

import (
	"bytes"
	"context"
	"strconv"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/carry"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/stages/sample"
)

// follow sends one choice, whose first new event was read already, and keeps its tokens. If k is not nil, it pays for
// the memory that the encoder keeps.
func (r *run) follow(ctx context.Context, w *exchange.Writer, c *Choice, k *unstreamed) error {
	for {
		if k != nil {
			if err := k.add(ctx, weight(&c.event, c.Probs)); err != nil {
				return err
			}
		}
		if err := r.put(w, c); err != nil || c.Finish != actors.Running {
			return err
		}
		if err := c.next(ctx); err != nil {
			return err
		}
	}
}

// put keeps the token of a choice's event, and sends what the encoder makes of it.
func (r *run) put(w *exchange.Writer, c *Choice) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.shown {
		if c.Finish == actors.Running {
			c.usage()
		}
		c.cached = c.Usage.Cached
		counts := countsOf(c)
		r.records.Read(&actors.AnswerCounts{Choice: c.Index, Prompt: counts.Prompt, Cached: counts.Cached})
	}
	if e := &c.event; e.HasToken {
		t := actors.AnswerToken{Choice: c.Index, ID: e.Token, Drift: e.Drift, Probs: c.Probs, LogProb: e.LogProb}
		if c.Probs {
			for _, p := range e.Top {
				t.Top = append(t.Top, actors.AnswerProb(p))
			}
		}
		r.records.Token(&t)
	}
	if c.Finish != actors.Running {
		r.records.Ended(&actors.AnswerEnd{Counts: countsOf(c), Finish: string(c.Finish), Stop: c.Stop})
	}
	if r.out = r.number(r.out[:0], c.Index, r.encode(c)); len(r.out) == 0 {
		return nil
	}
	return w.Send(r.out)
}

func countsOf(c *Choice) actors.AnswerCounts {
	u := &c.Usage
	return actors.AnswerCounts{Choice: c.Index, Prompt: u.Prompt, Cached: u.Cached, Generated: u.Generated,
		Proposed: u.Proposed, Accepted: u.Accepted, Queue: u.Queue, Prefill: u.Prefill, Decode: u.Decode}
}

func usageOf(c *actors.AnswerCounts) actors.Usage {
	return actors.Usage{Prompt: c.Prompt, Cached: c.Cached, Generated: c.Generated, Proposed: c.Proposed,
		Accepted: c.Accepted, Queue: c.Queue, Prefill: c.Prefill, Decode: c.Decode}
}

// encode returns the events of what a choice has new, valid until the next call. The caller holds the mutex.
func (r *run) encode(c *Choice) []byte {
	buf := r.buf[:0]
	if !c.shown {
		c.shown = true
		buf = r.e.Begin(buf, c)
	}
	if c.news() {
		buf = r.e.Part(buf, c)
		c.sent()
	}
	if c.Finish != actors.Running {
		buf = r.e.End(buf, c)
	}
	r.buf = buf
	return buf
}

// number appends events of a choice, or with the number of choices those of the end, with their ids, without those
// that the client has. An event has the same id whenever it is made: the choices of an answer come in any order, so
// each is counted for itself.
func (r *run) number(dst []byte, choice int, events []byte) []byte {
	end, slot, seen := carry.End(r.lines), min(choice, len(r.next)-1), 0
	if r.log != nil && len(events) > 0 {
		dst = carry.Mark(dst, slot, len(r.next), r.log.Take(), r.lines)
	}
	if r.past != nil && r.past.seen != nil {
		seen = r.past.seen[slot]
	}
	for len(events) > 0 {
		event := events
		if at := bytes.Index(events, []byte(end)); at >= 0 {
			event = events[:at+len(end)]
		}
		events = events[len(event):]
		if event[0] == ':' { // a comment
			dst = append(dst, event...)
			continue
		}
		if r.next[slot]++; r.next[slot] > seen {
			if !r.lines && r.log == nil {
				dst = append(r.id(append(dst, "id: "...)), '\n')
			}
			dst = append(dst, event...)
		}
	}
	return dst
}

// id appends the id of the event that was made last. Of other choices it counts what the client has of them, also where
// that is to be made again: else it would come twice, if this process ended before.
func (r *run) id(dst []byte) []byte {
	dst = append(append(dst, r.x.ID...), '.')
	if len(r.next) == 1 {
		return strconv.AppendInt(dst, int64(r.next[0]-1), 10)
	}
	for i, n := range r.next {
		if i > 0 {
			dst = append(dst, '-')
		}
		if r.past != nil && r.past.seen != nil {
			n = max(n, r.past.seen[i])
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return dst
}

// ParseSeen reads what an event's id says behind its request's: the number of an event, or those that there are by
// slot.
func ParseSeen(text string) (seen []int, ok bool) {
	seen, ok = carry.ParseSeen(text)
	if !ok || len(seen) == 0 || len(seen) > MaxChoices+1 {
		return nil, false
	}
	if len(seen) == 1 {
		seen[0]++
	}
	return seen, true
}

// close returns the last events of the stream.
func (r *run) close(events []byte) []byte {
	if r == nil {
		return events
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number(nil, len(r.next), events)
}

// replay reads an answer's tokens again, in the order in which they were drawn, and sends the events that the client
// has not. Choices that ended are ended then; the others go on behind their tokens.
func (r *run) replay(w *exchange.Writer, m *Model, choices []*Choice) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := map[int]int{} // tokens of each choice that are still to come
	for i := range r.past.Tokens {
		left[r.past.Tokens[i].Choice]++
	}
	readers, out := make([]*actors.Reread, len(choices)), r.notice()
	for i := range r.past.Tokens {
		t := &r.past.Tokens[i]
		if t.Choice >= len(choices) || choices[t.Choice].Finish != actors.Running {
			continue // of another program
		}
		c := choices[t.Choice]
		if readers[t.Choice] == nil {
			var err error
			if readers[t.Choice], err = m.Engine.Reread(c.request); err != nil {
				return err
			}
			seen := r.past.Read[t.Choice]
			c.Usage, c.cached = usageOf(&seen), seen.Cached
		}
		left[t.Choice]--
		r.reread(readers[t.Choice], c, t, left[t.Choice] == 0)
		if out = r.number(out, c.Index, r.encode(c)); len(out) >= resentAtOnce {
			if err := w.Send(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	if len(out) == 0 {
		return nil
	}
	return w.Send(out)
}

// resentAtOnce is how many bytes of earlier events are sent at once.
const resentAtOnce = 32 << 10

// reread adds an earlier token to a choice.
func (r *run) reread(reader *actors.Reread, c *Choice, t *actors.AnswerToken, last bool) {
	e := &c.event
	reader.Token(t.ID, e)
	e.LogProb, e.Top = t.LogProb, nil
	for _, p := range t.Top {
		e.Top = append(e.Top, sample.TokenProb(p))
	}
	c.add(e)
	c.request.Drawn, c.request.Drift = append(c.request.Drawn, t.ID), t.Drift
	if end, ok := r.past.Ended[t.Choice]; ok && last {
		c.Finish, c.Stop, c.Usage = actors.Finish(end.Finish), end.Stop, usageOf(&end.Counts)
		return
	}
	if c.Finish, c.Stop = e.Finish, e.Stop; e.Finish != actors.Running {
		c.Usage.Generated = len(c.request.Drawn)
	}
}
