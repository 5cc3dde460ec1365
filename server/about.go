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

// healthy answers 200 while all engines can serve and some model can be loaded, else 503. Only clients with a key are
// told the reason.
func (s *Server) healthy(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	if s.stopping.Load() {
		return wire.Stopping()
	}
	select {
	case <-s.loaded:
	default:
		return wire.Unavailable("loading", "loading: %d %% is there", s.percent.Load())
	}
	stranger := !s.access.key(&rc.Request.Header)
	for name, engine := range engines(s.models) {
		err := engine.Health()
		switch {
		case err == nil:
			continue
		case stranger:
			return wire.Unavailable("engine_failed", "an engine has failed: the log says why")
		}
		which := "the engine"
		if name != "" {
			which = fmt.Sprintf("the engine of %q", name)
		}
		return wire.Unavailable("engine_failed", "%s has failed: %s: see the log, and restart it", which, wire.Told(err))
	}
	switch name, err := s.unloadable(); {
	case err == nil:
	case stranger:
		return wire.Unavailable("model_failed", "no model can be loaded: the log says why")
	default:
		return wire.Unavailable("model_failed", "the model %q cannot be loaded: %s: the next request tries again", name,
			wire.Told(err))
	}
	wire.WriteJSON(rc, map[string]string{"status": "ok"})
	return nil
}

// unloadable returns the first model and why it could not be loaded, if that is so of all models.
func (s *Server) unloadable() (first string, why error) {
	for _, name := range s.models.Names() {
		err := s.models.Status(name).Fault
		if err == nil {
			return "", nil
		}
		if why == nil {
			first, why = name, err
		}
	}
	return first, why
}
