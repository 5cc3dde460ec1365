package answer

import (
	"iter"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Dialect is one HTTP API: its routes and its shape of errors.
type Dialect struct {
	Name   string // for people
	Header string // if several dialects have a path, requests with this header belong to this one
	Routes []Route
	Fault  func(dst []byte, f *wire.Fault) []byte // appends the JSON that tells the client of a fault
}

// Route binds a method and a path to a handler.
type Route struct {
	Method string
	Also   string // another method, which Handle tells apart; "": none
	Path   string // one that ends in a slash serves all paths below it
	Name   string // in metrics; default: the path
	Help   string // a line of GET /; without it, it is not listed
	Public bool   // needs no key
	Early  bool   // is answered even before the models are loaded

	// Private marks a route that changes the server, or shows what others do. Pages of other origins that are
	// admitted by default may not use it.
	Private bool

	// Handle answers a request. A fault that it returns is written in the dialect's shape; the handler must not have
	// written anything then.
	Handle func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault
}

// Encoder writes the answer to one request in a dialect's format. All methods that append to a stream append whole
// events. The choices of a request stream at once, each on a goroutine of its own.
type Encoder interface {
	// Whole returns the body of an answer that is not streamed: JSON in pieces of some kilobytes, each valid until
	// the next one. The caller may stop early.
	Whole(choices []*Choice) iter.Seq[[]byte]

	// Media returns the Content-Type of a stream.
	Media() string
	// Reading appends what says, before the first part, how far a prompt has been read, since when; there may be
	// nothing.
	Reading(dst []byte, r actors.Reading, since time.Duration) []byte
	// Begin appends the events before the first part of a choice; there may be none.
	Begin(dst []byte, c *Choice) []byte
	// Part appends what was generated for a choice since the last part.
	Part(dst []byte, c *Choice) []byte
	// End appends the events that end a choice.
	End(dst []byte, c *Choice) []byte
	// Close appends the events that end a stream whose choices have all ended.
	Close(dst []byte, choices []*Choice) []byte
	// Fault appends the event of an error, which ends a stream.
	Fault(dst []byte, f *wire.Fault) []byte
}
