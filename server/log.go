package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/tracing"
)

// entry holds the fields of a request's log line that the exchange does not have. It copies them, since fasthttp
// recycles the request before a stream ends.
type entry struct {
	method, path, client string
	began                time.Time
}

// entryOf makes the log entry of a request. It states the client's whole address, as a trusted proxy names it.
func (s *Server) entryOf(rc *fasthttp.RequestCtx) entry {
	return entry{string(rc.Method()), string(rc.Path()), s.access.from(rc).String(), time.Now()}
}

// answered counts and logs a request whose answer has been handed over, or was cut.
func (s *Server) answered(x *exchange.Exchange, e *entry, route string, status int) {
	took := time.Since(e.began)
	s.metrics.inFlight.Dec()
	s.metrics.answered(route, status, took)
	level := zerolog.InfoLevel
	if route == cluster.Path && status == fasthttp.StatusOK {
		level = zerolog.DebugLevel // twice a second of each member
	}
	line := x.Log.WithLevel(level).Str("client", e.client).Str("method", e.method).Str("path", e.path).Int("status", status).
		Int("prompt_tokens", x.Prompt).Int("generated_tokens", x.Generated).Dur("ms", took)
	if x.Failed != "" {
		line = line.Str("error", x.Failed)
	}
	line.Msg("answered")
	tracing.End(x.Context, status, x.Failed)
}

// traced begins the span of a request that asks for something, and returns its context.
func (s *Server) traced(rc *fasthttp.RequestCtx, to *target, id string, at time.Time) context.Context {
	if s.options.Tracer == nil || to.Path == cluster.Path || !rc.IsPost() {
		return s.base
	}
	return s.options.Tracer.Begin(s.base, func(name string) string { return string(rc.Request.Header.Peek(name)) },
		tracing.Request{Method: string(rc.Method()), Route: to.Name, ID: id, At: at})
}

// logOf is the log of a request.
func (s *Server) logOf(ctx context.Context, id string) zerolog.Logger {
	of := s.log.With().Str("request", id)
	if trace := tracing.Trace(ctx); trace != "" {
		of = of.Str("trace", trace)
	}
	return of.Logger()
}

// longestID bounds the length of a client's request id, in characters.
const longestID = 128

// identify returns the id of a request for its answer and the log: the client's own, if it is well formed, else a
// number of the server's.
func (s *Server) identify(rc *fasthttp.RequestCtx) string {
	given := string(rc.Request.Header.Peek("X-Request-Id"))
	if given != "" && len(given) <= longestID && strings.IndexFunc(given, unnameable) < 0 {
		return given
	}
	return fmt.Sprintf("%08x%06x", s.prefix, s.named.Add(1))
}

func unnameable(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_.:+/=@", r)
}
