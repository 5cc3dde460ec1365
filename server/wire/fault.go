package wire

import (
	"fmt"

	"github.com/valyala/fasthttp"
)

// Fault is the error that a client is told. Its Text says where the error is, what was found and expected, and what
// to do. Dialects distinguish faults by Status and Code.
type Fault struct {
	Status     int
	Code       string // names the fault for programs
	Param      string // the field at fault, if it is one
	Text       string
	RetryAfter int // seconds; 0: trying again will not help
}

// Ours reports whether the server is to blame, not the request.
func (f *Fault) Ours() bool { return f.Status >= fasthttp.StatusInternalServerError }

// Invalid is the fault of a wrong request, with status 400; param is the field, or "".
func Invalid(param, code, format string, args ...any) *Fault {
	f := Refused(fasthttp.StatusBadRequest, code, format, args...)
	f.Param = param
	return f
}

// Refused is the fault of a request that is not served, with a given status.
func Refused(status int, code, format string, args ...any) *Fault {
	return &Fault{Status: status, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Unavailable is a temporary fault of the server, with status 503: a later request may succeed.
func Unavailable(code, format string, args ...any) *Fault {
	f := Refused(fasthttp.StatusServiceUnavailable, code, format, args...)
	f.RetryAfter = 1
	return f
}

// Internal is a fault of the server, with status 500. Its cause is logged under the request's id.
func Internal(id string) *Fault {
	return Refused(fasthttp.StatusInternalServerError, "internal_error",
		"the request failed here for a reason that is in the server's log, request %s", id)
}

// Stopping is the fault of requests that arrive, or are not finished, when the server stops.
func Stopping() *Fault {
	return Unavailable("stopping", "the server is stopping: try again when it is back")
}

// StatusGone is logged for requests whose client did not wait for the answer. It is never sent.
const StatusGone = 499

// Gone is the fault of a request whose client has left.
func Gone() *Fault { return Refused(StatusGone, "", "the client has gone") }
