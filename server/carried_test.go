package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/carry"
	"github.com/sluice-ai/sluice/server/cluster"
)

// cable leads to a member, and breaks as if that died.
type cable struct {
	net.Listener
	to   string
	most atomic.Pointer[int64] // bytes that still come back by a connection before it breaks; nil: any
}

// lay lays a cable to an address.
func lay(t *testing.T, to string) *cable {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{Listener: ln, to: to}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { c.carry(near.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		all.Wait()
	})
	return c
}

func (c *cable) carry(near *net.TCPConn) {
	defer near.Close()
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(to, near)
		to.(*net.TCPConn).CloseWrite()
	}()
	defer func() { <-gone }()
	defer near.Close()
	came, most := int64(0), c.most.Load()
	for buffer := make([]byte, 1<<10); ; {
		n, err := to.Read(buffer)
		if now := c.most.Load(); now != most {
			came, most = 0, now
		}
		if came += int64(n); most != nil && came > *most {
			near.SetLinger(0)
			return
		}
		if _, wrong := near.Write(buffer[:n]); err != nil || wrong != nil {
			return
		}
	}
}

// timed are fields that tell when an answer was made, and how fast.
var timed = regexp.MustCompile(`"(created|created_at|[a-z_]*duration|timings)":("[^"]*"|\d+|\{[^{}]*\}),?|(?m)^id: .*\n|(?m)^:.*\n\n`)

// asks sends a request whose answer is streamed.
func (j *joined) asks(t *testing.T, path, body, id string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, j.url+path, strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("X-Request-Id", id)
	q.Header.Set("Anthropic-Version", "2023-06-01")
	got, err := j.http.Do(q)
	require.NoError(t, err)
	require.Equal(t, 200, got.StatusCode)
	return got
}

// byChoice is what a stream says of each of two choices, without times.
func byChoice(t *testing.T, stream *http.Response) (parts [3]string) {
	t.Helper()
	defer stream.Body.Close()
	all, err := io.ReadAll(stream.Body)
	require.NoError(t, err)
	for line := range strings.Lines(timed.ReplaceAllString(string(all), "")) {
		switch {
		case strings.Contains(line, `"choices":[{"index":0`):
			parts[0] += line
		case strings.Contains(line, `"choices":[{"index":1`):
			parts[1] += line
		default:
			parts[2] += strings.TrimSpace(line)
		}
	}
	return parts
}

