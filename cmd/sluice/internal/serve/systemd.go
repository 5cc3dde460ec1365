package serve

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// The protocols of systemd and similar programs for services: sd_listen_fds(3), sd_notify(3).

// firstFile is the first descriptor of passed sockets.
const firstFile = 3

// inherited returns the socket that this process was started with; nil: there is none.
func inherited(e *env.Env, process, first int) (net.Listener, error) {
	meant, _ := e.Lookup("LISTEN_PID")
	count, _ := e.Lookup("LISTEN_FDS")
	if n, err := strconv.Atoi(meant); err != nil || n != process || count == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if count != "1" {
		return nil, fmt.Errorf("LISTEN_FDS is %s: want one socket, so one ListenStream= in the .socket unit", count)
	}
	f := os.NewFile(uintptr(first), "LISTEN_FDS")
	defer f.Close() // the listener has a copy
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("the socket that was handed over: %w: want ListenStream= in the .socket unit", err)
	}
	if _, ok := ln.(*net.TCPListener); !ok {
		return nil, fmt.Errorf("the socket that was handed over is %s: want one of TCP, such as ListenStream=8080", ln.Addr().Network())
	}
	return ln, nil
}

// notify tells the service manager the state of this process. It does nothing if there is none.
func notify(e *env.Env, state string) {
	path, _ := e.Lookup("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // @ begins an abstract name
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte(state)) //nolint:errcheck // without a reader the message is lost
}
