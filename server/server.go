package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backend/remote"
	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/fetch"
	"github.com/sluice-ai/sluice/server/ollama"
	"github.com/sluice-ai/sluice/server/page"
	"github.com/sluice-ai/sluice/server/tracing"
	"github.com/sluice-ai/sluice/server/wire"
)

// Options configure a server. A field's zero value stands for its default.
// Wide: so much of a server can be chosen.
type Options struct {
	APIKeys     []string       // one of them must come with a request; none: anybody may ask
	HostNames   []string       // names of the server in Host headers, besides localhost and addresses
	Proxies     []netip.Prefix // addresses of proxies that may name their clients by X-Forwarded-For
	Origins     []string       // origins of web pages that may send requests, besides our own; * is all of them
	MCP         []string       // origins of servers of tools that our own page may ask (page.ParseOrigin)
	FetchImages bool           // pictures are fetched from the addresses that requests name, if these are public
	Promises    bool           // requests with a deadline go before those of other clients
	SharePrefix bool           // clients may use what prompts of other keys left in the prefix cache
	Log         zerolog.Logger
	TLS         *tls.Config // of connections; nil: they are not encrypted

	Answers *actors.Answers // streamed answers are kept there while they are computed, and for a while; nil: they are not

	Sessions *actors.Sessions // texts of slots are kept there when clients say so; nil: they are not

	Cluster *cluster.Cluster // that the server is a member of; nil: of none
	Lender  *remote.Lender   // computes layers for other members; nil: nothing does

	Tracer *tracing.Tracer // tells a collector of requests; nil: nobody is told

	Painter answer.Painter // makes pictures of texts; nil: nothing does

	Store    ollama.Store         // that clients may change; nil: they may not
	Adapters answer.AdapterFolder // of which clients may have some loaded; nil: they may not

	Version       string   // of the program, for metrics
	MetricsCompat []Compat // other servers, whose metric names are exported as well

	Patience time.Duration // how long a client may leave a write waiting; default 1 min
	Reading  time.Duration // how long a request may take to arrive; default 30 s
	Queueing time.Duration // how long one may wait for its share of memory; default 10 s
	Beat     time.Duration // how often a waiting client hears of its prompt; default 1 s
}

// Limits of connections and requests.
const (
	maxBody         = 16 << 20
	maxStrangerBody = 4 << 10 // of a request without a valid key
	maxHeader       = 16 << 10
	maxConnections  = 1024
	idleConnection  = 2 * time.Minute
	idleWorker      = 500 * time.Millisecond
	cutting         = 3 * time.Second // how long answers that are cut at shutdown may take to say so

	intake = 192 << 20 // bytes that requests may cost together until their prompts are made
)

// Server serves models in several dialects.
// Wide: it is what all handlers share, each part a type of its own.
type Server struct {
	models   answer.Models
	later    later
	loaded   chan struct{} // closed when the models are there
	routes   *routes
	service  *answer.Service
	access   access
	log      zerolog.Logger
	metrics  *metrics
	http     fasthttp.Server
	listener *listener
	members  *listener // for members of the cluster; nil: it is of none
	crowded  crowded
	intake   *exchange.Intake
	page     *page.Page
	options  Options

	base     context.Context // of all requests
	cut      context.CancelCauseFunc
	began    time.Time
	stopping atomic.Bool
	percent  atomic.Int64   // how much of the models has been loaded
	open     sync.WaitGroup // requests whose answers are not written
	traces   atomic.Int32   // that are being written
	carried  atomic.Int64   // bytes of requests whose streams could go on elsewhere
	loans    atomic.Int32   // ranges of files that members read
	named    atomic.Uint64
	prefix   uint32 // of request ids, so that those of two runs differ
}

// New makes a server for models. The caller still owns the models, and closes them after the server.
func New(models answer.Models, o Options) *Server {
	s := Loading(o)
	s.Loaded(models)
	return s
}

// Loading makes a server without models yet: requests wait until Loaded is called, and GET /health reports the
// progress.
func Loading(o Options) *Server {
	return speaking(o, func(s *answer.Service) []answer.Dialect { return dialects(s, o.Store) })
}

