package server

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// lastEvent is the header in which a client that comes back names the last event that it has: the id of its request,
// and the event's number, parted by a dot (of several choices, the numbers of their events). Where events have no id
// line, as in Ollama's API, it is the number of the last line, from 0.
const lastEvent = "Last-Event-Id"

// again finds the answer that a client goes on to read, if it names one, and returns the route of its request.
func (s *Server) again(rc *fasthttp.RequestCtx, x *exchange.Exchange, to target) (target, *wire.Fault) {
	last := string(rc.Request.Header.Peek(lastEvent))
	if last == "" || !s.service.Lasts() || to.Name == unknown {
		return to, nil
	}
	at := strings.LastIndexByte(last, '.')
	seen, ok := answer.ParseSeen(last[at+1:])
	if at <= 0 || !ok {
		return to, wire.Invalid(lastEvent, "invalid_value", "Last-Event-ID is %q: want the id line of an event, such as "+
			"5f1c09aa000001.17, or leave it out", wire.Shown(last))
	}
	path := s.service.Again(x, last[:at], seen)
	if path == "" {
		return to, wire.Refused(fasthttp.StatusNotFound, "not_found", "Last-Event-ID is %q: no such answer of yours is kept (any "+
			"more): ask anew, without it", wire.Shown(last))
	}
	x.Log = s.log.With().Str("request", x.ID).Logger()
	rc.Response.Header.Set("X-Request-Id", x.ID)
	if path == to.Path {
		return to, nil
	}
	return s.routeOf(rc, path), nil
}

// routeOf returns the route of a POST to a path.
func (s *Server) routeOf(rc *fasthttp.RequestCtx, path string) target {
	var q fasthttp.Request
	rc.Request.Header.CopyTo(&q.Header)
	q.SetRequestURI(path)
	q.Header.SetMethod(fasthttp.MethodPost)
	return s.routes.find(&q)
}

// nobody is the connection of a request that is served for no client.
type nobody struct{ net.Conn }

func (nobody) SetReadDeadline(time.Time) error  { return nil }
func (nobody) SetWriteDeadline(time.Time) error { return nil }
func (nobody) SetDeadline(time.Time) error      { return nil }
func (nobody) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (nobody) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (nobody) Close() error                     { return nil }

// own is a request that is served for no connection.
type own struct {
	s  *Server
	rc fasthttp.RequestCtx
	x  *exchange.Exchange
}

// ownRequest begins a request that ends with base. ended is called at the end of its answer.
func (s *Server) ownRequest(base context.Context, id string, ended func(x *exchange.Exchange)) *own {
	o := &own{s: s}
	o.rc.Init2(nobody{}, connectionLog{s.log}, false)
	o.rc.Request.Header.SetMethod(fasthttp.MethodPost)
	log := s.log.With().Str("request", id).Logger()
	o.x = exchange.Begin(base, &o.rc, id, s.options.Patience, log, func(x *exchange.Exchange, _ int) { ended(x) })
	return o
}

// serve answers the request as one that came to path. Either the answer is a stream, which the caller reads and closes,
// or there is a fault and the request has ended.
func (o *own) serve(path string) (stream io.ReadCloser, fault *wire.Fault) {
	defer func() {
		if p := recover(); p != nil {
			o.x.Panicked(p)
			fault = wire.Internal(o.x.ID)
		}
		o.x.Answered(fasthttp.StatusInternalServerError) // unless it is streamed
	}()
	to := o.s.routeOf(&o.rc, path)
	if fault := to.Handle(&o.rc, o.x); fault != nil {
		o.x.Failed = fault.Text
		return nil, fault
	}
	if o.rc.Response.BodyStream() == nil {
		return nil, wire.Internal(o.x.ID)
	}
	return o, nil
}

// Read implements io.Reader. A stream that breaks off ends with an error, as it would with a connection.
func (o *own) Read(p []byte) (int, error) { return o.rc.Response.BodyStream().Read(p) }

// Close implements io.Closer.
func (o *own) Close() error { return o.rc.Response.CloseBodyStream() }

// goOn serves the request of an answer of a client once more, for nobody: what it draws is kept until its client comes
// back. It returns at the answer's end.
func (s *Server) goOn(owner, id string) {
	s.open.Add(1)
	defer s.open.Done()
	if s.stopping.Load() {
		return
	}
	ended := make(chan struct{})
	o := s.ownRequest(s.base, id, func(x *exchange.Exchange) {
		line := x.Log.Info().Int("prompt_tokens", x.Prompt).Int("generated_tokens", x.Generated)
		if x.Failed != "" {
			line = line.Str("error", x.Failed)
		}
		line.Msg("an answer went on while its client was away")
		close(ended)
	})
	defer func() { <-ended }()
	o.x.Client = owner
	path := s.service.Again(o.x, id, nil)
	if path == "" {
		o.x.Answered(fasthttp.StatusInternalServerError)
		return
	}
	stream, fault := o.serve(path)
	if fault != nil {
		o.x.Log.Warn().Str("error", fault.Text).Msg("an answer cannot be gone on with")
		return
	}
	_, _ = io.Copy(io.Discard, stream) // what it is made of is kept
	_ = stream.Close()
}
