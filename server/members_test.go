package server

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/exchange"
)

// town is a cluster of servers in this process.
type town struct {
	authority *pass.Authority
	first     string   // address where members join
	also      []string // further ones
	edit      func(member string, c *actors.Config)
}

func newTown(t *testing.T) *town {
	a, err := pass.NewAuthority("town", time.Now())
	require.NoError(t, err)
	return &town{authority: a}
}

func (w *town) pass(t *testing.T, name string) *pass.Pass {
	t.Helper()
	text, _, err := w.authority.Pass(name, time.Now(), time.Hour)
	require.NoError(t, err)
	p, err := pass.Parse(text, time.Now)
	require.NoError(t, err)
	return p
}

// joined is a server that is a member.
type joined struct {
	*running
	cluster *cluster.Cluster
	at      string // where it takes members
	stop    context.CancelFunc
}

// join starts a member that has model m.
func (w *town) join(t *testing.T, name string, o Options) *joined {
	t.Helper()
	return w.joinBy(t, name, o, func(at string) string { return at })
}

// joinBy starts a member that others reach by another address than its own.
func (w *town) joinBy(t *testing.T, name string, o Options, by func(at string) string) *joined {
	t.Helper()
	engine := startEngine(t, func(c *actors.Config) {
		c.Name, c.Kept.Content, c.Kept.Weights = "m", "the toy's", "the toy's, at "+name
		if w.edit != nil {
			w.edit(name, c)
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	j := &joined{at: by(ln.Addr().String())}
	if w.first == "" {
		w.first = j.at
	}
	log := &lockedBuffer{}
	j.cluster, err = cluster.New(cluster.Options{Pass: w.pass(t, name), Addr: j.at,
		Join: append([]string{w.first}, w.also...), Log: zerolog.New(log)})
	require.NoError(t, err)
	o.Cluster = j.cluster
	j.running = startServer(t, engine, o, func(o Options) *Server {
		o.Log = zerolog.New(log)
		return New(Engines(engine), o)
	})
	j.log = log
	served, ran := make(chan error, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	j.stop = cancel
	go func() { served <- j.ServeMembers(ln) }()
	go func() {
		defer close(ran)
		j.cluster.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ran
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		j.http.CloseIdleConnections()
		require.NoError(t, j.Shutdown(ctx))
		require.NoError(t, <-served)
	})
	return j
}

// sees waits until a member hears exactly these others.
func (j *joined) sees(t *testing.T, names ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var heard []string
		for _, m := range j.cluster.Members()[1:] {
			if m.Member != "" {
				heard = append(heard, m.Member)
			}
		}
		return fmt.Sprint(heard) == fmt.Sprint(names)
	}, patient, 5*time.Millisecond, "%v", names)
}

// says is the whole answer to a long prompt, and which member gave it; "": the one that was asked.
func (j *joined) says(t *testing.T, topic string, stream bool) (text, member string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","prompt":%q,"temperature":0,"max_tokens":12,"stream":%v}`,
		strings.Repeat(topic+" ", 200), stream)
	got, err := j.http.Post(j.url+"/v1/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	status, said := read(t, got)
	require.Equal(t, 200, status, said)
	var all struct{ Choices []struct{ Text string } }
	for line := range strings.Lines(strings.ReplaceAll(said, "data: ", "")) {
		if json.Unmarshal([]byte(line), &all) == nil && len(all.Choices) > 0 {
			text += all.Choices[0].Text
		}
	}
	return text, got.Header.Get(memberHeader)
}

// TestMembers: members find each other by one address, prompts that begin alike meet at one of them, whichever is
// asked, and answers are those of one server.
func TestMembers(t *testing.T) {
	w := newTown(t)
	all := map[string]*joined{}
	for _, name := range []string{"a", "b", "c"} {
		all[name] = w.join(t, name, Options{})
	}
	all["a"].sees(t, "b", "c")
	all["b"].sees(t, "a", "c")
	all["c"].sees(t, "a", "b")
	alone := start(t, Options{}, func(c *actors.Config) { c.Name = "m" })
	single := &joined{running: alone}
	for i, topic := range []string{"red", "one", "the"} {
		want, _ := single.says(t, topic, false)
		require.NotEmpty(t, want)
		require.Eventually(t, func() bool { // what one has read, the others hear with its next report
			homes := map[string]bool{}
			for k, asked := range []string{"a", "b", "c"} {
				got, member := all[asked].says(t, topic, (i+k)%2 == 0)
				require.Equal(t, want, got)
				homes[cmp.Or(member, asked)] = true
			}
			return len(homes) == 1
		}, patient, 5*time.Millisecond, topic)
	}
	status, said := all["b"].get(t, "/cluster")
	require.Equal(t, 200, status)
	for _, want := range []string{`"cluster": "town"`, `"member": "b"`, `"self": true`, `"heard_ms": `, `"m"`} {
		require.Contains(t, said, want)
	}
	status, _ = alone.get(t, "/cluster")
	require.Equal(t, 404, status)
	status, _ = all["a"].post(t, "/v1/completions", `{"model":"nobody","prompt":"x","max_tokens":1}`)
	require.Equal(t, 200, status, "no member has it: the one that is asked takes its only one")
	status, _ = all["a"].post(t, "/v1/completions", `{"prompt":"x","max_tokens":1}`)
	require.Equal(t, 200, status)
}

// TestDrained: a drained member passes all on; a client that goes is gone where its answer is computed, and one whose
// member stops in the middle gets the rest from another.
func TestDrained(t *testing.T) {
	w := newTown(t)
	a, b := w.join(t, "a", Options{APIKeys: []string{"secret"}}), w.join(t, "b", Options{APIKeys: []string{"other"}})
	a.sees(t, "b")
	b.sees(t, "a")
	a.cluster.Drain()
	require.Eventually(t, func() bool { return a.cluster.Members()[0].Drained }, patient, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ask := func(ctx context.Context) *http.Response {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/completions?x=%20y",
			strings.NewReader(endless(true, `,"model":"m"`)))
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer secret")
		got, err := a.http.Do(q)
		require.NoError(t, err)
		require.Equal(t, 200, got.StatusCode)
		require.Equal(t, "b", got.Header.Get(memberHeader))
		require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
		return got
	}
	got := ask(ctx)
	defer got.Body.Close()
	_, err := bufio.NewReader(got.Body).ReadString('\n')
	require.NoError(t, err)
	b.open(t, 1)
	a.open(t, 0)
	cancel()
	b.open(t, 0)
	got = ask(t.Context())
	defer got.Body.Close()
	_, err = bufio.NewReader(got.Body).ReadString('\n')
	require.NoError(t, err)
	b.Server.Close()
	rest, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Contains(t, string(rest), `"finish_reason":"length"`, "it goes on here")
	require.NotContains(t, string(rest), "error")
}

// fake is a member whose answers a test decides.
func (w *town) fake(t *testing.T, name string, answer http.HandlerFunc) (at string, p *pass.Pass) {
	t.Helper()
	p = w.pass(t, name)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", p.Server())
	require.NoError(t, err)
	at = ln.Addr().String()
	busy := atomic.Bool{}
	s := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		if q.URL.Path != cluster.Path {
			busy.Store(true)
			answer(out, q)
			busy.Store(false)
			return
		}
		io.Copy(io.Discard, q.Body)
		if busy.Load() { // what freezes does not report
			<-q.Context().Done()
			return
		}
		fmt.Fprintf(out, `{"version":2,"member":%q,"addr":%q,"models":[{"name":"m"}]}`, name, at)
	})}
	go s.Serve(ln)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return at, p
}

