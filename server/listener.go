package server

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/server/framing"
)

// listener accepts a bounded number of connections: when there is no room, the least useful one goes, or the new
// one is refused. fasthttp accepts from it.
type listener struct {
	net.Listener
	most    int
	who     func(net.Addr) string
	crowded *crowded
	refuse  func(c *net.TCPConn, evicted bool) // tells a connection that there is no room, or the log that one had to go
	short   func(why error)                    // tells the log what the system lacks
	secure  *tls.Config                        // nil: nothing is encrypted

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool          // no more requests are begun
	shut   chan struct{} // closed then
}

// conn is a connection whose bytes have been checked for how requests are framed.
type conn struct {
	*net.TCPConn
	secure   *tls.Conn // around it; nil: nothing is encrypted
	listener *listener
	peer     string // who is at the other end

	mu      sync.Mutex
	check   framing.Checker
	fault   error     // what was wrong with the bytes
	heard   time.Time // when the last byte came
	served  int       // requests that have arrived
	answers int       // being written: never more than one
	partial bool      // some bytes of a next request have come
}

func (l *listener) enter(tcp *net.TCPConn) *conn {
	c := &conn{TCPConn: tcp, listener: l, peer: l.who(tcp.RemoteAddr()), heard: time.Now()}
	if l.secure != nil {
		c.secure = tls.Server(tcp, l.secure) // which shakes hands when the first byte is read
	}
	l.mu.Lock()
	var leaver *conn
	full := len(l.conns) >= l.most
	if full && !l.closed {
		leaver = l.leastUseful()
		delete(l.conns, leaver)
	}
	let := !l.closed && (!full || leaver != nil)
	if let {
		l.conns[c] = struct{}{}
	}
	closed := l.closed
	l.mu.Unlock()
	switch {
	case closed:
		_ = tcp.Close() // nothing was said on it
		return nil
	case leaver != nil:
		l.refuse(leaver.TCPConn, true)
		_ = leaver.TCPConn.Close() // a read that waits for it ends
	case !let:
		l.refuse(tcp, false)
		return nil
	}
	return c
}

// leastUseful is the connection to be closed for a new one: nil, if all are at work. Of the address that has most of
// those that wait, it is the one of which no request has come yet, else the one that was silent for longest.
func (l *listener) leastUseful() *conn {
	idle := map[*conn]usefulness{}
	count := map[string]int{}
	for c := range l.conns {
		if u, ok := c.usefulness(); ok {
			idle[c] = u
			count[c.peer]++
		}
	}
	var least *conn
	for c, u := range idle {
		if least == nil || count[c.peer] > count[least.peer] ||
			count[c.peer] == count[least.peer] && u.below(idle[least]) {
			least = c
		}
	}
	return least
}

// usefulness says what a connection that waits has shown.
type usefulness struct {
	kind  int // 0: nothing, 1: earlier requests, 2: a part of a request
	heard time.Time
}

func (u usefulness) below(v usefulness) bool {
	if u.kind != v.kind {
		return u.kind < v.kind
	}
	return u.heard.Before(v.heard)
}

// usefulness is that of a connection that waits for a request; one that is answered does not.
func (c *conn) usefulness() (u usefulness, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.partial:
		u.kind = 2
	case c.served > 0:
		u.kind = 1
	}
	u.heard = c.heard
	return u, c.answers == 0
}

// close closes connections on which no request has arrived completely, and those that come later: fasthttp takes them
// for busy and would have a shutdown wait for them, but nobody was promised anything there.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		close(l.shut)
	}
	l.closed = true
	for c := range l.conns {
		c.mu.Lock()
		if c.served == 0 {
			_ = c.TCPConn.Close() // no request is lost
		}
		c.mu.Unlock()
	}
}

// open is how many connections there are.
func (l *listener) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Read implements net.Conn. Bytes that are framed in a doubtful way are not handed on.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	fault := c.fault
	c.mu.Unlock()
	if fault != nil {
		return 0, fault
	}
	n, err := c.plain().Read(p)
	if n == 0 {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
	good, fault := c.check.Check(p[:n])
	c.partial = !c.check.Between()
	if fault != nil {
		if c.fault = fault; good == 0 {
			return 0, fault
		}
		return good, nil
	}
	return n, err
}

// plain is where requests are read and answers written.
func (c *conn) plain() net.Conn {
	if c.secure != nil {
		return c.secure
	}
	return c.TCPConn
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) { return c.plain().Write(p) }

// ReadFrom implements io.ReaderFrom: the connection's own would go around what encrypts.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.secure != nil {
		return io.Copy(struct{ io.Writer }{c.secure}, r)
	}
	return c.TCPConn.ReadFrom(r)
}

// Close implements net.Conn. A client that is still sending reads first why it need not.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	c.mu.Lock()
	sending := c.partial || c.fault != nil
	c.mu.Unlock()
	if c.secure != nil {
		_ = c.secure.CloseWrite() // a client that knows that this was all need not wonder
	}
	if sending {
		return c.listener.crowded.linger(c.TCPConn)
	}
	return c.TCPConn.Close()
}

// begin and end say that a request has arrived and that its answer is written.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served++
	c.answers++
}

func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers--
	c.heard = time.Now()
}

// broken is what was wrong with the bytes that came, if something was.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}
