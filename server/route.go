package server

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/page"
	"github.com/sluice-ai/sluice/server/wire"
)

// target is a route and the dialect that it belongs to.
type target struct {
	answer.Route
	dialect *answer.Dialect // in its format faults are written
}

// routes holds the routes of all paths. It never changes.
type routes struct {
	dialects []answer.Dialect    // the last one is the server itself
	exact    map[string][]target // by path: one, or several of dialects that a header distinguishes
	below    []target            // routes whose path ends in a slash: they serve all paths below it
}

func newRoutes(dialects []answer.Dialect) *routes {
	r := &routes{dialects: dialects, exact: map[string][]target{}}
	for i := range dialects {
		for _, to := range dialects[i].Routes {
			t := target{to, &dialects[i]}
			if t.Name == "" {
				t.Name = t.Path
			}
			same := func(o target) bool { return o.Path == t.Path && o.dialect.Header == t.dialect.Header }
			switch {
			case slices.ContainsFunc(r.exact[t.Path], same), slices.ContainsFunc(r.below, same):
				panic(fmt.Sprintf("two routes lead from %s", t.Path))
			case len(t.Path) > 1 && strings.HasSuffix(t.Path, "/"):
				r.below = append(r.below, t)
			default:
				r.exact[t.Path] = append(r.exact[t.Path], t)
			}
		}
	}
	return r
}

// unknown is the route name of paths that no route matches.
const unknown = "other"

// find returns the route of a request. For a path without a route it returns one that answers "not found", in a
// dialect that has paths with the same beginning.
func (r *routes) find(q *fasthttp.Request) target {
	path := string(q.URI().Path())
	if ways := r.exact[path]; len(ways) > 0 {
		return fitting(q, ways)
	}
	var ways []target
	for _, t := range r.below {
		if strings.HasPrefix(path, t.Path) {
			ways = append(ways, t)
		}
	}
	if len(ways) > 0 {
		return fitting(q, ways)
	}
	nowhere := answer.Route{Name: unknown, Public: true, Handle: notFound}
	for i := range r.dialects {
		begins := func(t answer.Route) bool { return strings.HasPrefix(path, beginning(t.Path)) }
		if slices.ContainsFunc(r.dialects[i].Routes, begins) {
			ways = append(ways, target{nowhere, &r.dialects[i]})
		}
	}
	if len(ways) > 0 {
		return fitting(q, ways)
	}
	return target{nowhere, &r.dialects[len(r.dialects)-1]}
}

// fitting chooses a dialect: the one whose header the request carries, else the first that needs none, else the
// first.
func fitting(q *fasthttp.Request, ways []target) target {
	best := 0
	for i, t := range ways {
		header := t.dialect.Header
		if header != "" && len(q.Header.Peek(header)) > 0 {
			return t
		}
		if header == "" && ways[best].dialect.Header != "" {
			best = i
		}
	}
	return ways[best]
}

// beginning returns a path up to and including its second slash.
func beginning(path string) string {
	if at := strings.IndexByte(path[1:], '/'); at >= 0 {
		return path[:at+2]
	}
	return path
}

// list returns the text of GET /, a line for each endpoint.
func (r *routes) list() string {
	var text strings.Builder
	for i := range r.dialects {
		for _, t := range r.dialects[i].Routes {
			if t.Help != "" {
				fmt.Fprintf(&text, "%-4s %-25s %s\n", t.Method, t.Path, t.Help)
			}
		}
	}
	return text.String()
}

// refuse writes a fault as the answer, in the dialect's shape.
func (t *target) refuse(rc *fasthttp.RequestCtx, f *wire.Fault) {
	rc.SetStatusCode(f.Status)
	rc.SetContentType("application/json")
	if f.RetryAfter > 0 {
		rc.Response.Header.Set("Retry-After", fmt.Sprint(f.RetryAfter))
	}
	rc.SetBody(t.dialect.Fault(nil, f))
}

