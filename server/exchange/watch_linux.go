package exchange

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch notices that a client closes its connection while its answer is computed. A goroutine parks in the netpoller
// until the socket has something to read, and peeks: the end of the stream, or an error, means that the client has
// gone. A client that closes only its sending side counts as gone, as in net/http.
type watch struct {
	conn net.Conn
	raw  syscall.RawConn
	gone func()
	quit chan struct{}
	done chan struct{}
}

// pollEvery is the interval of polling once bytes of a next request hide the end of the stream.
const pollEvery = 100 * time.Millisecond

// newWatch calls gone, at most once, when the client goes away before stop. Connections that are no sockets are not
// watched. Until stop nothing else may read from the connection.
func newWatch(conn net.Conn, gone func()) *watch {
	w := &watch{conn: conn, gone: gone, quit: make(chan struct{}), done: make(chan struct{})}
	if c, ok := conn.(syscall.Conn); ok {
		w.raw, _ = c.SyscallConn()
	}
	if w.raw == nil {
		close(w.done)
		return w
	}
	conn.SetReadDeadline(time.Time{}) //nolint:errcheck // else the request's deadline would end the watch
	go w.run()
	return w
}

func (w *watch) run() {
	defer close(w.done)
	state := waiting
	err := w.raw.Read(func(fd uintptr) bool {
		state = peek(int(fd))
		return state != waiting
	})
	switch {
	case w.stopped():
	case err != nil || state == left:
		w.gone()
	default:
		w.poll()
	}
}

type peeked uint8

const (
	waiting peeked = iota // nothing to read
	talking               // bytes of a next request
	left
)

func peek(fd int) peeked {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return waiting
		case err != nil || n == 0:
			return left
		}
		return talking
	}
}

// poll checks from time to time whether the client has closed: unread bytes hide that from peek.
func (w *watch) poll() {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		hung := false
		err := w.raw.Control(func(fd uintptr) {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			n, err := unix.Poll(p, 0)
			hung = err == nil && n > 0
		})
		if err != nil || hung {
			w.gone()
			return
		}
	}
}

func (w *watch) stopped() bool {
	select {
	case <-w.quit:
		return true
	default:
		return false
	}
}

// stop ends the watch and leaves the connection as it was before.
func (w *watch) stop() {
	close(w.quit)
	if w.raw == nil {
		return
	}
	w.conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // if it fails, the read has failed too
	<-w.done
	w.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
}
