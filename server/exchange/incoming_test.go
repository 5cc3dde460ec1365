package exchange

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines is a connection that only notes until when it may be read and written.
type deadlines struct {
	net.Conn
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = t
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = t
	return nil
}

// TestNothingComesAfterTheEnd: who reads a body beyond its end gives the connection no deadline. It is watched by then,
// for as long as the answer takes.
func TestNothingComesAfterTheEnd(t *testing.T) {
	d := &deadlines{}
	in := &incoming{x: &Exchange{conn: d, complete: true}, patience: time.Second}
	_, err := in.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, d.read)
}

// TestBrokenOffForGood: an answer that was broken off gets no more time to be written.
func TestBrokenOffForGood(t *testing.T) {
	d := &deadlines{}
	x := &Exchange{conn: d}
	x.allow(time.Hour)
	require.True(t, d.write.After(time.Now()))
	x.breakOff()
	x.allow(time.Hour)
	require.True(t, d.write.Before(time.Now()))
}
