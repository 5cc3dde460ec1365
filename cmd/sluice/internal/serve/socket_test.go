package serve

import (
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// TestInherited: a socket that was handed over is listened on, if it was meant for this process.
func TestInherited(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	variables := map[string]string{}
	e := envtest.NewEnv("")
	e.Lookup = func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	hand := func() (net.Listener, error) {
		f, err := ln.(*net.TCPListener).File()
		require.NoError(t, err)
		return inherited(e, os.Getpid(), int(f.Fd()))
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