// TestMemberFails: what a member does not answer, another one does. A drained member has only the fake one to choose,
// and after that itself, by default.
func TestMemberFails(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"closes":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"refuses": func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) },
		"breaks off": func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", "100")
			fmt.Fprint(out, "{")
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			asked := atomic.Int32{}
			w.first, _ = w.fake(t, "bad", func(out http.ResponseWriter, q *http.Request) {
				asked.Add(1)
				io.Copy(io.Discard, q.Body)
				answer(out, q)
			})
			a := w.join(t, "a", Options{})
			a.sees(t, "bad")
			a.cluster.Drain()
			require.Eventually(t, func() bool { return a.cluster.Members()[0].Drained }, patient, time.Millisecond)
			got, member := a.says(t, "red", false)
			require.NotEmpty(t, got)
			require.Empty(t, member)
			require.EqualValues(t, 1, asked.Load())
		})
	}
}

// TestMemberFreezes: a member that neither answers nor reports is left, and the request answered elsewhere.
func TestMemberFreezes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the seconds after which a silent member is given up")
	}
	w := newTown(t)
	frozen := make(chan struct{})
	w.first, _ = w.fake(t, "bad", func(http.ResponseWriter, *http.Request) { <-frozen })
	defer close(frozen)
	a := w.join(t, "a", Options{})
	a.sees(t, "bad")
	a.cluster.Drain()
	require.Eventually(t, func() bool { return a.cluster.Members()[0].Drained }, patient, time.Millisecond)
	done := make(chan string, 1)
	go func() {
		text, _ := a.says(t, "red", false)
		done <- text
	}()
	require.Eventually(t, func() bool { return len(done) > 0 }, patient, time.Millisecond)
	require.NotEmpty(t, <-done)
}

