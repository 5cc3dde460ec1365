package remote

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Both sides of a connection say that they are there, and take the other one for gone that is silent for so long: its
// process hangs, or the network between them does. A lender computes beside that.
const (
	beat    = time.Second
	silence = 5 * time.Second
)

// line is a device's end of a connection. Answers come in the order of what was asked.
type line struct {
	conn net.Conn
	name string // of the lender, for errors

	writing sync.Mutex // held while something is asked, so that answers are expected in the order of the wire
	mu      sync.Mutex
	due     []func(answer []byte, err error)
	dead    error // nothing is asked any more

	over  chan struct{}
	ended sync.WaitGroup
}

// newLine begins to read what comes, until end.
func newLine(conn net.Conn, name string) *line {
	l := &line{conn: conn, name: name, over: make(chan struct{})}
	l.ended.Go(l.read)
	l.ended.Go(func() { beating(l.conn, &l.writing, l.over) })
	return l
}

// beating says from time to time that this side is there, unless it says something else just then.
func beating(conn net.Conn, writing *sync.Mutex, over <-chan struct{}) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	alive := []byte{0, 0, 0, 0, byte(kindAlive)}
	for {
		select {
		case <-tick.C:
		case <-over:
			return
		}
		if writing.TryLock() {
			_, _ = conn.Write(alive) // who reads here notices that it fails
			writing.Unlock()
		}
	}
}

// ask sends a frame. heard is called once, by another goroutine, with the answer, which is valid until heard returns;
// it does not wait for anything of this line.
func (l *line) ask(f []byte, heard func(answer []byte, err error)) error {
	f, err := seal(f)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	if err := l.dead; err != nil {
		l.mu.Unlock()
		return err
	}
	l.due = append(l.due, heard)
	l.mu.Unlock()
	if _, err := l.conn.Write(f); err != nil {
		_ = l.conn.Close() // the reader tells all who wait
	}
	return nil
}

// wait asks, and calls use with the answer.
func (l *line) wait(f []byte, use func(answer []byte) error) error {
	done := make(chan error, 1)
	err := l.ask(f, func(answer []byte, err error) {
		if err == nil {
			err = use(answer)
		}
		done <- err
	})
	if err != nil {
		return err
	}
	return <-done
}

// read hands on answers until the connection breaks, and then tells all who wait.
func (l *line) read() {
	var memory []byte
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(silence))
		var k kind
		var answer []byte
		var err error
		k, answer, memory, err = receive(l.conn, memory)
		if err == nil && k == kindAlive {
			continue
		}
		l.mu.Lock()
		if err == nil && len(l.due) == 0 {
			err = fmt.Errorf("%w: an answer that nobody waits for", errGarbage)
		}
		if err != nil {
			l.dead = fmt.Errorf("%w: %s: %w", backend.ErrLost, l.name, err)
			due := l.due
			l.due, err = nil, l.dead
			l.mu.Unlock()
			_ = l.conn.Close()
			for _, heard := range due {
				heard(nil, err)
			}
			return
		}
		heard := l.due[0]
		l.due = append(l.due[:0], l.due[1:]...)
		l.mu.Unlock()
		heard(answer, nil)
	}
}

// end closes the connection and waits until all who wait were told.
func (l *line) end() {
	_ = l.conn.Close()
	close(l.over)
	l.ended.Wait()
}
