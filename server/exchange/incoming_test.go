package exchange

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// deadlines is a connection that only notes until when it may be read.
type deadlines struct {
	net.Conn
	read time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = t
	return nil
}

// TestArrivesAtTheEnd: a body that was read to its end, and not before, is a request that has arrived, whose client is
// watched from then on.
func TestArrivesAtTheEnd(t *testing.T) {
	arrived := make(chan int, 1)
	addr, statuses := serve(t, func(_ *fasthttp.RequestCtx, x *Exchange) {
		x.complete = false
		read := 0
		x.Hold(func() { arrived <- read }, func() {})
		in := &incoming{x: x, from: iotest.OneByteReader(strings.NewReader("ab")), patience: time.Second}
		for b := make([]byte, 1); ; read++ {
			if _, err := in.Read(b); err != nil {
				break
			}
		}
		<-x.Context.Done()
	})
	conn := dial(t, addr)
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	require.Equal(t, 2, <-arrived)
	conn.Close()
	require.Equal(t, StatusGone, <-statuses)
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

// TestTrickles: a byte from time to time gives a body no more time, and many bytes do.
func TestTrickles(t *testing.T) {
	d := &deadlines{}
	in := &incoming{x: &Exchange{conn: d, Context: t.Context()}, patience: time.Hour, from: iotest.OneByteReader(zeros{})}
	read := func() time.Time {
		_, err := in.Read(make([]byte, 1))
		require.NoError(t, err)
		return d.read
	}
	first := read()
	require.WithinRange(t, first, time.Now(), time.Now().Add(time.Hour))
	for range 1000 {
		require.Equal(t, first, read())
	}
	in.from = zeros{}
	_, err := io.ReadFull(in, make([]byte, leastIncoming))
	require.NoError(t, err)
	require.True(t, read().After(first))
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
