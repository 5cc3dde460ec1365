package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stranger is refused by the header: the body that it announces is not waited for.
func TestStrangersAreRefusedByTheirHeader(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"secret"}, Reading: 10 * time.Minute}, nil)
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{", maxBody-1)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patient)))
	status := make([]byte, len("HTTP/1.1 401"))
	_, err = io.ReadFull(conn, status)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 401", string(status))
}

// A request that arrives while the server stops, on a connection that was open before, begins nothing new.
func TestStoppingBeginsNothing(t *testing.T) {
	r := start(t, Options{}, nil)
	r.stopping.Store(true)
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		answer, err := r.http.Post(r.url+path, "application/json", strings.NewReader(`{}`))
		require.NoError(t, err)
		status, body := read(t, answer)
		require.Equal(t, 503, status)
		require.Contains(t, body, "the server is stopping")
	}
	status, _ := r.get(t, "/v1/models")
	require.Equal(t, 200, status, "what begins nothing is answered")
}
