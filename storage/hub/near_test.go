package hub

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReach(t *testing.T) {
	for text, want := range map[string]reach{
		"127.0.0.1": own, "127.9.9.9": own, "::1": own, "0.0.0.0": own, "::": own, "169.254.169.254": own, "fe80::1": own,
		"::ffff:127.0.0.1": own, "10.1.2.3": private, "172.16.0.1": private, "192.168.1.1": private, "100.64.0.1": private,
		"fc00::1": private, "239.0.0.1": private, "8.8.8.8": public, "2606:4700::1": public, "100.128.0.1": public,
	} {
		require.Equal(t, want, reachOf(netip.MustParseAddr(text)), text)
	}
}

// TestRedirectsStayAway: no hub reaches by a redirect what it could not reach itself.
func TestRedirectsStayAway(t *testing.T) {
	for _, c := range []struct {
		hub, to string
		stays   bool
	}{
		{"https://hub.test", "https://files.test", true},
		{"https://hub.test", "https://127.0.0.1:9200/secret", false},
		{"http://hub.test", "http://localhost/secret", false},
		{"http://hub.test", "http://192.168.1.1/", false},
		{"http://hub.test", "http://[::1]/", false},
		{"http://192.168.1.2", "http://192.168.1.1/", true},
		{"http://192.168.1.2", "http://169.254.169.254/", false},
		{"http://127.0.0.1:1", "http://localhost:2/", true},
	} {
		base, _ := url.Parse(c.hub)
		to, _ := url.Parse(c.to)
		err := new(bounds).follow(base, to)
		require.Equal(t, c.stays, err == nil, "%s to %s: %v", c.hub, c.to, err)
	}
}

// TestRedirectToThisMachine: a hub that is elsewhere gets no connection to a service here, under whatever name, and the
// pull does not try again.
func TestRedirectToThisMachine(t *testing.T) {
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, `{"error":"the root password"}`)
	}))
	defer service.Close()
	_, port, _ := net.SplitHostPort(service.Listener.Addr().String())
	for _, name := range []string{"127.0.0.1", "localhost", "LocalHost"} {
		front := httptest.NewServer(http.RedirectHandler("http://"+net.JoinHostPort(name, port)+"/", http.StatusFound))
		base := &url.URL{Scheme: "http", Host: "hub.test", Path: "/"}
		h := &session{Client: &Client{}, base: base, patience: time.Minute}
		transport := h.transport()
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "hub.test:80" {
				return net.Dial(network, front.Listener.Addr().String())
			}
			return h.bounds.dial(ctx, network, address)
		}
		h.http = &http.Client{Transport: transport, CheckRedirect: noRedirect}
		h.wait = func(context.Context, time.Duration) error {
			t.Error("it is tried again")
			return nil
		}
		_, err := h.document(t.Context(), base, "", "application/json")
		require.ErrorContains(t, err, "an address of this machine, where it is not itself", name)
		front.Close()
	}
	require.Zero(t, asked.Load())
	_, err := new(bounds).dial(context.WithValue(t.Context(), directKey{}, false), "tcp", net.JoinHostPort("localhost", port))
	require.ErrorAs(t, err, new(*tooNear))
	conn, err := new(bounds).dial(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	require.NoError(t, err, "a proxy may be here")
	require.NoError(t, conn.Close())

	h := &session{Client: &Client{}, patience: time.Minute} // a hub of this machine may lead on to it
	h.base, _ = url.Parse(service.URL)
	h.http = &http.Client{Transport: h.transport(), CheckRedirect: noRedirect}
	_, err = h.document(t.Context(), h.base, "", "application/json")
	require.NoError(t, err)
	require.Equal(t, own, h.bounds.near)
}

// TestNothingIsPrinted: what a server sends behind its answer is neither read nor shown.
func TestNothingIsPrinted(t *testing.T) {
	var printed bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&printed)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 4096))
			io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"+strings.Repeat("junk", 100))
			time.AfterFunc(time.Second, func() { conn.Close() })
		}
	}()
	_, s, c := fixture(t)
	c.Endpoint = "http://" + listener.Addr().String()
	_, err = c.Pull(t.Context(), s, named(t, "a/b"))
	require.ErrorContains(t, err, "404")
	require.Empty(t, printed.String())
}
