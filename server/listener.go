package server

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/server/framing"
)

// listener accepts a bounded number of connections. If there is no room for a new one, it closes the least useful of
// those that wait for a request; if none waits, it refuses the new one. fasthttp accepts from it.
type listener struct {
	net.Listener
	most    int
	who     func(net.Addr) string
	crowded *crowded
	refuse  func(c *net.TCPConn, evicted bool) // tells a connection that there is no room, or the log that one had to go
	short   func(why error)                    // tells the log what the system lacks
	secure  *tls.Config                        // nil: nothing is encrypted

	stranger func(at net.Addr, err error) // tells the log who failed to shake hands; nil: nobody has to hear of it

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool          // no more connections are accepted
	ended  bool          // nor listened for
	shut   chan struct{} // closed when closed is set
}

// conn is a connection that checks the framing of requests (package framing) before it hands bytes on.
type conn struct {
	*net.TCPConn
	secure   *tls.Conn // TLS over TCPConn; nil: nothing is encrypted
	listener *listener
	peer     string // name of the other end, by which connections are counted

	mu      sync.Mutex
	check   framing.Checker
	fault   error     // fault in the framing of what has arrived; nil: none
	heard   time.Time // when the last byte came
	served  int       // requests that have arrived
	answers int       // being written: never more than one
	partial bool      // some bytes of a next request have come
}

func (l *listener) enter(tcp *net.TCPConn) *conn {
	c := &conn{TCPConn: tcp, listener: l, peer: l.who(tcp.RemoteAddr()), heard: time.Now()}
	if l.secure != nil {
		c.secure = tls.Server(tcp, l.secure) // its handshake happens when the first byte is read
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

// leastUseful returns the connection to be closed for a new one; nil if all are being answered. It takes the peer with
// the most connections that wait for a request, and of its connections the one with the lowest usefulness.
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

// usefulness ranks a connection that waits for a request: by kind, then by how long ago the last byte came.
type usefulness struct {
	kind  int // what has arrived: 0: nothing, 1: earlier requests, 2: a part of the next request
	heard time.Time
}

func (u usefulness) below(v usefulness) bool {
	if u.kind != v.kind {
		return u.kind < v.kind
	}
	return u.heard.Before(v.heard)
}

// usefulness returns the rank of a connection, and whether it waits for a request: one that is being answered does
// not.
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

// close closes the connections on which no request has arrived completely, and has later ones closed at once: fasthttp
// counts them as busy, and a shutdown would wait for them although no answer is due.
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

// on has the listener accept what comes to another one, which it closes if it has ended.
func (l *listener) on(ln net.Listener) *listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Listener = ln; l.ended {
		_ = ln.Close()
	}
	return l
}

// end closes what is listened on, now or later. fasthttp does not close what its Serve has not got yet.
func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended = true; l.Listener != nil {
		_ = l.Listener.Close() // again, as a rule
	}
}

// open returns the number of connections.
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
		if err != nil && c.listener.stranger != nil && !c.secure.ConnectionState().HandshakeComplete {
			c.listener.stranger(c.RemoteAddr(), err)
		}
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

// plain returns the connection through which requests and answers pass unencrypted: TLS's, if it is in use.
func (c *conn) plain() net.Conn {
	if c.secure != nil {
		return c.secure
	}
	return c.TCPConn
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) { return c.plain().Write(p) }

// ReadFrom implements io.ReaderFrom. The method of the embedded TCPConn would bypass encryption.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.secure != nil {
		return io.Copy(struct{ io.Writer }{c.secure}, r)
	}
	return c.TCPConn.ReadFrom(r)
}

// Close implements net.Conn. A client that is still sending is given time to read the answer first (see
// crowded.linger).
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	c.mu.Lock()
	sending := c.partial || c.fault != nil
	c.mu.Unlock()
	if c.secure != nil {
		_ = c.secure.CloseWrite() // it shows the client that nothing was cut off
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

// broken returns what was wrong with the framing of the bytes that have arrived; nil if nothing was.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}
