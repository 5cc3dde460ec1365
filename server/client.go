package server

import (
	"encoding/hex"
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// client names whose share of what is scarce a request takes: a key's, else an address's.
func (a *access) client(rc *fasthttp.RequestCtx) string {
	if digest, ok := a.digest(&rc.Request.Header); ok {
		return "key " + hex.EncodeToString(digest[:8])
	}
	return a.address(rc).String()
}

// address is the client's as shares count it: of IPv6 a network.
func (a *access) address(rc *fasthttp.RequestCtx) netip.Addr { return network(a.from(rc)) }

// from is the address of the client. Proxies that are trusted say whose request they hand on; what stands before the first
// one that is not trusted may be anybody's invention.
func (a *access) from(rc *fasthttp.RequestCtx) netip.Addr {
	at, _ := netip.AddrFromSlice(rc.RemoteIP())
	at = at.Unmap()
	for lines := rc.Request.Header.PeekAll("X-Forwarded-For"); len(lines) > 0 && a.proxy(at); lines = lines[:len(lines)-1] {
		said := strings.Split(string(lines[len(lines)-1]), ",")
		for i := len(said) - 1; i >= 0 && a.proxy(at); i-- {
			next, err := netip.ParseAddr(strings.TrimSpace(said[i]))
			if err != nil {
				return at // it does not know
			}
			at = next.Unmap()
		}
	}
	return at
}

// proxy says that an address may say whose requests it hands on.
func (a *access) proxy(at netip.Addr) bool {
	for _, p := range a.proxies {
		if p.Contains(at) {
			return true
		}
	}
	return false
}

// network is what one client has of addresses: of IPv6 a whole network of 64 bits.
func network(at netip.Addr) netip.Addr {
	if at.Is6() {
		if p, err := at.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return at
}

// peer names who is at the other end of a connection. Behind a proxy each connection is another client's.
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
