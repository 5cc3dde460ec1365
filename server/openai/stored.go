package openai

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// keep has an answer stored when it is complete: in memory the conversation that it ends, and in a file, if answers
// last, the answer, too.
func (a *api) keep(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *responseRequest, e *response, id string) {
	order := o.Order
	e.tell = func(object []byte) { a.Tell(x, actors.AnswerTold{Object: string(object)}) }
	e.keep = func(items, object []byte) {
		a.past.end(id, items)
		if !a.Lasts() {
			return
		}
		told := actors.AnswerTold{Object: string(object), Items: a.past.whole(id, x.Client)}
		if order.Stream || a.Served(x) {
			a.Tell(x, told)
			return
		}
		a.Save(rc, x, &order, told)
	}
}

// later has an answer computed in the background, and says how to ask for it.
func (a *api) later(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *responseRequest, e *response) *wire.Fault {
	object := e.underway()
	if fault := a.Later(rc, x, &o.Order, string(object)); fault != nil {
		return fault
	}
	rc.SetContentType("application/json")
	rc.SetBody(object)
	return nil
}

// stored serves what is below /v1/responses: DELETE /v1/responses/{id}, and GET, which returns the answer as it is now,
// or with stream=true its events, behind the one whose number is starting_after.
func (a *api) stored(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if rc.IsDelete() {
		return a.forget(rc, x)
	}
	id := strings.TrimPrefix(string(rc.Path()), responsesPath+"/")
	missing := wire.Refused(fasthttp.StatusNotFound, "not_found", "%q: no such answer of yours is kept (any more)", wire.Shown(id))
	if !rc.IsGet() || !a.Lasts() {
		return missing
	}
	own := strings.TrimPrefix(id, "resp_")
	p := a.Stored(x, own)
	if p == nil || !strings.HasSuffix(p.Path, "/responses") || !p.Store {
		return missing
	}
	if rc.QueryArgs().GetBool("stream") {
		return a.restream(rc, x, own, p)
	}
	if p.Told == nil {
		return missing
	}
	object := p.Told.Object
	if p.Failed != "" { // the head has no text of a client before its error
		object = strings.Replace(object, `"error":null`, `"error":{"code":"server_error","message":"the answer could not be computed"}`, 1)
		object = strings.TrimSuffix(object, underway) + strings.Replace(underway, "in_progress", "failed", 1)
	}
	rc.SetContentType("application/json")
	rc.SetBodyString(object)
	return nil
}

// restream sends the events of a stored answer.
func (a *api) restream(rc *fasthttp.RequestCtx, x *exchange.Exchange, id string, p *actors.AnswerPast) *wire.Fault {
	if p.Closed && len(p.Tokens) == 0 {
		return wire.Invalid("stream", "unsupported_value", "the answer was not streamed: ask for it without stream")
	}
	seen := []int{0}
	if after := rc.QueryArgs().Peek("starting_after"); len(after) > 0 {
		n, err := strconv.ParseUint(string(after), 10, 31)
		if err != nil {
			return wire.Invalid("starting_after", "invalid_value", "starting_after is %q: want the sequence_number of an event",
				wire.Shown(string(after)))
		}
		seen = []int{int(n) + 1}
	}
	if a.Again(x, id, seen) == "" {
		return wire.Refused(fasthttp.StatusNotFound, "not_found", "the answer is kept no more")
	}
	rc.Response.Header.Set("X-Request-Id", x.ID)
	return a.respond(rc, x)
}
