package llamacpp

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// api answers requests of llama-server's own API.
type api struct{ *answer.Service }

// Dialect is llama-server's own API for the models of a service.
func Dialect(s *answer.Service) answer.Dialect {
	a := &api{s}
	const get, post = fasthttp.MethodGet, fasthttp.MethodPost
	return answer.Dialect{
		Name: "llama-server's API", Fault: appendFault,
		Routes: []answer.Route{
			{Method: post, Path: "/completion", Help: "the continuation of a text", Handle: a.serve(decodeCompletion)},
			{Method: post, Path: "/completions", Handle: a.serve(decodeCompletion)},
			{Method: post, Path: "/infill", Help: "what is missing in a text", Handle: a.serve(decodeInfill)},
			{Method: post, Path: "/tokenize", Help: "the tokens of a text", Handle: a.tokenize},
			{Method: post, Path: "/detokenize", Help: "the text of tokens", Handle: a.detokenize},
			{Method: post, Path: "/apply-template", Help: "the prompt of a conversation", Handle: a.applyTemplate},
			{Method: post, Path: "/embedding", Help: "the vectors of texts", Handle: a.embed},
			{Method: post, Path: "/embeddings", Name: "/embedding", Handle: a.embed},
			{Method: post, Path: "/models/load", Private: true, Help: "a model is loaded", Handle: a.load},
			{Method: post, Path: "/models/unload", Private: true, Help: "a model is unloaded", Handle: a.unload},
			{Method: get, Also: post, Path: "/lora-adapters", Private: true, Help: "the adapters of the model", Handle: a.adapters},
			{Method: get, Path: "/props", Help: "what the server is set to", Handle: a.props},
			{Method: get, Path: "/slots", Private: true, Help: "which answers are computed", Handle: a.slots},
			{Method: post, Path: "/slots/", Private: true, Help: "a slot's text is saved, restored or erased", Handle: a.session},
		},
	}
}

// serve answers requests for generated text.
func (a *api) serve(parse func(answer.Body, decode.Finder) (request, *wire.Fault),
) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
		body, fault := a.Body(rc, x)
		if fault != nil {
			return fault
		}
		o, fault := parse(body, a.finder(x, answer.Write))
		if fault != nil {
			return fault
		}
		return a.Answer(rc, x, &o.Order, newEncoder(&o))
	}
}

// finder finds models for a task, and has them run until the exchange is over.
func (a *api) finder(x *exchange.Exchange, do answer.Task) decode.Finder {
	return func(name string) (*answer.Model, *wire.Fault) { return a.AskedTo(x, do, name) }
}

// appendFault appends {"error": {"code", "message", "type"}}.
func appendFault(dst []byte, f *wire.Fault) []byte {
	dst = strconv.AppendInt(append(dst, `{"error":{"code":`...), int64(f.Status), 10)
	dst = wire.AppendString(append(dst, `,"message":`...), f.Text)
	return append(wire.AppendString(append(dst, `,"type":`...), kind(f)), "}}"...)
}

// kind returns the error type by which clients distinguish faults.
func kind(f *wire.Fault) string {
	switch f.Status {
	case fasthttp.StatusUnauthorized:
		return "authentication_error"
	case fasthttp.StatusForbidden:
		return "permission_error"
	case fasthttp.StatusNotFound:
		return "not_found_error"
	case fasthttp.StatusNotImplemented:
		return "not_supported_error"
	case fasthttp.StatusServiceUnavailable:
		return "unavailable_error"
	}
	switch {
	case f.Ours():
		return "server_error"
	case f.Code == "context_length_exceeded":
		return "exceed_context_size_error"
	}
	return "invalid_request_error"
}
