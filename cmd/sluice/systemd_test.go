package main

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// TestNotify: who started the server hears when it is ready, and when it stops.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patient)))
	heard := func() string {
		b := make([]byte, 1000)
		n, err := conn.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	s := launchWith(t, func(e *env.Env) {
		e.Lookup = func(name string) (string, bool) {
			if name == "NOTIFY_SOCKET" {
				return path, true
			}
			return "", false
		}
	}, "--ctx", "256")
	require.Equal(t, "READY=1\nSTATUS="+s.url+" serves Sluice-Mini-Dense", heard())
	r, err := http.Get(s.url + "/health")
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, http.StatusOK, r.StatusCode)
	s.ctrlC()
	require.Equal(t, "STOPPING=1", heard())
	require.Equal(t, exitDone, <-s.code)
}