// speaking makes a server for the dialects that list returns.
func speaking(o Options, list func(*answer.Service) []answer.Dialect) *Server {
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	if o.Reading <= 0 {
		o.Reading = 30 * time.Second
	}
	if o.Queueing <= 0 {
		o.Queueing = 10 * time.Second
	}
	s := &Server{began: time.Now(), log: o.Log, options: o, prefix: rand.Uint32(), loaded: make(chan struct{}),
		page: page.New(o.Store != nil, o.MCP)}
	s.models = &s.later
	s.intake = exchange.NewIntake(intake, maxBody, o.Queueing)
	service := answer.New(s.models, s.intake, o.Reading)
	service.Folder, service.Sessions = o.Adapters, o.Sessions
	if s.service = service; o.Answers != nil {
		service.Last(o.Answers, s.goOn)
	}
	if o.Beat > 0 {
		service.Beat = o.Beat
	}
	pictures := newDrawn()
	service.Promises, service.Painter, service.Gallery = o.Promises, o.Painter, pictures
	if o.FetchImages {
		service.Fetch = fetch.New().Get
	}
	spoken := list(service)
	own := append(s.own(), s.clusterRoutes()...)
	s.routes = newRoutes(append(spoken, answer.Dialect{Routes: own, Fault: spoken[0].Fault}))
	s.access.names, s.access.proxies = o.HostNames, o.Proxies
	s.access.setKeys(o.APIKeys)
	s.access.origins = o.Origins
	s.metrics = newMetrics(s.models, service.Waiting, pictures, &o)
	s.listener = &listener{most: connections(system.MostFiles()), who: s.access.peer, crowded: &s.crowded, refuse: s.full,
		short: s.short, secure: o.TLS, conns: map[*conn]struct{}{}, shut: make(chan struct{})}
	s.members = s.membersOf(o.Cluster)
	s.base, s.cut = context.WithCancelCause(context.Background())
	s.http = fasthttp.Server{
		Handler:      s.serve,
		ErrorHandler: s.unreadable,
		// A deadline of an earlier answer on the connection may be over: "100 Continue" must still be writable.
		ExpectHandler: func(rc *fasthttp.RequestCtx) int {
			rc.Conn().SetWriteDeadline(time.Time{}) //nolint:errcheck // the write will fail as well
			return fasthttp.StatusContinue
		},
		StreamRequestBody: true, MaxRequestBodySize: 1, // so much is read before the handler sees the request; it bounds the rest
		ReadBufferSize: maxHeader,
		Concurrency:    2 * s.listener.most, // twice the listener's limit: closed connections still count for a moment
		ReadTimeout:    o.Reading, IdleTimeout: idleConnection, MaxIdleWorkerDuration: idleWorker,
		NoDefaultServerHeader:        true,
		DisablePreParseMultipartForm: true, SecureErrorLogMessage: true, CloseOnShutdown: true,
		Logger: connectionLog{o.Log},
	}
	return s
}

// Loaded sets the models and begins to answer requests. It must be called once; the caller still owns the models.
func (s *Server) Loaded(models answer.Models) {
	s.later.Models = models
	goOn := s.service.Unfinished()
	close(s.loaded)
	goOn()
}

// SetKeys replaces the keys that clients must send, from the next request on; those that are answered go on.
func (s *Server) SetKeys(keys []string) { s.access.setKeys(keys) }

// Progress records that done of total bytes of the models are loaded.
func (s *Server) Progress(done, total int64) {
	if total > 0 {
		s.percent.Store(100 * done / total)
	}
}

// ListenAndServe listens on addr and serves until Shutdown. It returns an error if it cannot listen or accept.
func (s *Server) ListenAndServe(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: choose another address, or stop what listens there", addr, err)
	}
	return s.Serve(ln)
}

// Serve answers requests on ln until Shutdown, and then closes ln.
func (s *Server) Serve(ln net.Listener) error {
	s.access.listening(ln.Addr())
	if !s.access.loopback && len(s.access.keys()) == 0 {
		s.log.Warn().Str("addr", ln.Addr().String()).Msg("everybody who reaches this address may use the model: set an API key")
	}
	return s.http.Serve(s.listener.on(ln))
}

// Shutdown accepts no more requests and waits for those that are open. When ctx ends, open answers are cut, each with
// an error that names the reason, and ctx's error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.listener.close()
	defer s.listener.end()
	if s.members != nil {
		s.options.Cluster.Drain()
		s.members.close()
		defer s.members.end()
	}
	patient, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	down := make(chan error, 1)
	go func() {
		err := s.http.ShutdownWithContext(patient)
		s.open.Wait() // also streams of HTTP/1.0, whose connections fasthttp has given up
		down <- err
	}()
	select {
	case err := <-down:
		s.cut(exchange.ErrStopping)
		return err
	case <-ctx.Done():
	}
	s.cut(exchange.ErrStopping)
	time.AfterFunc(cutting, giveUp)
	return errors.Join(ctx.Err(), <-down)
}

