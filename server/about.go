package server

import (
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/page"
	"github.com/sluice-ai/sluice/server/wire"
)

// later holds the models once Loaded has set them. Requests that need models wait until then.
type later struct{ answer.Models }

// welcome answers browsers with the page and programs with a list of the models, once these are loaded. A request
// without a key is told no names.
func (s *Server) welcome(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if page.Wanted(&rc.Request.Header) {
		return s.pageFile(rc, x)
	}
	if fault := x.Await(s.loaded); fault != nil {
		return fault
	}
	rc.Response.Header.Add("Vary", "Accept")
	rc.SetContentType("text/plain; charset=utf-8")
	if !s.access.key(&rc.Request.Header) {
		rc.SetBodyString("sluice serves those who have a key.\n")
		return nil
	}
	names, apis := s.models.Names(), []string{}
	for _, d := range s.routes.dialects[:len(s.routes.dialects)-1] {
		apis = append(apis, d.Name)
	}
	what := "the model "
	if len(names) > 1 {
		what = "the models "
	}
	rc.SetBodyString("sluice serves " + what + strings.Join(names, ", ") + " with " + strings.Join(apis, ", ") + ".\n\n" +
		s.routes.list())
	return nil
}

// pageFile answers with the page, or with one of its files.
func (s *Server) pageFile(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if !s.page.Serve(rc) {
		return notFound(rc, x)
	}
	return nil
}

// healthy answers 200 while all engines can serve, else 503. Only clients with a key are told the reason.
func (s *Server) healthy(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	if s.stopping.Load() {
		return wire.Stopping()
	}
	select {
	case <-s.loaded:
	default:
		return wire.Unavailable("loading", "loading: %d %% is there", s.percent.Load())
	}
	for name, engine := range engines(s.models) {
		err := engine.Health()
		switch {
		case err == nil:
			continue
		case !s.access.key(&rc.Request.Header):
			return wire.Unavailable("engine_failed", "an engine has failed: the log says why")
		}
		which := "the engine"
		if name != "" {
			which = fmt.Sprintf("the engine of %q", name)
		}
		return wire.Unavailable("engine_failed", "%s has failed: %v: see the log, and restart it", which, err)
	}
	wire.WriteJSON(rc, map[string]string{"status": "ok"})
	return nil
}
