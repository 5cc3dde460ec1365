package server

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/openai"
)

// route is where a path leads.
type route struct {
	name   string // in metrics
	method string
	public bool // needs no key
	handle func(*Server, *fasthttp.RequestCtx, *exchange.Exchange)
}

// unknown is the route of paths that lead nowhere.
var unknown = route{name: "other", public: true, handle: (*Server).notFound}

// find tells a request's route by its path.
func find(path []byte) route {
	const get, post = fasthttp.MethodGet, fasthttp.MethodPost
	api := func(name, method string, handle func(*openai.API, *fasthttp.RequestCtx, *exchange.Exchange)) route {
		return route{name, method, false, func(s *Server, rc *fasthttp.RequestCtx, x *exchange.Exchange) {
			handle(s.api, rc, x)
		}}
	}
	switch p := string(path); {
	case p == "/":
		return route{p, get, true, (*Server).welcome}
	case p == "/health":
		return route{p, get, true, (*Server).healthy}
	case p == "/metrics":
		return route{p, get, false, (*Server).measured}
	case p == "/debug/actors":
		return route{p, get, false, (*Server).debugActors}
	case p == "/v1/chat/completions":
		return api(p, post, (*openai.API).Chat)
	case p == "/v1/completions":
		return api(p, post, (*openai.API).Completions)
	case p == "/v1/models":
		return api(p, get, (*openai.API).Models)
	case strings.HasPrefix(p, openai.ModelPath):
		return api("/v1/models/{name}", get, (*openai.API).OneModel)
	}
	return unknown
}

// admit says why a request is not handled, if it is not.
func (s *Server) admit(rc *fasthttp.RequestCtx, target route) *openai.Error {
	if fault := s.access.browser(rc); fault != nil {
		return fault
	}
	if !target.public && !s.access.key(&rc.Request.Header) {
		return s.access.denied(rc)
	}
	method := string(rc.Method())
	if head := method == fasthttp.MethodHead && target.method == fasthttp.MethodGet; target.method != "" &&
		method != target.method && !head {
		rc.Response.Header.Set("Allow", target.method)
		return openai.Refused(fasthttp.StatusMethodNotAllowed, "method_not_allowed", "%s is not possible here: use %s",
			method, target.method)
	}
	if encoding := rc.Request.Header.ContentEncoding(); len(encoding) > 0 && string(encoding) != "identity" {
		return openai.Refused(fasthttp.StatusUnsupportedMediaType, "unsupported_encoding",
			"the body's Content-Encoding is %.20q: send it as it is", encoding)
	}
	if s.stopping.Load() && target.method == fasthttp.MethodPost {
		return openai.Stopping()
	}
	return nil
}

func (s *Server) notFound(rc *fasthttp.RequestCtx, _ *exchange.Exchange) {
	openai.Write(rc, openai.Refused(fasthttp.StatusNotFound, "not_found",
		"there is nothing at %.80q: GET / lists what there is", rc.Path()))
}

func (s *Server) welcome(rc *fasthttp.RequestCtx, _ *exchange.Exchange) {
	rc.SetContentType("text/plain; charset=utf-8")
	rc.SetBodyString("sluice serves the model " + s.api.Model + ` with OpenAI's API.

POST /v1/chat/completions   an answer to a conversation
POST /v1/completions        the continuation of a text
GET  /v1/models             the model
GET  /health                whether it can answer
GET  /metrics               counts for Prometheus
GET  /debug/actors          what happens inside
`)
}

// healthy answers 200 while the engine can serve, else 503 and why not.
func (s *Server) healthy(rc *fasthttp.RequestCtx, _ *exchange.Exchange) {
	switch err := s.engine.Health(); {
	case err != nil:
		openai.Write(rc, openai.Unavailable("engine_failed", "the engine has failed: %v: see the log, and restart it", err))
	case s.stopping.Load():
		openai.Write(rc, openai.Stopping())
	default:
		openai.WriteJSON(rc, map[string]string{"status": "ok"})
	}
}
