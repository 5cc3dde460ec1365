package server

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backend/remote"
	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/route"
)

// movable are the paths of requests that any member of a cluster can answer: those that a model answers by what they
// hold, and nothing that is kept here.
var movable = []string{"/v1/chat/completions", "/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank",
	"/v1/messages", "/v1/messages/count_tokens", "/api/chat", "/api/generate", "/api/embed", "/api/embeddings"}

// Headers of requests that a member passes on: who asks it, and whose prefixes the client shares.
const (
	clientHeader = "X-Sluice-Client"
	saltHeader   = "X-Sluice-Salt"
	atHeader     = "X-Sluice-At"     // when it came, in ns of Unix time
	seenHeader   = "X-Sluice-Seen"   // of an answer that is gone on with: its events that the client has
	memberHeader = "X-Sluice-Member" // of answers: who gave it
)

// between are the paths where members ask each other for themselves.
var between = []string{cluster.Path, cluster.AnswerPath, cluster.WeightsPath, cluster.SessionPath, remote.Path}

// mostMemberConns is how many connections members may have here.
const mostMemberConns = 512

// ServeMembers answers what members of the cluster pass on on ln, until Shutdown, and then closes ln.
func (s *Server) ServeMembers(ln net.Listener) error {
	return s.http.Serve(s.members.on(ln))
}

// membersOf makes the listener for members; nil: the server is no member of a cluster.
func (s *Server) membersOf(c *cluster.Cluster) *listener {
	if c == nil {
		return nil
	}
	c.Offers = s.offers
	if kept := s.options.Sessions; kept != nil {
		kept.Ask(s.sessionsOf(c))
	}
	return &listener{most: mostMemberConns, who: s.access.peer, crowded: &s.crowded, refuse: s.full, short: s.short,
		secure: c.Pass.Server(), conns: map[*conn]struct{}{}, shut: make(chan struct{}),
		stranger: func(at net.Addr, err error) { s.crowded.stranger(s.log, at, c.Pass.Explain(err)) }}
}

// sessionsOf has members asked for sessions that are not here.
func (s *Server) sessionsOf(c *cluster.Cluster) actors.Others {
	return func(model, owner, name string) (io.ReadCloser, int64, error) {
		from, size, err := c.Session(s.base, model, owner, name)
		if errors.Is(err, cluster.ErrNoSession) {
			err = actors.ErrSessionMissing
		}
		return from, size, err
	}
}

// member returns the name of the member that sent a request; "": a client did.
func (s *Server) member(rc *fasthttp.RequestCtx) string {
	c, ok := rc.Conn().(*conn)
	if !ok || s.members == nil || c.listener != s.members {
		return ""
	}
	state := c.secure.ConnectionState()
	return pass.MemberOf(&state)
}

// passed takes what the member that passed a request on says of its client.
func passed(rc *fasthttp.RequestCtx, x *exchange.Exchange) {
	h := &rc.Request.Header
	x.Client = string(h.Peek(clientHeader))
	x.Salt, _ = strconv.ParseUint(string(h.Peek(saltHeader)), 16, 64) // 0 is everybody's
	if at, err := strconv.ParseInt(string(h.Peek(atHeader)), 10, 64); err == nil {
		x.At = time.Unix(0, at)
	}
	x.Carried = true
}

// clusterRoutes are the routes that members of a cluster have.
func (s *Server) clusterRoutes() []answer.Route {
	if s.options.Cluster == nil {
		return nil
	}
	return []answer.Route{
		{Method: fasthttp.MethodGet, Path: "/cluster", Private: true, Early: true, Help: "the members of the cluster",
			Handle: s.shownMembers},
		{Method: fasthttp.MethodPost, Path: cluster.Path, Public: true, Early: true, Handle: s.reported},
		{Method: fasthttp.MethodPost, Path: cluster.AnswerPath, Public: true, Handle: notFound},
		{Method: fasthttp.MethodPost, Path: remote.Path, Public: true, Early: true, Handle: s.lent},
		{Method: fasthttp.MethodGet, Path: cluster.WeightsPath, Public: true, Handle: s.lend},
		{Method: fasthttp.MethodGet, Path: cluster.SessionPath, Public: true, Handle: s.lendSession},
	}
}

// lent gives a member's connection to who computes layers for it.
func (s *Server) lent(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	name := s.member(rc)
	if name == "" {
		return notFound(rc, x)
	}
	if s.options.Lender == nil {
		return wire.Refused(fasthttp.StatusForbidden, "lend", "this member computes for nobody: start it with --lend SIZE")
	}
	c := rc.Conn().(*conn)
	rc.HijackSetNoResponse(true)
	rc.Hijack(func(net.Conn) {
		c.begin() // so it is not closed for another one
		defer c.end()
		_ = c.SetDeadline(time.Time{})
		_, err := io.WriteString(c.secure, remote.Welcome)
		if err == nil {
			err = s.options.Lender.Serve(c.secure)
		}
		if err != nil {
			s.log.Warn().Str("member", name).Err(err).Msg("computing layers for a member has ended")
		}
	})
	return nil
}

func (s *Server) shownMembers(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	text, err := json.MarshalIndent(map[string]any{"cluster": s.options.Cluster.Pass.Cluster,
		"members": s.options.Cluster.Members()}, "", "  ")
	if err != nil {
		return wire.Refused(fasthttp.StatusInternalServerError, "internal", "%v", err)
	}
	rc.SetContentType("application/json")
	rc.SetBody(append(text, '\n'))
	return nil
}

// reported hears a member's report, and answers with ours.
func (s *Server) reported(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	name := s.member(rc)
	if name == "" {
		return notFound(rc, x)
	}
	body, fault := x.Arrive(rc, s.intake, s.options.Reading)
	if fault != nil {
		return fault
	}
	is, err := cluster.ReadReport(strings.NewReader(body))
	if err == nil {
		err = s.options.Cluster.Meet(is, name)
	}
	if err != nil {
		return wire.Refused(fasthttp.StatusConflict, "report", "%v", err)
	}
	text, err := json.Marshal(s.options.Cluster.Report())
	if err != nil {
		return wire.Refused(fasthttp.StatusInternalServerError, "internal", "%v", err)
	}
	rc.SetContentType("application/json")
	rc.SetBody(text)
	return nil
}

// offers is what a member of a cluster has: its models, and what their answers may expect now.
func (s *Server) offers() (all []route.Model) {
	select {
	case <-s.loaded:
	default:
		return nil
	}
	for _, name := range s.models.Names() {
		m := route.Model{Name: name, Load: loading}
		if e := s.models.Engine(name); e != nil {
			m = offered(name, e)
		}
		all = append(all, m)
	}
	return all
}

// What is said of models whose speed is not known yet.
const (
	loading  = 10 * time.Second
	oneToken = time.Millisecond // of a prompt
	sampled  = 256              // tokens of a prompt whose reading is foreseen
)

// offered foresees a short and a longer prompt, and says what lies between them.
func offered(name string, e *actors.Engine) route.Model {
	m := route.Model{Name: name, Token: oneToken, Each: 20 * oneToken}
	foresee := func(tokens int) (time.Duration, bool) {
		busy, _, known := e.Foresee([]actors.Request{{Tokens: make([]int32, tokens)}})
		if !known {
			return 0, false
		}
		m.Each = max(busy[0].Each, 0)
		return max(busy[0].First, 0), true
	}
	long, known := foresee(sampled + 1)
	if short, ok := foresee(1); known && ok {
		m.Wait, m.Token = short, max(long-short, 0)/sampled
	}
	return m
}
