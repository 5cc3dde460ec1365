package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/wire"
)

// access says who may ask.
type access struct {
	keys     [][sha256.Size]byte // none: everybody
	loopback bool                // we listen to this machine alone
	address  string              // that we listen on, without the port
}

func digests(keys []string) (out [][sha256.Size]byte) {
	for _, k := range keys {
		out = append(out, sha256.Sum256([]byte(k)))
	}
	return out
}

func (a *access) listening(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		a.loopback, a.address = tcp.IP.IsLoopback(), tcp.IP.String()
	}
}

// key says whether a request has a good key. The time it takes tells nothing about the keys: their digests are
// compared, all of them, in constant time.
func (a *access) key(h *fasthttp.RequestHeader) bool {
	if len(a.keys) == 0 {
		return true
	}
	scheme, token, _ := strings.Cut(string(h.Peek("Authorization")), " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	good := 0
	for i := range a.keys {
		good |= subtle.ConstantTimeCompare(given[:], a.keys[i][:])
	}
	return good == 1 && strings.EqualFold(scheme, "Bearer")
}

func (a *access) denied(rc *fasthttp.RequestCtx) *wire.Fault {
	rc.Response.Header.Set("WWW-Authenticate", `Bearer realm="sluice"`)
	return wire.Refused(fasthttp.StatusUnauthorized, "invalid_api_key",
		`the API key is missing or not one of the server's: send the header "Authorization: Bearer KEY"`)
}

// browser refuses requests that web pages of other origins make. A page whose host name was pointed at this machine
// (DNS rebinding) is betrayed by the Host header; other pages by Origin, which browsers send along with each POST.
func (a *access) browser(rc *fasthttp.RequestCtx) *wire.Fault {
	host := string(rc.Host())
	if a.loopback && !a.local(host) {
		return wire.Refused(fasthttp.StatusForbidden, "wrong_host",
			"the Host header is %.80q, but only this machine is served: ask for localhost or 127.0.0.1, or serve on another address", host)
	}
	origin := string(rc.Request.Header.Peek("Origin"))
	if u, err := url.Parse(origin); origin != "" && (err != nil || u.Host != host) {
		return wire.Refused(fasthttp.StatusForbidden, "wrong_origin",
			"the request comes from a web page of %.80q: pages of other origins are not served", origin)
	}
	return nil
}

// local says that a Host header names this machine, with or without a port.
func (a *access) local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1" || name == a.address
}
