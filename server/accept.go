package server

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"time"
)

// Accept waits for the next connection that there is room for. If the system lacks a resource for the moment, such as
// a descriptor, Accept tries again later: an error would end the server, and with it all open answers.
func (l *listener) Accept() (net.Conn, error) {
	pause := shortPause
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			if !passing(err) {
				return nil, err
			}
			if l.makeRoom(err) {
				pause = shortPause // until the descriptor is free
			}
			l.rest(pause)
			pause = min(2*pause, longPause)
			continue
		}
		pause = shortPause
		tcp, ok := accepted.(*net.TCPConn)
		if !ok {
			_ = accepted.Close() // nothing else is listened for
			continue
		}
		if c := l.enter(tcp); c != nil {
			return c, nil
		}
	}
}

// Pauses before the next attempt to accept, as in net/http.
const (
	shortPause = 5 * time.Millisecond
	longPause  = time.Second
)

// passing reports whether a later attempt to accept may succeed.
func passing(err error) bool {
	lacks := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	return slices.ContainsFunc(lacks, func(lack error) bool { return errors.Is(err, lack) })
}

// makeRoom closes the least useful of the connections that wait, if the system has no room for one more. It reports
// whether it has closed one.
func (l *listener) makeRoom(why error) bool {
	if errors.Is(why, syscall.ECONNABORTED) {
		return false // the client has gone: the system lacks nothing
	}
	l.mu.Lock()
	leaver := l.leastUseful()
	delete(l.conns, leaver)
	l.mu.Unlock()
	l.short(why)
	if leaver == nil {
		return false
	}
	l.refuse(leaver.TCPConn, true)
	_ = leaver.TCPConn.Close() // a read that waits for it ends
	return true
}

// rest waits, but not beyond the end of the server.
func (l *listener) rest(pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-l.shut:
	}
}

// spared is the number of file descriptors that are kept for other uses than connections in service: model files, the
// log, refused connections.
const spared = 64

// connections returns how many connections may be open at a time, given the number of descriptors that the process may
// have.
func connections(descriptors uint64) int {
	return int(min(maxConnections, descriptors-min(spared, descriptors/2)))
}
