package openai

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
)

// Error is what a client is told. Its Text says where, what was found, what was wanted and what to do.
type Error struct {
	Status     int
	Type, Code string
	Param      string // the field at fault, if it is one
	Text       string
	RetryAfter int // seconds; 0: trying again will not help
}

// Types of errors that OpenAI's clients know.
const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// Invalid is the fault of a request; param is the field, or "".
func Invalid(param, code, format string, args ...any) *Error {
	e := Refused(fasthttp.StatusBadRequest, code, format, args...)
	e.Param = param
	return e
}

// Refused is a request that is not served, with another status than 400.
func Refused(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Type: invalidRequest, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Unavailable is our fault, for now.
func Unavailable(code, format string, args ...any) *Error {
	e := Refused(fasthttp.StatusServiceUnavailable, code, format, args...)
	e.Type, e.RetryAfter = serverError, 1
	return e
}

// Internal is our fault. The log knows more under the request's id.
func Internal(id string) *Error {
	return &Error{
		Status: fasthttp.StatusInternalServerError, Type: serverError, Code: "internal_error",
		Text: "the request failed here for a reason that is in the server's log, request " + id,
	}
}

// Write answers with an error.
func Write(rc *fasthttp.RequestCtx, e *Error) {
	rc.SetStatusCode(e.Status)
	rc.SetContentType("application/json")
	if e.RetryAfter > 0 {
		rc.Response.Header.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	rc.SetBody(e.append(nil))
}

// append writes {"error": {…}}.
func (e *Error) append(dst []byte) []byte {
	dst = appendString(append(dst, `{"error":{"message":`...), e.Text)
	dst = appendString(append(dst, `,"type":`...), e.Type)
	dst = appendOrNull(append(dst, `,"param":`...), e.Param)
	dst = appendOrNull(append(dst, `,"code":`...), e.Code)
	return append(dst, "}}"...)
}

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}

// event is the error as the last event of a stream.
func (e *Error) event() []byte { return append(e.append([]byte("data: ")), "\n\n"...) }

// explain finds what to tell the client about an error of the engine; what it must not see goes to the log.
func (a *API) explain(x *exchange.Exchange, err error) *Error {
	var user *actors.UserError
	switch {
	case errors.As(err, &user):
		code := ""
		if user.TooLong {
			code = "context_length_exceeded"
		}
		return Invalid("", code, "%s", user.Text)
	case errors.Is(err, actors.ErrBusy):
		return Unavailable("overloaded", "%s", actors.ErrBusy.Error())
	case errors.Is(err, actors.ErrClosed), errors.Is(err, exchange.ErrStopping),
		errors.Is(context.Cause(x.Context), exchange.ErrStopping):
		return Stopping()
	case x.Context.Err() != nil: // nobody will read it
		return Refused(exchange.StatusGone, "", "the client has gone")
	}
	x.Log.Error().Err(err).Msg("the engine failed a request")
	if a.Engine.Health() != nil {
		return Unavailable("engine_failed", "the engine has failed and answers nothing any more: GET /health says why")
	}
	return Internal(x.ID)
}

// Stopping is the answer to requests that come, or are not finished, when the server stops.
func Stopping() *Error {
	return Unavailable("stopping", "the server is stopping: try again when it is back")
}
