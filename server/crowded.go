package server

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// crowded handles connections beyond the limit: it counts them, reports them in the log from time to time, and closes
// them so that their clients can read why.
type crowded struct {
	mu               sync.Mutex
	since            time.Time // when the log last had a line of connections beyond the limit
	refused, evicted int       // connections since then
	starving         time.Time // when the log last had a line of a resource that the system lacks
	strange          time.Time // when the log last had a line of who is no member of the cluster
	lingering        int       // refused connections whose clients may still be speaking
}

const (
	reportEvery = time.Second // at most one line of the log in that time
	maxLinger   = 64
	lingerFor   = 500 * time.Millisecond
)

// report counts a connection that was refused, or had to go, and says so in the log from time to time.
func (c *crowded) report(log zerolog.Logger, most int, evicted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if evicted {
		c.evicted++
	} else {
		c.refused++
	}
	if time.Since(c.since) < reportEvery {
		return
	}
	log.Warn().Int("refused", c.refused).Int("idle_closed", c.evicted).Int("most", most).
		Msg("there are more connections than there is room for")
	c.since, c.refused, c.evicted = time.Now(), 0, 0
}

// starved says in the log, from time to time, that the system has no room for one more connection than are open.
func (c *crowded) starved(log zerolog.Logger, open int, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.starving) < reportEvery {
		return
	}
	c.starving = time.Now()
	log.Warn().Err(why).Int("open", open).Msg("a connection cannot be accepted yet: a higher limit of open files " +
		"(ulimit -n, LimitNOFILE) would let more in")
}

// stranger says in the log, from time to time, who was refused where members of a cluster are taken.
func (c *crowded) stranger(log zerolog.Logger, at net.Addr, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.strange) < reportEvery {
		return
	}
	c.strange = time.Now()
	log.Warn().Str("from", at.String()).Msg("refused, where members are taken: " + why.Error())
}

// linger closes a connection once its client has read the answer. If it were closed while bytes from the client are
// unread, TCP would reset it, and the answer would be lost. At most maxLinger connections linger at a time, others are
// closed at once.
func (c *crowded) linger(conn *net.TCPConn) error { return c.last(conn, nil) }

// last sends words, a whole answer, and closes the connection as linger does. It waits for the first byte of the
// request, since some clients ignore an answer that comes before.
func (c *crowded) last(conn *net.TCPConn, words []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.SetDeadline(time.Now().Add(lingerFor)) //nolint:errcheck // reads and writes will fail as well
	if c.lingering >= maxLinger {
		conn.Write(words) //nolint:errcheck // it is closed anyway
		return conn.Close()
	}
	c.lingering++
	go func() {
		if words != nil {
			conn.Read(make([]byte, 1))                  //nolint:errcheck // a client that sends nothing gets the answer too
			conn.SetDeadline(time.Now().Add(lingerFor)) //nolint:errcheck // as above
			conn.Write(words)                           //nolint:errcheck // as above
		}
		if conn.CloseWrite() == nil {
			io.Copy(io.Discard, io.LimitReader(conn, maxBody)) //nolint:errcheck // the connection is closed in any case
		}
		_ = conn.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lingering--
	}()
	return nil
}
