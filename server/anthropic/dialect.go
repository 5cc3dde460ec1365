package anthropic

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// api answers requests of Anthropic's API.
type api struct {
	*answer.Service
	created string // created_at of every model, in RFC 3339: the server's start
}

// Dialect is Anthropic's API for the models of a service.
func Dialect(s *answer.Service) answer.Dialect {
	a := &api{s, time.Now().UTC().Format(time.RFC3339)}
	const get, post = fasthttp.MethodGet, fasthttp.MethodPost
	return answer.Dialect{
		Name: "Anthropic's API", Header: "anthropic-version", Fault: appendFault,
		Routes: []answer.Route{
			{Method: post, Path: "/v1/messages", Help: "an answer to a conversation", Handle: a.message},
			{Method: post, Path: "/v1/messages/count_tokens", Help: "how many tokens a conversation has", Handle: a.count},
			{Method: get, Path: answer.ModelsPath, Handle: a.list}, // listed by OpenAI's dialect
			{Method: get, Path: answer.ModelsPath + "/", Name: "/v1/models/{name}", Handle: answer.Described(s, a.object)},
		},
	}
}

// message serves POST /v1/messages.
func (a *api) message(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	o, fault := a.read(rc, x, true)
	if fault != nil {
		return fault
	}
	return a.Answer(rc, x, &o.Order, newEncoder(&o, "msg_"+x.ID))
}

// count serves POST /v1/messages/count_tokens.
func (a *api) count(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	o, fault := a.read(rc, x, false)
	if fault != nil {
		return fault
	}
	tokens, fault := a.Count(x, &o.Order)
	if fault != nil {
		return fault
	}
	rc.SetContentType("application/json")
	rc.SetBody(append(strconv.AppendInt([]byte(`{"input_tokens":`), int64(tokens), 10), '}'))
	return nil
}

// read receives and decodes a request. It sets the header in which clients look for the request's id.
func (a *api) read(rc *fasthttp.RequestCtx, x *exchange.Exchange, answered bool) (request, *wire.Fault) {
	rc.Response.Header.Set("Request-Id", x.ID)
	body, fault := a.Body(rc, x)
	if fault != nil {
		return request{}, fault
	}
	asked := func(name string) (*answer.Model, *wire.Fault) { return a.Asked(x, name) }
	return parse(body, asked, answered)
}

// appendFault appends {"type": "error", "error": {…}}, with details for clients that act upon them.
func appendFault(dst []byte, f *wire.Fault) []byte {
	dst = wire.AppendString(append(dst, `{"type":"error","error":{"type":`...), kind(f))
	dst = wire.AppendString(append(dst, `,"message":`...), f.Text)
	if f.Code == unthreaded {
		dst = append(wire.AppendString(append(dst, `,"details":{"error_code":`...), f.Code), '}')
	}
	return append(dst, "}}"...)
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
	case fasthttp.StatusRequestEntityTooLarge:
		return "request_too_large"
	case fasthttp.StatusTooManyRequests:
		return "rate_limit_error"
	case fasthttp.StatusServiceUnavailable:
		if f.Code != "engine_failed" { // a failed engine stays so: clients need not try again
			return "overloaded_error"
		}
	}
	if f.Ours() {
		return "api_error"
	}
	return "invalid_request_error"
}
