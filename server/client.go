package server

import (
	"encoding/hex"
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
)

// client returns the name under which a request's share of places and memory is counted: the client's key, else its
// address.
func (a *access) client(rc *fasthttp.RequestCtx) string {
	if digest, ok := a.digest(&rc.Request.Header); ok {
		return exchange.Keyed + hex.EncodeToString(digest[:8])
	}
	return a.address(rc).String()
}

// address returns the client's address as shares count it: of an IPv6 address, its network.
func (a *access) address(rc *fasthttp.RequestCtx) netip.Addr { return network(a.from(rc)) }

// from returns the client's address. Trusted proxies name the client whose request they forward; entries before the
// first untrusted proxy may be forged.
func (a *access) from(rc *fasthttp.RequestCtx) netip.Addr {
	at, _ := netip.AddrFromSlice(rc.RemoteIP())
	at = at.Unmap()
	for lines := rc.Request.Header.PeekAll("X-Forwarded-For"); len(lines) > 0 && a.proxy(at); lines = lines[:len(lines)-1] {
		said := strings.Split(string(lines[len(lines)-1]), ",")
		for i := len(said) - 1; i >= 0 && a.proxy(at); i-- {
			next, err := netip.ParseAddr(strings.TrimSpace(said[i]))
			if err != nil {
				return at // the proxy does not know its client
			}
			at = next.Unmap()
		}
	}
	return at
}

// proxy reports whether an address is that of a trusted proxy, which may name the client it forwards for.
func (a *access) proxy(at netip.Addr) bool {
	for _, p := range a.proxies {
		if p.Contains(at) {
			return true
		}
	}
	return false
}

// network returns the part of an address that counts as one client: all of an IPv4 address, the upper 64 bits of an
// IPv6 one.
func network(at netip.Addr) netip.Addr {
	if at.Is6() {
		if p, err := at.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return at
}

// peer names the other end of a connection. Behind a proxy each connection counts as another client's.
func (a *access) peer(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String()
	}
	at := tcp.AddrPort().Addr().Unmap()
	if a.proxy(at) {
		return addr.String()
	}
	return network(at).String()
}
