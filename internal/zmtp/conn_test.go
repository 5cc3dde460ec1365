package zmtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scripted is a connection whose peer said all that it will say.
type scripted struct {
	net.Conn // its deadlines
	in       io.Reader
	out      bytes.Buffer
}

func (s *scripted) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *scripted) Write(p []byte) (int, error) { return s.out.Write(p) }

func says(t testing.TB, text string) *scripted {
	a, b := net.Pipe()
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return &scripted{Conn: a, in: strings.NewReader(text)}
}

// Parts of what libzmq 4.3.4 sends.
const (
	greeting = "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	readySub = "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
)

// TestGreeting: a subscriber is greeted, and its subscriptions come as messages, whichever version they are of.
func TestGreeting(t *testing.T) {
	s := says(t, greeting+readySub+"\x00\x03\x01kv"+"\x04\x0c\x09SUBSCRIBEab"+"\x04\x07\x06CANCEL"+
		"\x04\x0a\x04PING\x00\x0axyz"+"\x04\x04\x03NEW"+"\x01\x00"+"\x02\x00\x00\x00\x00\x00\x00\x00\x02ok")
	c, err := Introduce(s, "PUB", "SUB", "XSUB")
	require.NoError(t, err)
	require.Equal(t, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL", s.out.String()[:16])
	require.Equal(t, "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB", s.out.String()[greetingBytes:])
	s.out.Reset()
	for _, want := range [][]string{{"\x01kv"}, {"\x01ab"}, {"\x00"}, {"", "ok"}} {
		got, err := c.Receive()
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i, text := range want {
			require.Equal(t, text, string(got[i]))
		}
	}
	require.Equal(t, "\x04\x08\x04PONGxyz", s.out.String())
	_, err = c.Receive()
	require.ErrorIs(t, err, io.EOF)
	s.out.Reset()
	require.NoError(t, c.Send([]byte("kv"), nil, bytes.Repeat([]byte{7}, 256)))
	require.Equal(t, "\x01\x02kv\x01\x00\x02\x00\x00\x00\x00\x00\x00\x01\x00"+strings.Repeat("\x07", 256), s.out.String())
}

// TestStrangers: whoever speaks otherwise is refused, and nothing is kept for what it announces.
func TestStrangers(t *testing.T) {
	for name, said := range map[string]string{
		"a browser":       "POST / HTTP/1.1\r\nHost: localhost:5557\r\nContent-Type: text/plain\r\n\r\nhello and more",
		"version 2":       strings.Replace(greeting, "\x7f\x03", "\x7f\x02", 1) + readySub,
		"another way":     strings.Replace(greeting, "NULL\x00", "PLAIN", 1) + readySub,
		"no type":         greeting + "\x04\x06\x05READY",
		"no READY":        greeting + "\x00\x02hi",
		"a false length":  greeting + "\x04\x0b\x05READY\x0bSock",
		"a long property": greeting + "\x04\x16\x05READY\x0bSocket-Type\xff\xff\xff\xff",
		"another type":    greeting + strings.Replace(readySub, "\x03SUB", "\x03REP", 1),
		"a huge READY":    greeting + "\x06\xff\xff\xff\xff\xff\xff\xff\xff",
		"unknown flags":   greeting + "\x08\x00",
		"a huge message":  greeting + readySub + "\x02\x00\x00\x00\x01\x00\x00\x00\x00",
		"many frames":     greeting + readySub + strings.Repeat("\x01\x01a", 20),
		"much in frames":  greeting + readySub + strings.Repeat("\x03\x00\x00\x00\x00\x00\x00\x07\xff"+strings.Repeat("a", 0x7ff), 3),
		"a command":       greeting + readySub + "\x01\x01a\x04\x03\x02hi",
		"no command":      greeting + readySub + "\x04\x02\x05a",
		"an empty one":    greeting + readySub + "\x04\x00",
		"a short ping":    greeting + readySub + "\x04\x06\x04PING\x00",
	} {
		c, err := Introduce(says(t, said), "PUB", "SUB", "XSUB")
		if err == nil {
			_, err = c.Receive()
		}
		require.ErrorIs(t, err, ErrProtocol, name)
	}
	s := says(t, greeting+strings.Replace(readySub, "\x03SUB", "\x03REP", 1))
	_, err := Introduce(s, "PUB", "SUB", "XSUB")
	require.EqualError(t, err, `a socket of type "REP" asks for one of type PUB, want one of [SUB XSUB]: `+ErrProtocol.Error())
	require.True(t, strings.HasSuffix(s.out.String(), "\x04\x1a\x05ERROR\x13Invalid socket type"))
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(greeting + readySub + "\x00\x03\x01kv\x04\x07\x06CANCEL"))
	f.Add([]byte(greeting + "\x04\x0b\x05READY\x0bSock"))
	f.Fuzz(func(t *testing.T, said []byte) {
		c, err := Introduce(says(t, string(said)), "PUB", "SUB", "XSUB")
		for err == nil {
			_, err = c.Receive()
		}
		require.True(t, errors.Is(err, ErrProtocol) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
	})
}
