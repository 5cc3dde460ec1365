package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// stage is a server whose answers to conversations a test may write itself.
type stage struct {
	url, addr string

	mu     sync.Mutex
	script func(w *pieces, r *http.Request)
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
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: r.http.Transport, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host
	}}
	s := &stage{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		script := s.script
		s.mu.Unlock()
		if script == nil || q.URL.Path != "/v1/chat/completions" {
			proxy.ServeHTTP(w, q)
			return
		}
		script(&pieces{w}, q)
	}))
	t.Cleanup(front.Close)
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

// startPage serves two models, which the page may choose from.
func startPage(t *testing.T, o Options) *stage {
	t.Helper()
	one := startEngine(t, func(c *actors.Config) { c.Name = "mini-one" })
	two := startEngine(t, func(c *actors.Config) { c.Name = "mini-two" })
	return stageOf(t, startServer(t, one, o, func(o Options) *Server { return New(Engines(one, two), o) }))
}

