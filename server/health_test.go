package server

import (
	"context"
	"errors"
	"net/http"
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

func (m failingModel) Enqueue(segment int, s *backend.Step) error {
	if m.broken.Load() {
		panic("the device fell off the bus")
	}
	return m.Model.Enqueue(segment, s)
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
	status, body = r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "the engine has failed: ")

	m.set(map[string]*actors.Engine{"a": other, "b": engine}, "a", "b")
	status, body = r.get(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `the engine of \"b\" has failed: `)
	status, body = r.post(t, "/v1/completions", `{"prompt":[1,2],"max_tokens":3,"model":"a"}`)
	require.Equal(t, http.StatusOK, status, body)
	m.set(map[string]*actors.Engine{"a": other}, "a")
	status, _ = r.get(t, "/health")
	require.Equal(t, http.StatusOK, status)
	r.log.forget()
}

// TestStopping: who asks while the server, or the engine, stops is told to come again; who only looks is served.
func TestStopping(t *testing.T) {
	r := start(t, Options{}, nil)
	const ask, told = `{"prompt":"one two","max_tokens":3}`, "the server is stopping: try again when it is back"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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