// full tells a connection that the server has no room for it, in the first dialect's shape and without waiting for
// its request. Evicted connections are closed in silence, as idle ones are at any time.
func (s *Server) full(c *net.TCPConn, evicted bool) {
	s.crowded.report(s.log, s.listener.most, evicted)
	if evicted {
		return
	}
	if s.options.TLS != nil { // words would have to wait for a handshake
		_ = c.Close()
		return
	}
	fault := wire.Unavailable("overloaded", "%d connections are open already, and all of them are at work: try again later", s.listener.most)
	body := s.routes.dialects[0].Fault(nil, fault)
	words := fmt.Appendf(nil, "HTTP/1.1 %d Service Unavailable\r\nDate: %s\r\nContent-Type: application/json\r\n"+
		"Retry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", fault.Status,
		fasthttp.AppendHTTPDate(nil, time.Now()), fault.RetryAfter, len(body), body)
	s.metrics.answered(unknown, fault.Status, 0)
	_ = s.crowded.last(c, words)
}

// short logs the resource that the system lacks for one more connection.
func (s *Server) short(why error) { s.crowded.starved(s.log, s.listener.open(), why) }

// own lists the server's own routes, which belong to no dialect.
func (s *Server) own() []answer.Route {
	const get = fasthttp.MethodGet
	return []answer.Route{
		{Method: get, Path: "/", Public: true, Early: true, Handle: s.welcome},
		{Method: get, Path: page.Prefix, Public: true, Early: true, Handle: s.pageFile},
		{Method: get, Path: "/health", Public: true, Early: true, Help: "whether it can answer", Handle: s.healthy},
		{Method: get, Path: "/v1/health", Name: "/health", Public: true, Early: true, Handle: s.healthy},
		{Method: get, Path: "/metrics", Private: true, Help: "counts for Prometheus", Handle: s.measured},
		{Method: get, Path: "/debug/actors", Private: true, Help: "what happens inside", Handle: s.debugActors},
		{Method: get, Path: "/debug/trace", Private: true, Help: "what happens from now on, for Perfetto", Handle: s.debugTrace},
	}
}

// letIn returns the fault for which whoever sent a request is refused; nil if there is none. Of another member
// of the cluster only its reports are taken, requests of clients that it has let in, and layers to be computed.
func (s *Server) letIn(rc *fasthttp.RequestCtx, to *target, from string) *wire.Fault {
	if from == "" {
		return s.access.browser(rc, &to.Route)
	}
	to.Public = true
	if path := string(rc.Path()); !slices.Contains(between, path) && !slices.Contains(movable, path) {
		return notFound(rc, nil)
	}
	return nil
}

// admit returns the fault for which a request is refused before its handler runs; nil if there is none.
func (s *Server) admit(rc *fasthttp.RequestCtx, to *target) *wire.Fault {
	if !to.Public && !s.access.key(&rc.Request.Header) {
		return s.access.denied(rc)
	}
	method := string(rc.Method())
	head := method == fasthttp.MethodHead && to.Method == fasthttp.MethodGet
	if to.Method != "" && method != to.Method && method != to.Also && !head {
		rc.Response.Header.Set("Allow", to.Method)
		return wire.Refused(fasthttp.StatusMethodNotAllowed, "method_not_allowed", "%s is not possible here: use %s",
			method, to.Method)
	}
	if encoding := rc.Request.Header.ContentEncoding(); len(encoding) > 0 && string(encoding) != "identity" {
		return wire.Refused(fasthttp.StatusUnsupportedMediaType, "unsupported_encoding",
			"the body's Content-Encoding is %.20q: send it as it is", encoding)
	}
	if s.stopping.Load() && to.Method == fasthttp.MethodPost {
		return wire.Stopping()
	}
	return nil
}

func notFound(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	return wire.Refused(fasthttp.StatusNotFound, "not_found", "there is nothing at %.80q: GET / lists what there is", rc.Path())
}
