package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// What a peer may send at most: subscriptions and requests are short.
const (
	mostFrames = 8
	mostBytes  = 4 << 10 // of a message
)

// Patience is how long a peer may take to take a message, or to introduce itself.
const Patience = 30 * time.Second

// Flags of a frame. The other bits are 0.
const (
	more    = 1 << iota // another frame of the message follows
	long                // the size has eight bytes instead of one
	command             // it is no part of a message
)

// The greeting has a fixed size: signature, version, mechanism, role, filler.
const (
	greetingBytes = 64
	atVersion     = 10
	atMechanism   = 12
	atServer      = 32
)

// ErrProtocol is wrapped by errors of peers that do not speak as they should.
var ErrProtocol = errors.New("the peer does not speak ZMTP 3 as a peer of this socket")

// Conn is a connection to a peer. One goroutine may send while another one receives.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex // held while something is sent
	out []byte
}

// Introduce greets the peer of a connection as a socket of a type, and wants its type to be one of those named. When it
// fails, the caller closes the connection.
func Introduce(conn net.Conn, as string, peers ...string) (*Conn, error) {
	c := &Conn{conn: conn, in: bufio.NewReaderSize(conn, 1<<10)}
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		return nil, err
	}
	if err := c.greet(); err != nil {
		return nil, err
	}
	ready := append([]byte("\x05READY"), property("Socket-Type", as)...)
	if as != "PUB" && as != "SUB" {
		ready = append(ready, property("Identity", "")...)
	}
	if err := c.write(command, ready); err != nil {
		return nil, err
	}
	flags, body, err := c.frame(mostBytes)
	if err != nil {
		return nil, err
	}
	kind, err := socketType(flags, body)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(peers, kind) {
		_ = c.write(command, append([]byte("\x05ERROR\x13"), "Invalid socket type"...)) // it is sent away anyhow
		return nil, fmt.Errorf("a socket of type %.20q asks for one of type %s, want one of %v: %w", kind, as, peers, ErrProtocol)
	}
	return c, conn.SetDeadline(time.Time{})
}

// greet exchanges greetings.
func (c *Conn) greet() error {
	var ours, theirs [greetingBytes]byte
	ours[0], ours[9], ours[atVersion] = 0xff, 0x7f, 3
	copy(ours[atMechanism:], "NULL")
	if _, err := c.conn.Write(ours[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(c.in, theirs[:]); err != nil {
		return fmt.Errorf("reading the greeting: %w", err)
	}
	mechanism := string(bytes.TrimRight(theirs[atMechanism:atServer], "\x00"))
	switch {
	case theirs[0] != 0xff || theirs[9]&1 == 0:
		return fmt.Errorf("the greeting begins with % x: %w", theirs[:atVersion], ErrProtocol)
	case theirs[atVersion] < 3:
		return fmt.Errorf("version %d of the protocol, want 3 or newer: %w", theirs[atVersion], ErrProtocol)
	case mechanism != "NULL":
		return fmt.Errorf("mechanism %q, want NULL: %w", mechanism, ErrProtocol)
	}
	return nil
}

// property is one of a command's properties: a name and a value.
func property(name, value string) []byte {
	b := append([]byte{byte(len(name))}, name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

// socketType finds the type of the peer's socket in its READY.
func socketType(flags byte, body []byte) (string, error) {
	rest, ok := bytes.CutPrefix(body, []byte("\x05READY"))
	if flags&command == 0 || !ok {
		return "", fmt.Errorf("the greeting is followed by %.20q, want the command READY: %w", body, ErrProtocol)
	}
	for len(rest) > 0 {
		n := int(rest[0])
		if len(rest) < 1+n+4 {
			break
		}
		name, size := rest[1:1+n], binary.BigEndian.Uint32(rest[1+n:])
		rest = rest[1+n+4:]
		if uint64(size) > uint64(len(rest)) {
			break
		}
		if bytes.EqualFold(name, []byte("Socket-Type")) {
			return string(rest[:size]), nil
		}
		rest = rest[size:]
	}
	return "", fmt.Errorf("READY does not say the type of the socket: %w", ErrProtocol)
}

// Send sends a message. It fails if the peer does not take it in time; then the connection is of no more use.
func (c *Conn) Send(frames ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:0]
	for i, f := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = more
		}
		c.out = appendFrame(c.out, flags, f)
	}
	return c.flush()
}

// write sends one frame.
func (c *Conn) write(flags byte, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = appendFrame(c.out[:0], flags, body)
	return c.flush()
}

func (c *Conn) flush() error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	_, err := c.conn.Write(c.out)
	if cap(c.out) > 1<<20 {
		c.out = nil // one message was large
	}
	return err
}

func appendFrame(to []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		to = binary.BigEndian.AppendUint64(append(to, flags|long), uint64(len(body)))
	} else {
		to = append(to, flags, byte(len(body)))
	}
	return append(to, body...)
}

// Receive returns the next message, of most bytes and frames. Subscriptions come as messages, as older versions of the
// protocol have them, and pings are answered. The frames are the caller's.
func (c *Conn) Receive() (frames [][]byte, err error) {
	left := mostBytes
	for {
		flags, body, err := c.frame(left)
		if err != nil {
			return nil, err
		}
		if flags&command != 0 {
			if flags&more != 0 || len(frames) > 0 {
				return nil, fmt.Errorf("a command within a message: %w", ErrProtocol)
			}
			if told, err := c.obey(body); told != nil || err != nil {
				return told, err
			}
			continue
		}
		left -= len(body)
		if frames = append(frames, body); flags&more == 0 {
			return frames, nil
		}
		if len(frames) == mostFrames {
			return nil, fmt.Errorf("a message of more than %d frames: %w", mostFrames, ErrProtocol)
		}
	}
}

// obey answers a command, or returns the message that it stands for. Unknown ones mean nothing to us.
func (c *Conn) obey(body []byte) ([][]byte, error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return nil, fmt.Errorf("a command without a name: %w", ErrProtocol)
	}
	name, rest := string(body[1:1+body[0]]), body[1+body[0]:]
	switch name {
	case "SUBSCRIBE":
		return [][]byte{append([]byte{1}, rest...)}, nil
	case "CANCEL":
		return [][]byte{append([]byte{0}, rest...)}, nil
	case "PING":
		if len(rest) < 2 {
			return nil, fmt.Errorf("a PING of %d bytes: %w", len(body), ErrProtocol)
		}
		return nil, c.write(command, append([]byte("\x04PONG"), rest[2:]...)) // what follows the time is to come back
	}
	return nil, nil
}

// frame reads a frame of at most so many bytes.
func (c *Conn) frame(most int) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(c.in, head[:2]); err != nil {
		return 0, nil, err
	}
	flags = head[0]
	size := uint64(head[1])
	if flags&long != 0 {
		if _, err = io.ReadFull(c.in, head[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if flags&^(more|long|command) != 0 || size > uint64(most) {
		return 0, nil, fmt.Errorf("a frame with flags %#x and %d bytes, want at most %d: %w", flags, size, most, ErrProtocol)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(c.in, body)
	return flags, body, err
}
