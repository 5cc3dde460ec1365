package server

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// anyOrigin is the value of --cors that admits all origins.
const anyOrigin = "*"

// ParseOrigin checks an origin of web pages as browsers write it: scheme://host, with a port if it is not the scheme's.
// The port may be *, for any.
func ParseOrigin(text string) (origin string, ok bool) {
	scheme, host, found := strings.Cut(strings.ToLower(text), "://")
	if !found || host == "" || strings.ContainsAny(host, "/?#@\\ ") {
		return "", false
	}
	u, err := url.Parse(scheme + "://" + strings.TrimSuffix(host, ":*"))
	return scheme + "://" + host, err == nil && u.Scheme == scheme && u.Hostname() != ""
}

// shared reports whether --cors lets web pages of an origin use the server (CORS, see the Fetch standard).
func (a *access) shared(origin string) bool {
	if slices.Contains(a.origins, anyOrigin) || slices.Contains(a.origins, origin) {
		return true
	}
	at := strings.LastIndexByte(origin, ':')
	return slices.Contains(a.origins, origin+":*") || at > 0 && slices.Contains(a.origins, origin[:at]+":*")
}

// local reports whether a page comes from a server on this machine, and this server listens to this machine alone: a
// program on the machine could send requests without a browser.
func (a *access) local(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || !a.loopback || u.Scheme != "http" && u.Scheme != "https" || origin != u.Scheme+"://"+u.Host {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// page reports whether a page of another origin may use a route. Without a key, only pages of origins that --cors
// admits may use private routes.
func (a *access) page(origin string, private bool) bool {
	return a.shared(origin) || a.local(origin) && (!private || len(a.keys()) > 0)
}

// allow sets the header that lets the browser hand the answer to a page of that origin.
func allow(rc *fasthttp.RequestCtx, origin string) {
	h := &rc.Response.Header
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
	h.Add("Vary", "Origin")
}

// preflight answers a browser's CORS preflight request, which carries no key, and reports whether the request was
// one.
func (a *access) preflight(rc *fasthttp.RequestCtx, private bool) bool {
	q := &rc.Request.Header
	origin := string(q.Peek("Origin"))
	wanted := q.Peek("Access-Control-Request-Method")
	if string(rc.Method()) != fasthttp.MethodOptions || len(wanted) == 0 || !a.page(origin, private) {
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
