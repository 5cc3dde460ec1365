package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInherited: a socket that was handed over is listened on, if it was meant for this process.
func TestInherited(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	variables := map[string]string{}
	e := testEnv("")
	e.lookup = func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	hand := func() (net.Listener, error) {
		f, err := ln.(*net.TCPListener).File()
		require.NoError(t, err)
		return e.inherited(os.Getpid(), int(f.Fd()))
	}
	got, err := hand()
	require.NoError(t, err)
	require.Nil(t, got)
	variables["LISTEN_FDS"], variables["LISTEN_PID"] = "1", strconv.Itoa(os.Getpid()+1)
	got, err = hand()
	require.NoError(t, err)
	require.Nil(t, got, "it was meant for another")
	variables["LISTEN_PID"] = strconv.Itoa(os.Getpid())
	got, err = hand()
	require.NoError(t, err)
	require.Equal(t, ln.Addr().String(), got.Addr().String())
	require.NoError(t, got.Close())
	variables["LISTEN_FDS"] = "2"
	_, err = hand()
	require.ErrorContains(t, err, "want one socket")
}

// TestNotify: who started the server hears when it is ready, and when it stops.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	heard := func() string {
		b := make([]byte, 1000)
		n, err := conn.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	s := serveWith(t, func(e *env) {
		e.lookup = func(name string) (string, bool) {
			if name == "NOTIFY_SOCKET" {
				return path, true
			}
			return "", false
		}
	}, "--ctx", "256")
	require.Equal(t, "READY=1\nSTATUS="+s.url+" serves Sluice Mini Dense", heard())
	r, err := http.Get(s.url + "/health")
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, http.StatusOK, r.StatusCode)
	s.ctrlC()
	require.Equal(t, "STOPPING=1", heard())
	require.Equal(t, exitDone, <-s.code)
}
