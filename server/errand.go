package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/carry"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/tracing"
	"github.com/sluice-ai/sluice/server/wire"
)

const (
	attempts = 3 // at other members, before a request, or what is left of its answer, is answered here
	// carriedBytes is how much the bodies of requests may have whose streams could go on elsewhere.
	carriedBytes = 256 << 20
)

// errand is a request that other members are asked to answer.
type errand struct {
	s     *Server
	x     *exchange.Exchange
	asked actors.AnswerAsked
	ask   cluster.Ask
	head  http.Header
	query string
	not   []string // members that were asked
	last  bool     // so were we
}

// elsewhere passes a request on to the member that should answer it, and its answer back. It returns false if that is
// ourselves.
func (s *Server) elsewhere(rc *fasthttp.RequestCtx, x *exchange.Exchange, from string) (bool, *wire.Fault) {
	c := s.options.Cluster
	if c == nil || !slices.Contains(movable, string(rc.Path())) || len(rc.Request.Header.Peek(lastEvent)) > 0 {
		return false, nil
	}
	body, fault := x.Arrive(rc, s.intake, s.options.Reading)
	if fault != nil {
		return false, fault
	}
	ask, ok := cluster.Read(x.Salt, body)
	if !ok {
		return false, nil
	}
	if from != "" {
		c.Took(&ask)
		return false, nil
	}
	e := &errand{s: s, x: x, ask: ask, head: headOf(rc, x), query: string(rc.URI().QueryString()),
		asked: actors.AnswerAsked{ID: x.ID, Owner: x.Client, Salt: x.Salt, Method: fasthttp.MethodPost,
			Path: string(rc.Path()), At: x.At.UnixNano(), Body: body}}
	for range attempts {
		goal := c.Send(&e.ask, e.not)
		if goal == nil {
			return false, nil
		}
		x.Watch()
		e.not = append(e.not, goal.Member)
		if e.run(rc, goal) {
			return true, nil
		}
		if x.Context.Err() != nil {
			return false, gone(x)
		}
	}
	return false, nil
}

// gone is the fault of a request whose Context has ended.
func gone(x *exchange.Exchange) *wire.Fault {
	if errors.Is(context.Cause(x.Context), exchange.ErrStopping) {
		return wire.Stopping()
	}
	return wire.Gone()
}

// run has a member answer the request. It returns false if nothing came from there, so that another can.
func (e *errand) run(rc *fasthttp.RequestCtx, to *cluster.Goal) bool {
	got, end, err := e.send(to, e.asked.Path, e.asked.Body, "")
	if err != nil {
		return false
	}
	h, media := &rc.Response.Header, got.Header.Get("Content-Type")
	h.Set(memberHeader, to.Member)
	if wait := got.Header.Get("Retry-After"); wait != "" {
		h.Set("Retry-After", wait)
	}
	rc.SetStatusCode(got.StatusCode)
	if got.ContentLength < 0 && (media == "text/event-stream" || media == "application/x-ndjson") {
		e.stream(rc, media, got.Body, end)
		return true
	}
	if err := e.x.Relay(rc, media, got.ContentLength, got.Body, end); err == nil {
		return true
	}
	log := e.log(to)
	log.Warn().Err(err).Msg("a member breaks off: the request goes elsewhere")
	h.Del(memberHeader)
	h.Del("Retry-After")
	rc.SetStatusCode(http.StatusOK)
	return false
}

func (e *errand) log(to *cluster.Goal) zerolog.Logger {
	return e.x.Log.With().Str("member", to.Member).Logger()
}

var errElsewhere = errors.New("another member is asked")

// send sends a member the request, or the file of its answer so far. It fails if another member is to be asked, and the
// log says why. end is called when no more is wanted.
func (e *errand) send(to *cluster.Goal, path, body, seen string) (got *http.Response, end func(), err error) {
	ctx, cancel := context.WithCancel(e.x.Context)
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		select {
		case <-to.Gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	q := (&http.Request{Method: http.MethodPost, Header: e.head.Clone(), ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body))}).WithContext(ctx)
	q.URL = &url.URL{Scheme: "https", Host: to.Addr, Path: path, RawQuery: e.query}
	if seen != "" {
		q.Header.Set(seenHeader, seen)
	}
	told := tracing.Pass(e.x.Context, to.Member, q.Header)
	end = func() {
		cancel()
		<-lost
		told(err)
	}
	got, err = e.s.options.Cluster.Do(q)
	log := e.log(to)
	switch {
	case err != nil && e.x.Context.Err() == nil:
		e.s.options.Cluster.Failed(to.Addr)
		log.Warn().Err(err).Msg("a member does not answer: the request goes elsewhere")
	case err == nil && got.StatusCode == http.StatusServiceUnavailable:
		log.Info().Msg("a member cannot answer now: the request goes elsewhere")
		_ = got.Body.Close() // nothing is wanted of it
		err = errElsewhere
	case err == nil:
		log.Debug().Msg("passed on")
		return got, end, nil
	}
	end()
	return nil, nil, errElsewhere
}

// stream answers with a member's stream, and has others go on with it if it breaks off.
func (e *errand) stream(rc *fasthttp.RequestCtx, media string, from io.ReadCloser, end func()) {
	size := int64(len(e.asked.Body))
	keeps := e.s.carried.Add(size) <= carriedBytes
	if !keeps {
		e.s.carried.Add(-size)
		size, e.asked.Body = 0, ""
	}
	e.x.Release()
	e.x.Stream(rc, media, nil, func(w *exchange.Writer) {
		defer e.s.carried.Add(-size)
		k := carry.New(media != "text/event-stream")
		for {
			err := pour(w, k, from)
			_ = from.Close() // nothing more is wanted of it
			end()
			if err == nil {
				return
			}
			if e.x.Context.Err() == nil {
				e.x.Log.Warn().Err(err).Msg("a member breaks off in the middle of an answer")
				if from, end, err = e.further(k, keeps); err == nil {
					continue
				}
				e.x.Log.Warn().Err(err).Msg("nobody can go on with the answer")
			}
			w.BreakOff()
			return
		}
	})
}

