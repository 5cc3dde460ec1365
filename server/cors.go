package server

import (
	"slices"

	"github.com/valyala/fasthttp"
)

// anyOrigin stands for all origins.
const anyOrigin = "*"

// shared says whether web pages of an origin may use the server: those that it was told of (CORS, the Fetch standard).
func (a *access) shared(origin string) bool {
	return slices.Contains(a.origins, anyOrigin) || slices.Contains(a.origins, origin)
}

// allow lets the browser hand the answer to a page of that origin.
func allow(rc *fasthttp.RequestCtx, origin string) {
	h := &rc.Response.Header
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
	h.Add("Vary", "Origin")
}

// preflight answers what a browser asks before it sends a page's request, and says whether it was such a question. It
// carries no key.
func (a *access) preflight(rc *fasthttp.RequestCtx) bool {
	q := &rc.Request.Header
	origin := string(q.Peek("Origin"))
	wanted := q.Peek("Access-Control-Request-Method")
	if string(rc.Method()) != fasthttp.MethodOptions || len(wanted) == 0 || !a.shared(origin) {
		return false
	}
	h := &rc.Response.Header
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
	h.SetBytesV("Access-Control-Allow-Headers", q.Peek("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	if string(q.Peek("Access-Control-Request-Private-Network")) == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	rc.SetStatusCode(fasthttp.StatusNoContent)
	return true
}
