package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
)

// few has two answers computed at a time: four places for a client that is alone, and 24 in all.
func few(c *actors.Config) { c.Sequences = 2 }

// one has one: three places for a client that is alone, two where there are others, and 18 in all.
func one(c *actors.Config) { c.Sequences = 1 }

// fill has as many clients as it takes ask for more answers than there are places, when only one is computed.
func (r *running) fill(t *testing.T, body string) (all []*net.TCPConn) {
	for i := range 9 {
		all = append(all, r.by(t, fmt.Sprintf("198.51.100.%d", i), body))
	}
	return all
}

// by is a request whose client a trusted proxy names.
func (r *running) by(t *testing.T, address, body string) *net.TCPConn {
	t.Helper()
	return r.byTo(t, "/v1/completions", address, body)
}

// byTo is by for another path.
func (r *running) byTo(t *testing.T, path, address, body string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, address, len(body), body)
	require.NoError(t, err)
	return conn.(*net.TCPConn)
}

// behindProxy has a proxy say whose a request is, and so much patience with an answer that nobody reads, and with a
// request that waits for memory, that no test takes its end for something else.
var behindProxy = Options{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Patience: 10 * time.Minute,
	Queueing: 10 * time.Minute}

// waiting waits until so many answers wait for a place.
func (r *running) waiting(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, metrics := r.get(t, "/metrics")
		return strings.Contains(metrics, fmt.Sprintf("sluice_answers_waiting %d\n", n))
	}, patient, 10*time.Millisecond, "want %d answers that wait", n)
}

// TestQueueIsNoSession: who waits for a place is none of the engine's sessions, and leaves nothing behind when it goes.
func TestQueueIsNoSession(t *testing.T) {
	r := start(t, Options{}, few)
	one := r.dial(t, "/v1/completions", endless(true, `,"n":128`))
	go readAll(one)
	r.open(t, 4)
	two := r.dial(t, "/v1/completions", endless(false, `,"n":100`))
	r.waiting(t, 124+100)
	r.open(t, 4)
	require.NoError(t, two.Close())
	require.NoError(t, one.Close())
	r.open(t, 0)
}

// TestPlacesAreGivenUp: a key that takes all places with one request whose answers do not end keeps no other key
// waiting.
func TestPlacesAreGivenUp(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"hog", "stranger"}, Patience: 10 * time.Minute}, func(c *actors.Config) {
		few(c)
		c.Context = 16384
	})
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	post := func(key, body string) *http.Request {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/completions", strings.NewReader(body))
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+key)
		return q
	}
	hog, err := r.http.Do(post("hog", endless(true, `,"n":128,"max_tokens":16000`)))
	require.NoError(t, err)
	defer hog.Body.Close()
	go io.Copy(io.Discard, hog.Body)
	r.open(t, 4)
	for range 5 {
		answer, err := r.http.Do(post("stranger", `{"prompt":"one two","ignore_eos":true,"max_tokens":20}`))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
		now := r.engine.Snapshot()
		require.GreaterOrEqual(t, now.Running+now.Waiting, int64(4), "the other key's answers go on")
	}
}

// TestShares: who has least is next: clients that fill all places and most of the queue, which has room for 1,024
// answers, do not keep another one waiting for more than one answer.
func TestShares(t *testing.T) {
	r := start(t, behindProxy, one)
	for _, conn := range r.fill(t, `{"prompt":"one two","ignore_eos":true,"max_tokens":300,"n":100}`) {
		go readAll(conn)
	}
	r.open(t, 18)
	from := r.engine.Snapshot().Requests
	conn := r.by(t, "192.0.2.2", `{"prompt":"one two","max_tokens":4}`)
	answer, err := http.ReadResponse(reader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Less(t, r.engine.Snapshot().Requests-from, uint64(12), "requests of the other client that were opened before it")
}

// TestUnreadAnswer: answers that nobody reads give their places up when others wait, and not before.
func TestUnreadAnswer(t *testing.T) {
	r := start(t, behindProxy, one)
	for _, conn := range r.fill(t, endless(true, `,"logprobs":20,"n":2`)) {
		require.NoError(t, conn.SetReadBuffer(4096))
	}
	r.open(t, 18)
	generated := uint64(0)
	require.Eventually(t, func() bool { // both are full when no more is generated
		before := generated
		generated = r.engine.Snapshot().Generated
		return generated > 0 && generated == before
	}, patient, 500*time.Millisecond)
	r.open(t, 18)
	r.getsAPlace(t, "it waited for our patience with the others")
}

// getsAPlace requires that another client is answered soon, since somebody's answer is given up.
func (r *running) getsAPlace(t *testing.T, why string) {
	t.Helper()
	began := time.Now()
	conn := r.by(t, "192.0.2.2", `{"prompt":"one two","max_tokens":4}`)
	answer, err := http.ReadResponse(reader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	t.Logf("after %v", time.Since(began))
	require.Less(t, time.Since(began), patient, why)
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "an answer gave its place up") },
		patient, time.Millisecond)
}