// Close ends all open requests at once, for a server whose models could not be loaded.
func (s *Server) Close() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(now) // nothing was promised
}

// serve answers one request.
func (s *Server) serve(rc *fasthttp.RequestCtx) {
	id, line := s.identify(rc), s.entryOf(rc)
	s.open.Add(1)
	to := s.routes.find(&rc.Request)
	s.metrics.inFlight.Inc()
	base := s.traced(rc, &to, id, line.began)
	x := exchange.Begin(base, rc, id, s.options.Patience, s.logOf(base, id),
		func(x *exchange.Exchange, status int) {
			defer s.open.Done()
			s.answered(x, &line, to.Name, status)
		})
	x.Client = s.access.client(rc)
	if digest, ok := s.access.digest(&rc.Request.Header); ok && !s.options.SharePrefix {
		x.Salt = binary.LittleEndian.Uint64(digest[:])
	}
	from := s.member(rc)
	if from != "" {
		passed(rc, x)
	}
	if c, ok := rc.Conn().(*conn); ok {
		x.Hold(c.begin, c.end)
	}
	defer func() {
		if p := recover(); p != nil {
			x.Panicked(p)
			rc.Response.Reset()
			rc.Response.Header.Set("X-Request-Id", id)
			to.refuse(rc, wire.Internal(id))
		}
		if !x.Complete() || !rc.Request.Header.IsHTTP11() {
			rc.Response.Header.SetConnectionClose()
		}
		x.Answered(rc.Response.StatusCode())
	}()
	rc.Response.Header.Set("X-Request-Id", id)
	fault := s.letIn(rc, &to, from)
	if fault == nil && s.access.preflight(rc, to.Private) {
		return
	}
	if fault == nil {
		fault = s.handle(rc, x, &to, from)
	}
	if fault != nil {
		x.Failed = fault.Text
		to.refuse(rc, fault)
	}
}

// handle answers a request that is let in, of a client or of the member from. The route may become another one before
// the answer begins, and no more once it has: it may still be streamed, and end, after this returned.
func (s *Server) handle(rc *fasthttp.RequestCtx, x *exchange.Exchange, to *target, from string) *wire.Fault {
	fault := s.admit(rc, to)
	if fault == nil && !to.Early {
		fault = x.Await(s.loaded)
	}
	if fault == nil {
		if from != "" && to.Path == cluster.AnswerPath {
			*to, fault = s.carriedOn(rc, x, *to)
		} else {
			*to, fault = s.again(rc, x, *to)
		}
	}
	answered := false
	if fault == nil {
		answered, fault = s.elsewhere(rc, x, from)
	}
	if fault == nil && !answered {
		fault = to.Handle(rc, x)
	}
	return fault
}

// unreadable answers bytes that could not be parsed as a request.
func (s *Server) unreadable(rc *fasthttp.RequestCtx, err error) {
	rc.Conn().SetWriteDeadline(time.Now().Add(s.options.Patience)) //nolint:errcheck // the write will fail as well
	var header *fasthttp.ErrSmallBuffer
	var network net.Error
	broken := error(nil)
	if c, ok := rc.Conn().(*conn); ok {
		broken = c.broken()
	}
	fault := wire.Invalid("", "invalid_http", "the request is not HTTP as we know it: want HTTP/1.1")
	switch {
	case broken != nil:
		fault = wire.Invalid("", "invalid_http", "%v", broken)
	case errors.As(err, &header):
		fault = wire.Refused(fasthttp.StatusRequestHeaderFieldsTooLarge, "header_too_large",
			"the header has more than %d bytes, which is the most that is read: send less", maxHeader)
	case errors.As(err, &network) && network.Timeout():
		fault = wire.Refused(fasthttp.StatusRequestTimeout, "timeout",
			"the request was not complete after %v: send it faster", s.options.Reading)
	}
	to := s.routes.find(&rc.Request) // if there is no path, the fault has the first dialect's format
	to.refuse(rc, fault)
	rc.Response.Header.SetConnectionClose()
	s.metrics.answered(unknown, fault.Status, 0)
	s.log.Debug().Err(err).Int("status", fault.Status).Msg("not a request")
}

// connectionLog logs fasthttp's messages about connections.
type connectionLog struct{ zerolog.Logger }

func (l connectionLog) Printf(format string, args ...any) { l.Debug().Msgf(format, args...) }
