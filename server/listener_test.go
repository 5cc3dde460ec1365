package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDoor: the least useful connection goes for a new one: of whoever has most that wait, the one that said nothing,
// then the one that has been silent for longest; never one that is answered.
func TestDoor(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	a1 := &conn{peer: "a", heard: at(3)}
	a2 := &conn{peer: "a", heard: at(1), served: 1}
	a3 := &conn{peer: "a", heard: at(9), partial: true}
	a4 := &conn{peer: "a", heard: at(2)}
	b1 := &conn{peer: "b", heard: at(0)}
	b2 := &conn{peer: "b", heard: at(0), served: 1, answers: 1}
	d := &listener{conns: map[*conn]struct{}{}}
	for _, c := range []*conn{a1, a2, a3, a4, b1, b2} {
		d.conns[c] = struct{}{}
	}
	for _, want := range []*conn{a4, a1, a2} {
		least := d.leastUseful()
		require.Same(t, want, least)
		delete(d.conns, least)
	}
	require.Same(t, b1, d.leastUseful(), "both have one: of this one nothing came")
	delete(d.conns, b1)
	require.Same(t, a3, d.leastUseful())
	delete(d.conns, a3)
	require.Nil(t, d.leastUseful())
}

// TestSilentConnections: those who say nothing keep no connection from others, who are answered at once.
func TestSilentConnections(t *testing.T) {
	r := start(t, Options{Reading: 10 * time.Minute}, nil) // which a new one would have to wait for
	for i := range r.listener.most + 76 {
		c, err := net.Dial("tcp", r.addr)
		require.NoError(t, err)
		defer c.Close()
		if i%2 == 0 {
			io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nContent-Length: 9\r\n")
		}
	}
	began := time.Now()
	status, _ := r.get(t, "/health")
	require.Equal(t, http.StatusOK, status)
	require.Less(t, time.Since(began), patient)
	require.Contains(t, r.log.String(), "there are more connections than there is room for")
	require.LessOrEqual(t, r.listener.open(), r.listener.most)
}

// TestNoRoom: where all connections are at work, a new one reads so in the API's words.
func TestNoRoom(t *testing.T) {
	r := start(t, Options{}, nil)
	require.Eventually(t, func() bool { status, _ := r.get(t, "/health"); return status == 200 }, patient, time.Millisecond)
	r.http.CloseIdleConnections()
	require.Eventually(t, func() bool { return r.listener.open() == 0 }, patient, time.Millisecond)
	r.listener.mu.Lock()
	r.listener.most = 1
	r.listener.mu.Unlock()
	busy := r.dial(t, "/v1/completions", endless(true, ""))
	readEvents(t, busy, 1)
	go readAll(busy)
	for range 3 {
		answer, err := r.http.Post(r.url+"/v1/completions", "", strings.NewReader(fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("a", 9000))))
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		require.Equal(t, "1", answer.Header.Get("Retry-After"))
		require.NotEmpty(t, answer.Header.Get("Date"))
		_, body := read(t, answer)
		require.Contains(t, body, `"type":"server_error"`)
		require.Contains(t, body, `"code":"overloaded"`)
	}
	require.Contains(t, r.log.String(), `"refused":1`)
}

// TestFreshConnections: a shutdown closes connections on which nothing was asked, those that come while it goes on too.
func TestFreshConnections(t *testing.T) {
	r := start(t, Options{}, nil)
	silent, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer silent.Close()
	half, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer half.Close()
	io.WriteString(half, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
	require.Eventually(t, func() bool { return r.listener.open() == 2 }, patient, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	require.NoError(t, r.Shutdown(ctx))
}

// TestShutdownBeforeServe: a server that is stopped before it serves, or while it begins to, does not serve.
func TestShutdownBeforeServe(t *testing.T) {
	engine := startEngine(t, nil)
	for i := range 50 {
		s := New(Engines(engine), Options{})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan error, 1)
		serve := func() { served <- s.Serve(ln) }
		if i > 0 {
			go serve()
		}
		require.NoError(t, s.Shutdown(t.Context()))
		if i == 0 {
			go serve()
		}
		select {
		case err := <-served:
			require.NoError(t, err)
		case <-time.After(patient):
			require.Fail(t, "it serves for ever")
		}
	}
}
