package wire

import (
	"fmt"

	"github.com/valyala/fasthttp"
)

// Fault is what a client is told instead of an answer. Its Text says where, what was found, what was wanted and what
// to do. Dialects tell kinds of faults by Status and Code.
type Fault struct {
	Status     int
	Code       string // names the fault for programs
	Param      string // the field at fault, if it is one
	Text       string
	RetryAfter int // seconds; 0: trying again will not help
}

// Ours says that the request is not to blame.
func (f *Fault) Ours() bool { return f.Status >= fasthttp.StatusInternalServerError }

// Invalid is the fault of a request; param is the field, or "".
func Invalid(param, code, format string, args ...any) *Fault {
	f := Refused(fasthttp.StatusBadRequest, code, format, args...)
	f.Param = param
	return f
}

// Refused is a request that is not served, with another status than 400.
func Refused(status int, code, format string, args ...any) *Fault {
	return &Fault{Status: status, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Unavailable is our fault, for now.
func Unavailable(code, format string, args ...any) *Fault {
	f := Refused(fasthttp.StatusServiceUnavailable, code, format, args...)
	f.RetryAfter = 1
	return f
}

// Internal is our fault. The log knows more under the request's id.
func Internal(id string) *Fault {
	return Refused(fasthttp.StatusInternalServerError, "internal_error",
		"the request failed here for a reason that is in the server's log, request %s", id)
}

// Stopping is the answer to requests that come, or are not finished, when the server stops.
func Stopping() *Fault {
	return Unavailable("stopping", "the server is stopping: try again when it is back")
}

// StatusGone is logged for requests whose client did not wait for the answer. It is never read by anybody.
const StatusGone = 499

// Gone is the fault of a request whose client has left.
func Gone() *Fault { return Refused(StatusGone, "", "the client has gone") }