// TestStrangersOfClusters: who has no pass, or another's, gets nothing where members are taken, and the log says why;
// a member gets nothing but what members may have.
func TestStrangersOfClusters(t *testing.T) {
	w := newTown(t)
	a := w.join(t, "a", Options{})
	b := w.pass(t, "b")
	none := b.Client()
	none.Certificates = nil
	other := newTown(t).pass(t, "x").Client()
	other.RootCAs = b.Client().RootCAs
	refused := func(config *tls.Config, want string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		require.Eventually(t, func() bool { // the log has a line a second
			got, err := client.Get("https://" + a.at + "/v1/models")
			if err == nil {
				got.Body.Close()
			}
			require.Error(t, err)
			return strings.Contains(a.log.String(), "refused, where members are taken: "+want)
		}, patient, 20*time.Millisecond)
	}
	refused(none, "it shows no certificate")
	refused(other, "its certificate is of another authority")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: b.Client(), DisableKeepAlives: true}}
	post := func(path, body string) (int, string) {
		q, err := http.NewRequest(http.MethodPost, "https://"+a.at+path, strings.NewReader(body))
		require.NoError(t, err)
		q.Host = "localhost"
		got, err := client.Do(q)
		require.NoError(t, err)
		return read(t, got)
	}
	for _, path := range []string{"/models/unload", "/debug/actors", "/nothing", "/v1/responses"} {
		status, _ := post(path, `{"model":"m"}`)
		require.Equal(t, 404, status, path)
	}
	known := func() bool { return len(a.cluster.Report().Models[0].Known) > 0 }
	require.False(t, known())
	status, said := post("/v1/completions", `{"model":"m","max_tokens":1,"prompt":"`+strings.Repeat("one ", 100)+`"}`)
	require.Equal(t, 200, status, said)
	require.True(t, known(), "what is passed on is remembered")
	status, _ = a.post(t, cluster.Path, `{}`)
	require.Equal(t, 404, status, "a client is no member")
	for body, want := range map[string]string{
		"":  "no JSON",
		`{`: "is not JSON as we know it",
		`{"version":1,"member":"b","addr":"h:1"}`:                                                      "are of version 1, and ours of version 2",
		`{"version":2,"member":"c","addr":"h:1"}`:                                                      "says that it is \\\"c\\\", and its pass is of \\\"b\\\"",
		`{"version":2,"member":"b","addr":"h:0"}`:                                                      "is no address of a member",
		`{"version":2,"member":"b","addr":"h:1","others":["x"]}`:                                       "is no address of a member",
		`{"version":2,"member":"b","addr":"h:1","models":[{"known":"AAA="}]}`:                          "a sketch of prefixes has 2 bytes",
		`{"version":2,"member":"b","addr":"h:1","models":[{"name":"m","wait":-1}]}`:                    "wait is -1ns",
		`{"version":2,"member":"b","addr":"h:1","others":[` + strings.Repeat(`"h:1",`, 64) + `"h:1"]}`: "reports 65 other members",
	} {
		status, said := post(cluster.Path, body)
		require.Equal(t, 409, status, said)
		require.Contains(t, said, strings.Replace(want, "no JSON", "is not JSON", 1), body)
	}
	require.Len(t, a.cluster.Members(), 1)
	status, said = post(cluster.Path, `{"version":2,"member":"b","addr":"127.0.0.1:1"}`)
	require.Equal(t, 200, status, said)
	require.Contains(t, said, `"member":"a"`)
	status, said = post(cluster.Path, `{"version":2,"member":"b","addr":"127.0.0.1:2"}`)
	require.Equal(t, 409, status)
	require.Contains(t, said, "the pass of b is in use at 127.0.0.1:1 and at 127.0.0.1:2")
}

// TestWhatMembersAreTold: what is meant for the server that is asked, as its client's key, stays there.
func TestWhatMembersAreTold(t *testing.T) {
	rc := &fasthttp.RequestCtx{}
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Origin", "Sec-Fetch-Mode", clientHeader} {
		rc.Request.Header.Set(name, "secret")
	}
	rc.Request.Header.Set("Anthropic-Version", "2023-06-01")
	x := &exchange.Exchange{ID: "7", Client: "me", Salt: 0xabc, At: time.Unix(0, 5)}
	require.Equal(t, http.Header{"Anthropic-Version": {"2023-06-01"}, "X-Request-Id": {"7"}, clientHeader: {"me"},
		saltHeader: {"abc"}, atHeader: {"5"}}, headOf(rc, x))
}
