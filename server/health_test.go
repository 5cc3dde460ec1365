package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// failing is a device that dies at the next step once it is broken, and takes no weights again.
type failing struct {
	backend.Device
	broken *atomic.Bool
}

func (d failing) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return failingModel{m, d.broken}, err
}

type failingModel struct {
	backend.Model
	broken *atomic.Bool
}

func (m failingModel) Upload(w ir.Ref, row int, data []byte) error {
	if m.broken.Load() {
		return errors.New("the device fell off the bus")
	}
	return m.Model.Upload(w, row, data)
}

func (m failingModel) Run(w backend.Work, s *backend.Step) error {
	if m.broken.Load() {
		panic("the device fell off the bus")
	}
	return m.Model.Run(w, s)
}

// TestUnhealthy: an engine that has failed is told of, whose it is, and what its clients read of it.
func TestUnhealthy(t *testing.T) {
	var broken atomic.Bool
	engine := startEngine(t, func(cfg *actors.Config) { cfg.Device = failing{cfg.Device, &broken} })
	other := startEngine(t, func(cfg *actors.Config) { tiny(t, cfg) })
	m := &several{}
	m.set(map[string]*actors.Engine{"a": other, "b": engine}, "b")
	r := startServer(t, engine, Options{}, func(o Options) *Server { return New(m, o) })
	status, body := r.get(t, "/health")
	require.Equal(t, http.StatusOK, status, body)

	broken.Store(true)
	status, body = r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":3}`)
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, body, `"type":"server_error"`)
	require.Contains(t, body, `"code":"engine_failed"`)
	require.Contains(t, body, "try again, the model is loaded again if that is possible")
	status, body = r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "the engine has failed: ")

	m.set(map[string]*actors.Engine{"a": other, "b": engine}, "a", "b")
	status, body = r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `the engine of \"b\" has failed: `)
	status, body = r.get(t, "/debug/actors")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 1, strings.Count(body, `"failure":"`), "it does not look as if nobody asked")
	status, body = r.post(t, "/v1/completions", `{"prompt":[1,2],"max_tokens":3,"model":"a"}`)
	require.Equal(t, http.StatusOK, status, body)
	m.set(map[string]*actors.Engine{"a": other}, "a")
	status, _ = r.get(t, "/health")
	require.Equal(t, http.StatusOK, status)
	r.log.forget()
}

// TestUnloadable: where no model can be loaded, the server is not healthy; where some can, it is.
func TestUnloadable(t *testing.T) {
	m := &several{faults: map[string]error{"a": errors.New("/srv/models/a.gguf: it is cut")}}
	engine := startEngine(t, func(cfg *actors.Config) { tiny(t, cfg) })
	r := startServer(t, engine, Options{APIKeys: []string{"key"}}, func(o Options) *Server { return New(m, o) })
	health := func() (int, string) { return r.call(t, http.MethodGet, "/health", "", "Authorization", "Bearer key") }
	m.set(nil, "a")
	status, body := health()
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `the model \"a\" cannot be loaded: a.gguf: it is cut: the next request tries again`)
	status, body = r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "no model can be loaded: the log says why")
	for _, others := range []map[string]*actors.Engine{{"b": engine}, {}} {
		m.set(others, "a", "b")
		status, body = health()
		require.Equal(t, http.StatusOK, status, body)
	}
	m.set(nil)
	status, body = health()
	require.Equal(t, http.StatusOK, status, body)
}

// TestLoading: while models are loaded, only the health is told, with how far it is; who asks for more waits, and is
// answered when they are there.
func TestLoading(t *testing.T) {
	engine := startEngine(t, nil)
	r := startServer(t, engine, Options{}, Loading)
	status, body := r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `"code":"loading"`)
	require.Contains(t, body, "0 %")
	r.Progress(1<<30, 4<<30)
	_, body = r.get(t, "/health")
	require.Contains(t, body, "25 %")

	asked := make(chan int, 2)
	for range 2 {
		go func() {
			status, _ := r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":3}`)
			asked <- status
		}()
	}
	left := r.dial(t, "/v1/completions", `{"prompt":"one two","max_tokens":3}`)
	require.Eventually(t, func() bool { return r.listener.open() >= 3 }, patient, time.Millisecond)
	require.NoError(t, left.Close())
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), `"status":499`) }, patient, time.Millisecond)
	require.Empty(t, asked)
	r.Loaded(Engines(engine))
	require.Equal(t, http.StatusOK, <-asked)
	require.Equal(t, http.StatusOK, <-asked)
	status, _ = r.get(t, "/health")
	require.Equal(t, http.StatusOK, status)
}

// TestStrangersLearnNothing: neither the names of models nor what is wrong with them.
func TestStrangersLearnNothing(t *testing.T) {
	var broken atomic.Bool
	engine := startEngine(t, func(cfg *actors.Config) { cfg.Device = failing{cfg.Device, &broken} })
	m := &several{}
	m.set(map[string]*actors.Engine{"secret name": engine, "b": engine}, "secret name", "b")
	r := startServer(t, engine, Options{APIKeys: []string{"key"}}, func(o Options) *Server { return New(m, o) })
	broken.Store(true)
	ask, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v1/completions",
		strings.NewReader(`{"model":"b","prompt":"one two"}`))
	ask.Header.Set("Authorization", "Bearer key")
	failed, err := r.http.Do(ask)
	require.NoError(t, err)
	status, body := read(t, failed)
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	for _, path := range []string{"/", "/health"} {
		_, body := r.get(t, path)
		require.NotContains(t, body, "secret name", path)
		require.NotContains(t, body, "bus", path)
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/health", http.NoBody)
	request.Header.Set("Authorization", "Bearer key")
	answer, err := r.http.Do(request)
	require.NoError(t, err)
	status, body = read(t, answer)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `the engine of \"secret name\" has failed: `)
	r.log.forget()
}

// TestStopping: who asks while the server, or the engine, stops is told to come again; who only looks is served.
func TestStopping(t *testing.T) {
	r := start(t, Options{}, nil)
	const ask, told = `{"prompt":"one two","max_tokens":3}`, "the server is stopping: try again when it is back"
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	require.NoError(t, r.engine.Close(ctx))
	status, body := r.post(t, "/v1/completions", ask)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, told)

	r.stopping.Store(true)
	status, body = r.post(t, "/v1/completions", "not even read")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, told)
	status, body = r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, told)
	status, _ = r.get(t, "/v1/models")
	require.Equal(t, http.StatusOK, status)
}
