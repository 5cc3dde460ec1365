package server

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// target is where a request goes.
type target struct {
	answer.Route
	dialect *answer.Dialect // whose faults it is told
}

// routes are all paths. They never change.
type routes struct {
	dialects []answer.Dialect // the last one is the server itself
	exact    map[string]target
	below    []target // of paths that end in a slash
}

func newRoutes(dialects []answer.Dialect) *routes {
	r := &routes{dialects: dialects, exact: map[string]target{}}
	for i := range dialects {
		for _, to := range dialects[i].Routes {
			t := target{to, &dialects[i]}
			if t.Name == "" {
				t.Name = t.Path
			}
			switch _, taken := r.exact[t.Path]; {
			case taken:
				panic(fmt.Sprintf("two routes lead from %s", t.Path))
			case len(t.Path) > 1 && strings.HasSuffix(t.Path, "/"):
				r.below = append(r.below, t)
			default:
				r.exact[t.Path] = t
			}
		}
	}
	return r
}

// unknown is the name of paths that lead nowhere.
const unknown = "other"

// find tells where a path leads. One that leads nowhere belongs to the first dialect with such a beginning.
func (r *routes) find(path string) target {
	if t, ok := r.exact[path]; ok {
		return t
	}
	for _, t := range r.below {
		if strings.HasPrefix(path, t.Path) {
			return t
		}
	}
	nowhere := answer.Route{Name: unknown, Public: true, Handle: notFound}
	for i := range r.dialects {
		for _, t := range r.dialects[i].Routes {
			if strings.HasPrefix(path, beginning(t.Path)) {
				return target{nowhere, &r.dialects[i]}
			}
		}
	}
	return target{nowhere, &r.dialects[len(r.dialects)-1]}
}

// beginning is what a path has up to its second slash.
func beginning(path string) string {
	if at := strings.IndexByte(path[1:], '/'); at >= 0 {
		return path[:at+2]
	}
	return path
}

// list is what GET / says there is.
func (r *routes) list() string {
	var text strings.Builder
	for i := range r.dialects {
		for _, t := range r.dialects[i].Routes {
			if t.Help != "" {
				fmt.Fprintf(&text, "%-4s %-22s %s\n", t.Method, t.Path, t.Help)
			}
		}
	}
	return text.String()
}

// refuse answers with a fault.
func (t *target) refuse(rc *fasthttp.RequestCtx, f *wire.Fault) {
	rc.SetStatusCode(f.Status)
	rc.SetContentType("application/json")
	if f.RetryAfter > 0 {
		rc.Response.Header.Set("Retry-After", fmt.Sprint(f.RetryAfter))
	}
	rc.SetBody(t.dialect.Fault(nil, f))
}

// full tells a connection that there is no room for it, in the first dialect's shape and without waiting for what it
// asks; evicted ones go in silence, as idle connections do at any time.
func (s *Server) full(c *net.TCPConn, evicted bool) {
	s.crowded.report(s.log, evicted)
	if evicted {
		return
	}
	fault := wire.Unavailable("overloaded", "%d connections are open already, and all of them are at work: try again later", maxConnections)
	body := s.routes.dialects[0].Fault(nil, fault)
	c.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // the write will fail as well
	fmt.Fprintf(c, "HTTP/1.1 %d Service Unavailable\r\nDate: %s\r\nContent-Type: application/json\r\nRetry-After: %d\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", fault.Status, fasthttp.AppendHTTPDate(nil, time.Now()), fault.RetryAfter,
		len(body), body)
	s.metrics.answered(unknown, fault.Status, 0)
	_ = s.crowded.linger(c)
}

// own are the server's own routes.
func (s *Server) own() []answer.Route {
	const get = fasthttp.MethodGet
	return []answer.Route{
		{Method: get, Path: "/", Public: true, Handle: s.welcome},
		{Method: get, Path: healthPath, Public: true, Help: "whether it can answer", Handle: s.healthy},
		{Method: get, Path: "/metrics", Help: "counts for Prometheus", Handle: s.measured},
		{Method: get, Path: "/debug/actors", Help: "what happens inside", Handle: s.debugActors},
		{Method: get, Path: "/debug/trace", Help: "what happens from now on, for Perfetto", Handle: s.debugTrace},
	}
}

// admit says why a request is not handled, if it is not.
func (s *Server) admit(rc *fasthttp.RequestCtx, to *target) *wire.Fault {
	if fault := s.access.browser(rc); fault != nil {
		return fault
	}
	if !to.Public && !s.access.key(&rc.Request.Header) {
		return s.access.denied(rc)
	}
	method := string(rc.Method())
	head := method == fasthttp.MethodHead && to.Method == fasthttp.MethodGet
	if to.Method != "" && method != to.Method && !head {
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
