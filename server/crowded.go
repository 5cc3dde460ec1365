package server

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// crowded is what happens while there are more connections than there is room for.
type crowded struct {
	mu               sync.Mutex
	since            time.Time // of the last line in the log
	refused, evicted int       // after it
	lingering        int       // refused connections whose clients may still be speaking
}

const (
	reportEvery = time.Second // at most one line of the log in that time
	maxLinger   = 64
	lingerFor   = 500 * time.Millisecond
)

// report counts a connection that was refused, or had to go, and says so in the log from time to time.
func (c *crowded) report(log zerolog.Logger, evicted bool) {
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
	log.Warn().Int("refused", c.refused).Int("idle_closed", c.evicted).Int("most", maxConnections).
		Msg("there are more connections than there is room for")
	c.since, c.refused, c.evicted = time.Now(), 0, 0
}

// linger closes a connection when its client has read what was said: closed while bytes of it are unread, it would be
// reset, and the answer lost. Only some may take their time.
func (c *crowded) linger(conn *net.TCPConn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.CloseWrite() != nil || c.lingering >= maxLinger {
		return conn.Close()
	}
	c.lingering++
	go func() {
		conn.SetReadDeadline(time.Now().Add(lingerFor))    //nolint:errcheck // the read will fail as well
		io.Copy(io.Discard, io.LimitReader(conn, maxBody)) //nolint:errcheck // whatever comes, it ends here
		_ = conn.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lingering--
	}()
	return nil
}
