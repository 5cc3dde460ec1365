package answer

import (
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Served says whether the exchange goes on with an answer that was begun before.
func (s *Service) Served(x *exchange.Exchange) bool { return s.lasting.pastOf(x) != nil }

// askedBy is what is kept of the exchange's request.
func askedBy(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order) *actors.AnswerAsked {
	return &actors.AnswerAsked{ID: x.ID, Owner: x.Client, Salt: x.Salt, Method: string(rc.Method()),
		Path: string(rc.Path()), At: x.At.UnixNano(), Background: o.Background, Store: o.Store, Body: x.Text}
}

// Later has an order answered in the background; object is what can be asked for until it is.
func (s *Service) Later(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, object string) *wire.Fault {
	file := s.lasting.answers.Begin(askedBy(rc, x, o))
	if file == nil {
		return wire.Unavailable("overloaded", "the request cannot be kept until it is answered: the log of the server says why; "+
			"ask without background")
	}
	file.Told(&actors.AnswerTold{Object: object})
	file.End(actors.AnswerOpen)
	go s.lasting.again(x.Client, x.ID)
	return nil
}

// Tell has an answer that is being computed say what can be asked for by its id.
func (s *Service) Tell(x *exchange.Exchange, told actors.AnswerTold) {
	l := &s.lasting
	l.mu.Lock()
	r := l.runs[answerKey{x.Client, x.ID}]
	l.mu.Unlock()
	if r != nil {
		r.records.Told(&told)
	}
}

// Save keeps a whole answer that was not streamed.
func (s *Service) Save(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, told actors.AnswerTold) {
	if !s.Lasts() {
		return
	}
	if file := s.lasting.answers.Begin(askedBy(rc, x, o)); file != nil {
		file.Told(&told)
		file.Closed("")
		file.End(actors.AnswerSaved)
	}
}

// Stored finds a kept answer of the exchange's client; nil: there is none.
func (s *Service) Stored(x *exchange.Exchange, id string) *actors.AnswerPast {
	if !s.Lasts() {
		return nil
	}
	return s.lasting.answers.Find(x.Client, id)
}

// Forget ends the computing of an answer of the exchange's client, deletes it, and says whether there was one.
func (s *Service) Forget(x *exchange.Exchange, id string) bool {
	if !s.Lasts() {
		return false
	}
	s.lasting.take(x.Context, answerKey{x.Client, id})
	return s.lasting.answers.Remove(x.Client, id)
}