// pour passes the events of a member on. It fails unless the answer is whole.
func pour(w *exchange.Writer, k *carry.Kept, from io.Reader) error {
	var events []byte
	for buffer := make([]byte, 16<<10); ; {
		n, err := from.Read(buffer)
		var wrong error
		events, wrong = k.Take(events[:0], buffer[:n])
		if len(events) > 0 && w.Send(events) != nil {
			return exchange.ErrGone
		}
		switch {
		case wrong != nil:
			return wrong
		case errors.Is(err, io.EOF) && k.Whole():
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}

// further has another member, or ourselves, go on with an answer that broke off.
func (e *errand) further(k *carry.Kept, keeps bool) (from io.ReadCloser, end func(), err error) {
	if !keeps || !k.Known() {
		return nil, nil, errors.New("too little of it is known here: it is of a model that does not say which it is, it has " +
			"pictures, or is too large")
	}
	k.Anew()
	file, seen := actors.PackAnswer(&e.asked, k.Records), string(carry.AppendSeen(nil, k.Seen))
	for range attempts {
		goal := e.s.options.Cluster.Send(&e.ask, e.not)
		if goal == nil {
			break
		}
		e.not = append(e.not, goal.Member)
		got, end, err := e.send(goal, cluster.AnswerPath, string(file), seen)
		if err != nil {
			if e.x.Context.Err() != nil {
				return nil, nil, context.Cause(e.x.Context)
			}
			continue
		}
		log := e.log(goal)
		if got.StatusCode == http.StatusOK {
			log.Info().Ints("events", k.Seen).Msg("another member goes on with an answer")
			return got.Body, end, nil
		}
		said, _ := io.ReadAll(io.LimitReader(got.Body, 1<<10)) // without words, the status has to do
		log.Warn().Int("status", got.StatusCode).Bytes("said", said).Msg("a member cannot go on with an answer")
		_ = got.Body.Close()
		end()
	}
	if e.last {
		return nil, nil, errors.New("it broke off here, too")
	}
	e.last = true
	from, err = e.here(k)
	return from, func() {}, err
}

// here goes on with the answer ourselves.
func (e *errand) here(k *carry.Kept) (io.ReadCloser, error) {
	p, err := actors.ParseAnswer(actors.PackAnswer(&e.asked, k.Records))
	if err != nil {
		return nil, err
	}
	o := e.s.ownRequest(e.x.Context, e.asked.ID, func(x *exchange.Exchange) {
		e.x.Prompt, e.x.Generated = x.Prompt, x.Generated
	})
	for name := range e.head {
		o.rc.Request.Header.Set(name, e.head.Get(name))
	}
	o.x.Client, o.x.Salt, o.x.Carried = p.Owner, p.Salt, true
	e.s.service.Resume(o.x, p, slices.Clone(k.Seen)) // k counts on
	from, fault := o.serve(p.Path)
	if fault != nil {
		return nil, errors.New(fault.Text)
	}
	e.x.Log.Info().Ints("events", k.Seen).Msg("an answer goes on here")
	return from, nil
}

// headOf is what members are told of a request beside its body.
func headOf(rc *fasthttp.RequestCtx, x *exchange.Exchange) http.Header {
	h := http.Header{}
	for name, value := range rc.Request.Header.All() {
		if !ours(string(name)) {
			h.Add(string(name), string(value))
		}
	}
	h.Set("X-Request-Id", x.ID)
	h.Set(clientHeader, x.Client)
	h.Set(saltHeader, strconv.FormatUint(x.Salt, 16))
	h.Set(atHeader, strconv.FormatInt(x.At.UnixNano(), 10))
	return h
}

// ours says whether a header is of this connection or for this server only: the client's key is, which no other member
// has to know.
func ours(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"host", "connection", "content-length", "transfer-encoding", "expect", "te", "upgrade",
		"keep-alive", "trailer", "origin", "cookie", "accept-encoding", "x-forwarded-for", "authorization", "x-api-key"}, name) ||
		strings.HasPrefix(name, "sec-") || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "x-sluice-")
}

// carriedOn finds the answer that a member has us go on with, and returns the route of its request.
func (s *Server) carriedOn(rc *fasthttp.RequestCtx, x *exchange.Exchange, to target) (target, *wire.Fault) {
	file, fault := x.Arrive(rc, s.intake, s.options.Reading)
	if fault != nil {
		return to, fault
	}
	p, err := actors.ParseAnswer([]byte(file))
	seen, ok := carry.ParseSeen(string(rc.Request.Header.Peek(seenHeader)))
	if err == nil && !ok {
		err = errors.New(seenHeader + " is no list of numbers")
	}
	if err == nil && !slices.Contains(movable, p.Path) {
		err = fmt.Errorf("it is of %.80q, which is not passed on", p.Path)
	}
	if err != nil {
		return to, wire.Refused(fasthttp.StatusBadRequest, "answer", "the answer cannot be gone on with: %v", err)
	}
	x.Client, x.Salt = p.Owner, p.Salt
	s.service.Resume(x, p, seen)
	return s.routeOf(rc, p.Path), nil
}
