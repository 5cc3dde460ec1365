package answer

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/promise"
)

// Headers by which any API's clients ask for what fields ask for.
const (
	timingsHeader  = "X-Timings"  // causes: as timings_causes
	deadlineHeader = "X-Deadline" // as deadline_ms
)

// MostDeadline bounds deadlines, in milliseconds: a week.
const MostDeadline = 7 * 24 * 3600 * 1000

// headers takes what an order's headers ask for. A field goes before its header.
func (o *Order) headers(h *fasthttp.RequestHeader) *wire.Fault {
	o.Causes = o.Causes || string(h.Peek(timingsHeader)) == "causes"
	said := string(h.Peek(deadlineHeader))
	if said == "" || o.Deadline > 0 {
		return nil
	}
	ms, err := strconv.Atoi(said)
	if err != nil || ms < 1 || ms > MostDeadline {
		return wire.Invalid(deadlineHeader, "invalid_value", "the header %s is %s: want milliseconds from 1 to %d, such as 2500",
			deadlineHeader, wire.Shown(said), MostDeadline)
	}
	o.Deadline = time.Duration(ms) * time.Millisecond
	return nil
}

// promise says what a prepared order's answers may expect, and refuses it if they cannot keep its deadline.
func (s *Service) promise(x *exchange.Exchange, o *Order) *wire.Fault {
	if !o.Causes && o.Deadline == 0 || s.lasting.pastOf(x) != nil {
		return nil
	}
	s.mark(o)
	all := o.Requests()
	busy, idle, known := o.Model.Engine.Foresee(all)
	if !known {
		return nil
	}
	o.predicted = busy
	if o.Deadline == 0 {
		return nil
	}
	left := o.Deadline - time.Since(x.At)
	for i := range all {
		if fault := missed(o.Deadline, left, all[i].MaxTokens, &busy[i], &idle[i]); fault != nil {
			return fault
		}
	}
	return nil
}

// mark has an order with a deadline go before those of other clients, where that is wanted.
func (s *Service) mark(o *Order) {
	for i := range o.Prompts {
		o.Prompts[i].Promised = o.Deadline > 0 && s.Promises
	}
}

// missed is the fault of a request whose answer would come too late; nil: it comes in time. Without a number of tokens
// the answer may be as long as there is time for.
func missed(deadline, left time.Duration, tokens int, busy, idle *promise.Forecast) *wire.Fault {
	tokens = max(tokens, 1)
	if busy.Whole(tokens) <= left {
		return nil
	}
	ms := func(d time.Duration) int64 { return max(d.Milliseconds(), 0) + 1 }
	spent := deadline - left
	const text = "deadline_ms is %d, but %s the first token is expected after %d ms and all %d after %d ms: allow %d ms, or ask " +
		"for at most %d tokens"
	tell := func(f *promise.Forecast) []any {
		return []any{ms(spent + f.First), tokens, ms(spent + f.Whole(tokens)), ms(spent+f.Whole(tokens)) * 9 / 8,
			max(f.Within(left), 0)}
	}
	if idle.Whole(tokens) > left {
		return wire.Invalid("deadline_ms", "deadline_too_short", text,
			append([]any{deadline.Milliseconds(), "also without other requests"}, tell(idle)...)...)
	}
	f := wire.Unavailable("deadline_missed", text, append([]any{deadline.Milliseconds(), "beside other requests"}, tell(busy)...)...)
	f.Param = "deadline_ms"
	return f
}

// errDeadline ends what a request with a deadline still waits for.
var errDeadline = errors.New("deadline_ms has passed before the first token: other requests took longer than was foreseen; " +
	"try again, or allow more")

// timely returns a context that ends with the choice's deadline, if it has one.
func (c *Choice) timely(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, c.deadline, errDeadline)
}

// expire ends an answer whose deadline has passed, with the tokens that it has.
func (c *Choice) expire(ctx context.Context) error {
	c.stream.Close()
	c.settle(ctx)
	if c.tokens == 0 {
		return errDeadline
	}
	c.Finish = actors.Length
	return nil
}
