package fetch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func anywhere(netip.Addr) bool { return true }

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "::ffff:93.184.216.34": true, "8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false,
		"fe80::1": false, "fd00::1": false, "ff02::1": false, "fec0::1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
		"2001:0:7f00:1::": false, "::127.0.0.1": false, "fe80::1%eth0": false, "192.0.2.1": false, "203.0.113.9": false,
	} {
		require.Equal(t, want, public(netip.MustParseAddr(address)), address)
	}
}

// TestNothingPrivateIsAsked: by whatever name, and at whatever redirect, no request reaches this machine.
func TestNothingPrivateIsAsked(t *testing.T) {
	var asked atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Write([]byte("secret"))
	}))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433"} {
		_, err := New().Get(context.Background(), "http://"+host+port+"/secret")
		require.Error(t, err, host)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "127.0.0.1")
	}
	require.Zero(t, asked.Load())

	// The first address may be connected to, the one that it leads to may not.
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer outside.Close()
	n := 0
	f := fetcher(func(netip.Addr) bool { n++; return n == 1 }, mostWait)
	_, err := f.Get(context.Background(), outside.URL)
	require.Equal(t, errPrivate, err)
	require.Zero(t, asked.Load())
}

func TestGet(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	var referer atomic.Value
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		referer.Store(q.Header.Get("Referer") + q.Header.Get("Cookie") + q.Header.Get("Authorization"))
		path := strings.TrimPrefix(q.URL.Path, "/")
		switch n, err := strconv.Atoi(path); {
		case err == nil && n > 0:
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, q, "/"+strconv.Itoa(n-1), http.StatusFound)
		case path == "large":
			w.Write(make([]byte, Most+1))
		case path == "said":
			w.Header().Set("Content-Length", strconv.Itoa(Most+1))
		case path == "missing":
			http.Error(w, "secret", http.StatusNotFound)
		case path == "file":
			http.Redirect(w, q, "file:///etc/passwd", http.StatusFound)
		case path == "named":
			http.Redirect(w, q, strings.Replace(s.URL, "://", "://me:secret@", 1), http.StatusFound)
		case path == "slow":
			<-q.Context().Done()
		default:
			w.Write([]byte("pic"))
		}
	}))
	defer s.Close()
	f, hasty := fetcher(anywhere, time.Minute), fetcher(anywhere, 50*time.Millisecond)
	for _, c := range []struct{ path, got, want string }{
		{s.URL + "/0", "pic", ""}, {s.URL + "/3", "pic", ""},
		{s.URL + "/4", "", "the picture's address leads on more than 3 times"},
		{s.URL + "/large", "", "the picture has more than 16 MB"}, {s.URL + "/said", "", "the picture has more than 16 MB"},
		{s.URL + "/missing", "", "the picture could not be fetched: the answer has status 404"},
		{s.URL + "/file", "", "the picture's address cannot be used"}, {s.URL + "/named", "", "the picture's address cannot be used"},
		{s.URL + "/slow", "", "the picture did not arrive in time"},
		{"http://127.0.0.1:1/", "", "the picture could not be fetched"},
		{strings.Replace(s.URL, "://", "://me:secret@", 1), "", "the picture's address cannot be used"},
		{"ftp://a/", "", "the picture's address cannot be used"}, {"http://%zz", "", "the picture's address cannot be used"},
	} {
		from := f
		if strings.HasSuffix(c.path, "/slow") {
			from = hasty
		}
		data, err := from.Get(context.Background(), c.path)
		require.Equal(t, c.got, string(data), c.path)
		if c.want == "" {
			require.NoError(t, err)
			require.Empty(t, referer.Load())
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := f.Get(ctx, s.URL)
	require.ErrorContains(t, err, "the picture could not be fetched")
}