// TestAnswersGoOnElsewhere: a stream whose member dies goes on at another one, and then where it was asked for, and a
// client gets each event once, as from one server.
func TestAnswersGoOnElsewhere(t *testing.T) {
	alone := &joined{running: start(t, Options{}, func(c *actors.Config) { c.Name = "m" })}
	w := newTown(t)
	a := w.join(t, "a", Options{})
	var cables []*cable
	for _, name := range []string{"b", "c"} {
		w.joinBy(t, name, Options{}, func(at string) string {
			c := lay(t, at)
			cables = append(cables, c)
			return c.Addr().String()
		})
	}
	a.sees(t, "b", "c")
	a.cluster.Drain()
	require.Eventually(t, func() bool { return a.cluster.Members()[0].Drained }, patient, time.Millisecond)
	for i, ask := range []struct{ path, body string }{
		{"/v1/completions", `"prompt":"%s one two three","max_tokens":200,"temperature":0.9,"seed":5,"ignore_eos":true`},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"%s"}],"n":2,"max_tokens":100,"temperature":1,"seed":7,
			"ignore_eos":true,"logprobs":true,"top_logprobs":2,"stream_options":{"include_usage":true}`},
		{"/v1/messages", `"messages":[{"role":"user","content":"%s: tell me a long story of a hundred words"}],"max_tokens":200,"temperature":0`},
		{"/api/chat", `"messages":[{"role":"user","content":"%s: tell me a long story of a hundred words"}],"options":{"num_predict":200,"seed":9,"temperature":0.1}`},
		{"/api/generate", `"prompt":"%s: tell me a long story of a hundred words","options":{"num_predict":200,"seed":9,"mirostat":2}`},
	} {
		for k, bytes := range []int64{4000, 6000} {
			t.Run(fmt.Sprint(ask.path[1:], bytes), func(t *testing.T) {
				id := fmt.Sprintf("%d-%d", i, k)
				body := fmt.Sprintf(`{"model":"m","stream":true,`+ask.body+`}`, "red "+id)
				want := alone.asks(t, ask.path, body, id)
				for _, c := range cables {
					c.most.Store(&bytes)
				}
				got := a.asks(t, ask.path, body, id)
				require.NotEmpty(t, got.Header.Get(memberHeader))
				require.Equal(t, byChoice(t, want), byChoice(t, got))
				for _, what := range []string{"another member goes on with an answer", "an answer goes on here"} {
					require.Regexp(t, `"request":"`+id+`".*`+what, a.log.String())
				}
				for _, c := range cables {
					c.most.Store(nil)
				}
			})
		}
	}
}

// TestWhatGoesOn: the member that goes on with an answer is told what was drawn, by which seed, and which events the
// client has whole.
func TestWhatGoesOn(t *testing.T) {
	w := newTown(t)
	body := `{"model":"m","prompt":"one two","stream":true}`
	var past *actors.AnswerPast
	var log actors.AnswerLog
	log.Begun(&actors.AnswerBegun{Model: "w", Numbers: "n", Prompts: []string{"p"}, Seeds: []uint64{7}, Nonce: 9})
	log.Token(&actors.AnswerToken{ID: 3})
	log.Token(&actors.AnswerToken{ID: 4})
	head := http.Header{}
	act := func(out http.ResponseWriter, q *http.Request) {
		out.Header().Set("Content-Type", "text/event-stream")
		if q.URL.Path != cluster.AnswerPath {
			out.Write(carry.Mark(nil, 0, 1, log.Take(), false))
			fmt.Fprint(out, "data: 1\n\ndata: 2\n\ndata: thr")
			out.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		file, err := io.ReadAll(q.Body)
		require.NoError(t, err)
		past, err = actors.ParseAnswer(file)
		require.NoError(t, err)
		head = q.Header
		out.Write(carry.Mark(nil, 0, 1, nil, false))
		fmt.Fprint(out, "data: three\n\n")
	}
	w.first, _ = w.fake(t, "b", act)
	other, _ := w.fake(t, "c", act)
	w.also = []string{other}
	a := w.join(t, "a", Options{APIKeys: []string{"secret"}})
	a.sees(t, "b", "c")
	a.cluster.Drain()
	require.Eventually(t, func() bool { return a.cluster.Members()[0].Drained }, patient, time.Millisecond)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/v1/completions", strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer secret")
	q.Header.Set("X-Request-Id", "mine")
	got, err := a.http.Do(q)
	require.NoError(t, err)
	status, said := read(t, got)
	require.Equal(t, 200, status)
	require.Equal(t, "data: 1\n\ndata: 2\n\ndata: three\n\n", said)
	require.Equal(t, "2", head.Get(seenHeader))
	require.Empty(t, head.Get("Authorization"))
	require.Equal(t, []uint64{7}, past.Begun.Seeds)
	require.Len(t, past.Tokens, 2)
	require.Equal(t, body, past.Body)
	require.Equal(t, "/v1/completions", past.Path)
	require.Equal(t, "mine", past.ID)
	require.Regexp(t, "^key ", past.Owner)
	require.NotZero(t, past.Salt)
}

// TestNobodyGoesOn: what no member can go on with breaks off: of another model, or with records that are not known.
func TestNobodyGoesOn(t *testing.T) {
	var log actors.AnswerLog
	log.Begun(&actors.AnswerBegun{Model: "another", Prompts: []string{"p"}, Seeds: []uint64{7}})
	for name, sent := range map[string]string{
		"another model": string(carry.Mark(nil, 0, 1, log.Take(), false)) + "data: 1\n\n",
		"no marks":      "data: 1\n\n",
		"a bad mark":    ":sluice x\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			w.first, _ = w.fake(t, "b", func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(out, sent)
				out.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			})
			a := w.join(t, "a", Options{})
			a.sees(t, "b")
			a.cluster.Drain()
			require.Eventually(t, func() bool { return a.cluster.Members()[0].Drained }, patient, time.Millisecond)
			got := a.asks(t, "/v1/completions", `{"model":"m","prompt":"one","stream":true}`, "x")
			defer got.Body.Close()
			_, err := io.ReadAll(got.Body)
			if name == "a bad mark" { // nothing of it was passed on
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Contains(t, a.log.String(), "nobody can go on with the answer")
		})
	}
}

// TestForeignAnswers: what is no file of an answer, or of a request that is not passed on, is refused.
func TestForeignAnswers(t *testing.T) {
	w := newTown(t)
	a := w.join(t, "a", Options{})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: w.pass(t, "b").Client(), DisableKeepAlives: true}}
	post := func(file []byte, seen string) (int, string) {
		q, err := http.NewRequest(http.MethodPost, "https://"+a.at+cluster.AnswerPath, bytes.NewReader(file))
		require.NoError(t, err)
		q.Host = "localhost"
		q.Header.Set(seenHeader, seen)
		got, err := client.Do(q)
		require.NoError(t, err)
		return read(t, got)
	}
	good := &actors.AnswerAsked{ID: "x", Path: "/v1/completions", Body: `{"model":"m","prompt":"x","max_tokens":2,"stream":true}`}
	status, said := post(actors.PackAnswer(good, nil), "")
	require.Equal(t, 200, status, said)
	require.Contains(t, said, ":sluice 0/1 ")
	for _, c := range []struct {
		path, seen, want string
		cut              int
		status           int
	}{
		{"/models/unload", "", "which is not passed on", 0, 400},
		{cluster.AnswerPath, "", "which is not passed on", 0, 400},
		{"/v1/completions", "x", "no list of numbers", 0, 400},
		{"/v1/completions", "1-2", "of no event of the answer", 0, 400},
		{"/v1/completions", "", "it is no file of an answer", 100, 400},
		{"/v1/completions", "", "was not written completely", 1, 400},
	} {
		asked := *good
		asked.Path = c.path
		file := actors.PackAnswer(&asked, nil)
		if c.cut == 100 {
			file = file[c.cut:]
		}
		status, said := post(file[:len(file)-c.cut%100], c.seen)
		require.Equal(t, c.status, status, said)
		require.Contains(t, said, c.want)
	}
	status, _ = a.post(t, cluster.AnswerPath, string(actors.PackAnswer(good, nil)))
	require.Equal(t, 404, status, "a client is no member")
}
