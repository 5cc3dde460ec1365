package server

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// watched is a connection that says whether it was closed.
type watched struct {
	net.Conn
	closed bool
}

func (w *watched) Close() error {
	w.closed = true
	return nil
}

// TestFresh: a shutdown closes connections on which nothing was asked, those that come while it goes on too, and no
// others.
func TestFresh(t *testing.T) {
	var f fresh
	idle, asking, gone, late := &watched{}, &watched{}, &watched{}, &watched{}
	for _, c := range []*watched{idle, asking, gone} {
		f.follow(c, fasthttp.StateNew)
		f.follow(c, fasthttp.StateActive)
	}
	f.arrived(asking)
	f.follow(gone, fasthttp.StateClosed)
	f.close()
	require.True(t, idle.closed)
	require.False(t, asking.closed, "its request is answered first")
	require.False(t, gone.closed)
	f.follow(late, fasthttp.StateNew)
	require.True(t, late.closed, "it came after the shutdown began")
	f.follow(asking, fasthttp.StateIdle)
	require.False(t, asking.closed)
}
