package server

import (
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

// goOn serves the request of an answer of a client once more, for nobody: what it draws is kept until its client comes
// back. It returns at the answer's end.
func (s *Server) goOn(owner, id string) {
	s.open.Add(1)
	defer s.open.Done()
	if s.stopping.Load() {
		return
	}
	ended := make(chan struct{})
	var rc fasthttp.RequestCtx
	rc.Init2(nobody{}, connectionLog{s.log}, false)
	rc.Request.Header.SetMethod(fasthttp.MethodPost)
	log := s.log.With().Str("request", id).Logger()
	x := exchange.Begin(s.base, &rc, id, s.options.Patience, log, func(x *exchange.Exchange, _ int) {
		line := x.Log.Info().Int("prompt_tokens", x.Prompt).Int("generated_tokens", x.Generated)
		if x.Failed != "" {
			line = line.Str("error", x.Failed)
		}
		line.Msg("an answer went on while its client was away")
		close(ended)
	})
	x.Client = owner
	defer func() {
		if p := recover(); p != nil {
			x.Panicked(p)
		}
		x.Answered(fasthttp.StatusInternalServerError)
		<-ended
	}()
	path := s.service.Again(x, id, nil)
	if path == "" {
		return
	}
	to := s.routeOf(&rc, path)
	if fault := to.Handle(&rc, x); fault != nil {
		x.Failed = fault.Text
		log.Warn().Str("error", fault.Text).Msg("an answer cannot be gone on with")
		return
	}
	if body := rc.Response.BodyStream(); body != nil {
		_, _ = io.Copy(io.Discard, body) // what it is made of is kept
		_ = rc.Response.CloseBodyStream()
	}
}