// TestFullQueue: when too many wait, the client that has most of them is refused, and no other.
func TestFullQueue(t *testing.T) {
	r := start(t, behindProxy, func(c *actors.Config) { few(c); c.Context = 16384 }) // none ends meanwhile
	go readAll(r.by(t, "192.0.2.1", endless(true, `,"n":4`)))
	r.open(t, 4)
	refused := make(chan string, 100)
	for range 8 {
		conn := r.by(t, "192.0.2.1", endless(false, `,"n":128`))
		go func() {
			b := make([]byte, 1024)
			n, _ := conn.Read(b)
			refused <- string(b[:n])
		}()
	}
	r.waiting(t, 8*128)
	require.Empty(t, refused)
	other := r.by(t, "192.0.2.2", endless(false, `,"n":5`)) // three have places, two wait
	select {
	case answer := <-refused:
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 503 "), answer)
		require.Contains(t, answer, "Retry-After: 1")
		require.Contains(t, answer, "try again later")
	case <-time.After(patient):
		t.Fatal("nobody was refused")
	}
	require.NoError(t, other.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	n, err := other.Read(make([]byte, 10))
	require.Error(t, err, "%d bytes", n)
}

// TestClient: a share is a key's, else an address's; trusted proxies say whose, others do not.
func TestClient(t *testing.T) {
	a := access{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	a.setKeys([]string{"one", "two"})
	client := func(remote, forwarded, key string) string {
		rc := &fasthttp.RequestCtx{}
		rc.SetRemoteAddr(&net.TCPAddr{IP: net.ParseIP(remote), Port: 5})
		for _, line := range strings.Split(forwarded, "|") {
			rc.Request.Header.Add("X-Forwarded-For", line)
		}
		rc.Request.Header.Set("Authorization", "Bearer "+key)
		return a.client(rc)
	}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"192.0.2.1", "", "192.0.2.1"}, {"192.0.2.1", "198.51.100.1", "192.0.2.1"}, {"10.0.0.1", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"}, {"10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1", "198.51.100.1|10.0.0.2", "198.51.100.1"}, {"10.0.0.1", "rubbish", "10.0.0.1"}, {"10.0.0.1", "", "10.0.0.1"},
		{"10.0.0.1", "198.51.100.1, rubbish", "10.0.0.1"}, {"fd00::1", "2001:db8:1:2:3::4", "2001:db8:1:2::"},
		{"2001:db8:1:2:9::9", "", "2001:db8:1:2::"}, {"::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"},
	} {
		require.Equal(t, c.want, client(c.remote, c.forwarded, "none"), "%v", c)
	}
	require.Equal(t, client("192.0.2.1", "", "one"), client("192.0.2.2", "", "one"))
	require.NotEqual(t, client("192.0.2.1", "", "one"), client("192.0.2.1", "", "two"))
	require.NotContains(t, client("192.0.2.1", "", "one"), "one")
}

// TestTricklingClient: who takes some bytes of its answers now and then does not read them, either.
func TestTricklingClient(t *testing.T) {
	r := start(t, behindProxy, one)
	for _, conn := range r.fill(t, endless(true, `,"logprobs":20,"n":2`)) {
		require.NoError(t, conn.SetReadBuffer(4096))
		go func() {
			for b := make([]byte, 64); ; time.Sleep(10 * time.Millisecond) { // 6400 bytes a second
				if _, err := conn.Read(b); err != nil {
					return
				}
			}
		}()
	}
	r.open(t, 18)
	r.getsAPlace(t, "it waited for those that hardly read")
}
