package server

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// fresh are the connections whose first request has not arrived completely. fasthttp takes them for busy, and
// would have a shutdown wait for them until their time is over; but nobody was promised anything there.
type fresh struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// follow is fasthttp's hook for the states of connections.
func (f *fresh) follow(c net.Conn, state fasthttp.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state == fasthttp.StateNew && f.closed:
		_ = c.Close() // nothing was said on it
	case state == fasthttp.StateNew:
		if f.conns == nil {
			f.conns = make(map[net.Conn]struct{})
		}
		f.conns[c] = struct{}{}
	case state == fasthttp.StateClosed:
		delete(f.conns, c)
	}
}

// arrived takes a connection out: there is a request.
func (f *fresh) arrived(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// close closes all that are fresh, and those that come later.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close() // no request is lost
	}
	clear(f.conns)
}
