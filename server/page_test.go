package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// stage is a server whose answers to conversations a test may write itself.
type stage struct {
	url, addr string

	mu     sync.Mutex
	script func(w *pieces, r *http.Request)
	routes map[string]http.HandlerFunc // by path
}

// pieces is a stream of events.
type pieces struct{ http.ResponseWriter }

func (w *pieces) event(format string, args ...any) {
	fmt.Fprintf(w, "data: "+format+"\n\n", args...)
	w.ResponseWriter.(http.Flusher).Flush()
}

func (w *pieces) content(text string) {
	w.event(`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, quoted(text))
}

func (w *pieces) end(reason string) {
	w.event(`{"choices":[{"index":0,"delta":{},"finish_reason":%s}],"timings":{"cache_n":8,"prompt_n":12,"predicted_n":42,"predicted_per_second":35.2}}`, quoted(reason))
	w.event(`[DONE]`)
}

// stageOf puts a stage in front of a server.
func stageOf(t *testing.T, r *running) *stage {
	target, err := url.Parse(r.url)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: r.http.Transport}
	proxy.Rewrite = func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host
	}
	s := &stage{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		script, route := s.script, s.routes[q.URL.Path]
		s.mu.Unlock()
		if route != nil {
			route(w, q)
			return
		}
		if script == nil || q.URL.Path != "/v1/chat/completions" {
			proxy.ServeHTTP(w, q)
			return
		}
		script(&pieces{w}, q)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections() // a script that was not played to its end ends
		front.Close()
	})
	s.url, s.addr = front.URL, strings.TrimPrefix(front.URL, "http://")
	return s
}

// plays sets what is answered to conversations; nil: what the models say.
func (s *stage) plays(script func(w *pieces, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = func(w *pieces, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		script(w, r)
	}
	if script == nil {
		s.script = nil
	}
}

// answers has each conversation answered with a text, and returns where the bodies of requests come.
func (s *stage) answers(text string) (asked chan string) {
	asked = make(chan string, 1)
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.content(text)
		w.end("stop")
	})
	return asked
}

// serves sets what is answered at a path.
func (s *stage) serves(path string, route http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.routes == nil {
		s.routes = map[string]http.HandlerFunc{}
	}
	s.routes[path] = route
}

// receive waits for what a script has to tell.
func (s *stage) receive(t *testing.T, from chan string) string {
	t.Helper()
	select {
	case text := <-from:
		return text
	case <-time.After(patient):
		t.Fatal("the page did nothing")
		return ""
	}
}

// startPage serves two models, which the page may choose from.
func startPage(t *testing.T, o Options) *stage {
	t.Helper()
	one := startEngine(t, func(c *actors.Config) { c.Name = "mini-one" })
	two := startEngine(t, func(c *actors.Config) { c.Name = "mini-two" })
	return stageOf(t, startServer(t, one, o, func(o Options) *Server { return New(Engines(one, two), o) }))
}

// TestPageIsServed to browsers, at once and without a key; programs get a line of text, as before.
func TestPageIsServed(t *testing.T) {
	ask := func(r *running, path, accept string) (int, http.Header, string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, http.NoBody)
		request.Header.Set("Accept", accept)
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		status, body := read(t, answer)
		return status, answer.Header, body
	}
	r := start(t, Options{APIKeys: []string{"secret"}}, nil)
	status, header, body := ask(r, "/", "text/html,*/*;q=0.8")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "<!doctype html>")
	require.NotContains(t, body, r.engine.Info.Name, "strangers learn no names")
	require.Equal(t, "Accept", header.Get("Vary"))
	status, header, body = ask(r, "/", "*/*")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "sluice serves those who have a key.\n", body)
	require.Equal(t, "Accept", header.Get("Vary"))
	status, _, _ = ask(r, "/page/main.js", "*/*")
	require.Equal(t, http.StatusOK, status)
	status, _, body = ask(r, "/page/nothing.js", "*/*")
	require.Equal(t, http.StatusNotFound, status, body)
	_, _, body = ask(r, "/metrics", "*/*")
	require.NotContains(t, body, "main.js")

	engine := startEngine(t, nil)
	loading := startServer(t, engine, Options{}, Loading)
	status, _, body = ask(loading, "/", "text/html")
	require.Equal(t, http.StatusOK, status, "who waits for the model sees the page that says so")
	require.Contains(t, body, "<!doctype html>")
	loading.Loaded(Engines(engine))
}
