package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// access decides who may send requests.
type access struct {
	valid    atomic.Pointer[[][sha256.Size]byte] // see keys
	names    []string                            // host names that are served besides localhost and addresses
	proxies  []netip.Prefix                      // addresses of proxies whose X-Forwarded-For is believed
	origins  []string                            // origins of other web pages that may send requests (--cors)
	loopback bool                                // the listener's address is reachable from this machine only
	own      string                              // the address that we listen on, without the port
}

func digests(keys []string) (out [][sha256.Size]byte) {
	for _, k := range keys {
		out = append(out, sha256.Sum256([]byte(k)))
	}
	return out
}

// keys are the digests of the valid keys; none: everybody may send requests.
func (a *access) keys() [][sha256.Size]byte {
	if all := a.valid.Load(); all != nil {
		return *all
	}
	return nil
}

func (a *access) setKeys(keys []string) {
	all := digests(keys)
	a.valid.Store(&all)
}

func (a *access) listening(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		a.loopback, a.own = tcp.IP.IsLoopback(), tcp.IP.String()
	}
}

// key reports whether a request carries a valid key, or needs none.
func (a *access) key(h *fasthttp.RequestHeader) bool {
	_, ok := a.digest(h)
	return ok || len(a.keys()) == 0
}

// digest returns the digest of the request's key, if the key is valid. Two headers can carry a key; a client that
// sends both may have a valid one in either.
func (a *access) digest(h *fasthttp.RequestHeader) ([sha256.Size]byte, bool) {
	scheme, token, _ := strings.Cut(string(h.Peek("Authorization")), " ")
	if strings.EqualFold(scheme, "Bearer") {
		if digest, ok := a.good(token); ok {
			return digest, true
		}
	}
	return a.good(string(h.Peek("X-Api-Key")))
}

// good returns the digest of a key and reports whether the key is one of the server's. Digests of all keys are
// compared in constant time, so the time taken tells nothing about the keys.
func (a *access) good(key string) ([sha256.Size]byte, bool) {
	given := sha256.Sum256([]byte(strings.TrimSpace(key)))
	good := 0
	for _, key := range a.keys() {
		good |= subtle.ConstantTimeCompare(given[:], key[:])
	}
	return given, good == 1
}

func (a *access) denied(rc *fasthttp.RequestCtx) *wire.Fault {
	rc.Response.Header.Set("WWW-Authenticate", `Bearer realm="sluice"`)
	return wire.Refused(fasthttp.StatusUnauthorized, "invalid_api_key",
		`the API key is missing or not one of the server's: send the header "Authorization: Bearer KEY" or "x-api-key: KEY"`)
}

// browser refuses requests that web pages of other origins make. The Host header reveals a page whose host name was
// pointed at this machine (DNS rebinding); it is checked on a loopback address, without keys, or if host names are
// set. Other pages are revealed by Origin, which browsers send with each POST, and by Sec-Fetch-Site, which browsers
// send for what a page merely embeds.
func (a *access) browser(rc *fasthttp.RequestCtx, to *answer.Route) *wire.Fault {
	host := string(rc.Host())
	guarded := a.loopback || len(a.keys()) == 0 || len(a.names) > 0
	if guarded && !a.served(host) {
		return wire.Refused(fasthttp.StatusForbidden, "wrong_host",
			"the Host header is %.80q, which is not served: ask for %s, or start with --host-name", host, a.hosts())
	}
	origin := string(rc.Request.Header.Peek("Origin"))
	switch {
	case origin == "":
		if embedded(&rc.Request.Header) && !to.Public {
			return wire.Refused(fasthttp.StatusForbidden, "wrong_origin",
				"the request comes from a web page of another origin, which embeds it: open it by itself")
		}
		return nil
	case strings.EqualFold(origin, "http://"+host) || strings.EqualFold(origin, "https://"+host): // our own page
		return nil
	case a.page(origin, to.Private):
		allow(rc, origin)
		return nil
	}
	return wire.Refused(fasthttp.StatusForbidden, "wrong_origin", "the request comes from a web page of %.80q: "+
		"start with --cors %.80s to let its pages ask", origin, origin)
}

// embedded reports whether a page of another origin made the request without its visitor's navigation, for instance
// for an image.
func embedded(h *fasthttp.RequestHeader) bool {
	site := string(h.Peek("Sec-Fetch-Site"))
	return (site == "cross-site" || site == "same-site") && string(h.Peek("Sec-Fetch-Mode")) != "navigate"
}

// served reports whether a Host header, with or without a port, names this server. DNS rebinding needs a name: on a
// network listener, where this machine's addresses are not known, any address is accepted.
func (a *access) served(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"), ".")
	if strings.EqualFold(name, "localhost") || name == a.own {
		return true
	}
	if slices.ContainsFunc(a.names, func(n string) bool { return strings.EqualFold(n, name) }) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && (!a.loopback || name == "127.0.0.1" || ip == netip.IPv6Loopback())
}

// hosts lists the names and addresses by which clients may reach the server.
func (a *access) hosts() string {
	all := append([]string{"localhost"}, a.names...)
	if a.loopback {
		return strings.Join(append(all, "127.0.0.1"), ", ")
	}
	return strings.Join(append(all, "the server's address"), ", ")
}
