package hub

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// reach is how near an address is.
type reach int

const (
	public  reach = iota // anywhere
	private              // in a local network
	own                  // of this machine, or of what it runs on
)

func (r reach) String() string {
	return [...]string{"of the internet", "of a local network", "of this machine"}[r]
}

// shared is the address space between customers and their provider (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

func reachOf(at netip.Addr) reach {
	at = at.Unmap()
	switch {
	case at.IsLoopback(), at.IsUnspecified(), at.IsLinkLocalUnicast(): // the last one has a cloud's own services
		return own
	case at.IsPrivate(), at.IsMulticast(), shared.Contains(at):
		return private
	}
	return public
}

// reachOfHost is the reach of a URL's host, if it can be told without asking for its address; else public.
func reachOfHost(u *url.URL) reach {
	if strings.EqualFold(u.Hostname(), "localhost") {
		return own
	}
	if at, err := netip.ParseAddr(u.Hostname()); err == nil {
		return reachOf(at)
	}
	return public
}

// tooNear is the error of a redirect to an address nearer than the hub's: to a service that the hub may not be able
// to reach, but this machine is.
type tooNear struct {
	to    string
	reach reach
}

func (t *tooNear) Error() string {
	return fmt.Sprintf("the hub leads to %s, an address %s, where it is not itself: its answers are not followed there",
		t.to, t.reach)
}

// bounds is how near connections of a pull may lead: as near as the first one to the hub.
type bounds struct {
	mu    sync.Mutex
	known bool
	near  reach
}

// directKey marks the context of a request that no proxy passes on; its value says whether it is to the hub's own
// origin.
type directKey struct{}

// follow fails for a redirect whose address alone shows that it leads too near. Names are checked by dial, unless a
// proxy connects to them.
func (b *bounds) follow(base, to *url.URL) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := reachOfHost(to); r > max(b.near, reachOfHost(base)) {
		return &tooNear{to.Host, r}
	}
	return nil
}

// dial connects to an address. The first connection to the hub says how near later ones may lead.
func (b *bounds) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 30 * time.Second}
	hub, direct := ctx.Value(directKey{}).(bool)
	b.mu.Lock()
	first, near := !b.known && hub, b.near
	b.mu.Unlock()
	if direct && !first {
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return fmt.Errorf("%s: %w", resolved, err)
			}
			if r := reachOf(at.Addr()); r > near {
				return &tooNear{address, r}
			}
			return nil
		}
	}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil && first {
		if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			b.mu.Lock()
			b.known, b.near = true, reachOf(at.AddrPort().Addr())
			b.mu.Unlock()
		}
	}
	return conn, err
}
