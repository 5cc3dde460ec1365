package answer

import (
	"iter"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Dialect is an API as clients know it.
type Dialect struct {
	Name   string // for people
	Header string // requests that carry it are in this dialect where others have the path as well
	Routes []Route
	Fault  func(dst []byte, f *wire.Fault) []byte // appends the body of an answer that is none: JSON
}

// Route is where a path leads.
type Route struct {
	Method string
	Path   string // one that ends in a slash leads to all below it
	Name   string // in metrics; default: the path
	Help   string // a line of GET /; without it, it is not listed
	Public bool   // needs no key
	Early  bool   // is answered while models are loaded

	// Private says that it changes the server, or shows what others do: pages of other origins that are let in by default
	// may not use it.
	Private bool

	// Handle answers. A fault that it returns is written as the dialect has it; nothing else must be written then.
	Handle func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault
}

// Encoder spells the answer to one request. What it appends to a stream are whole events. The choices of a request
// stream at once, each on a goroutine of its own.
type Encoder interface {
	// Whole is the body of an answer that is no stream: JSON, in pieces of some kilobytes, each good until the next.
	// Nobody may want all of them.
	Whole(choices []*Choice) iter.Seq[[]byte]

	// Media is the Content-Type of a stream.
	Media() string
	// Begin comes before the first part of a choice, and may be nothing.
	Begin(dst []byte, c *Choice) []byte
	// Part says what came of a choice since the last part.
	Part(dst []byte, c *Choice) []byte
	// End says how a choice ended.
	End(dst []byte, c *Choice) []byte
	// Close ends a stream whose choices have all ended.
	Close(dst []byte, choices []*Choice) []byte
	// Fault ends a stream that cannot go on.
	Fault(dst []byte, f *wire.Fault) []byte
}
