package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

func TestEndpoints(t *testing.T) {
	r := start(t, Options{}, func(c *actors.Config) { c.Name = "org/name" })
	status, body := r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":3}`)
	require.Equal(t, 200, status, body)
	for path, want := range map[string]string{
		"/":                      "POST /v1/chat/completions",
		"/health":                `{"status":"ok"}`,
		"/v1/models":             `"id":"org/name"`,
		"/v1/models/org/name":    `"n_vocab":8192`,
		"/debug/actors":          `"to":"scheduler"`,
		"/debug/trace?seconds=1": `"traceEvents":[`,
	} {
		status, body := r.get(t, path)
		require.Equal(t, 200, status, path)
		require.Contains(t, body, want, path)
	}
	status, body = r.get(t, "/metrics")
	require.Equal(t, 200, status)
	for _, want := range []string{
		`sluice_http_requests_total{route="/v1/completions",status="200"} 1`, "sluice_requests_total 1",
		"sluice_answers_waiting 0", `sluice_kv_blocks{state="free"}`, `sluice_kv_bits{of="k"} 16`, `sluice_kv_token_bytes `, `sluice_kv_moved_blocks_total{to="host"} 0`, `sluice_actor_restarts_total{actor="house/device"} 0`,
		`sluice_step_seconds_total{on="compute"}`, "sluice_first_token_seconds_count 1", `sluice_queue_seconds_bucket{le="0.0005"}`,
		"sluice_between_tokens_seconds_count 2", `sluice_device_idle_seconds_total{cause="no_work",device="house/device"}`,
		`sluice_device_computing_seconds_total{device="house/device"}`, `sluice_weights_bytes{tier="disk"} 0`, "go_goroutines", "process_resident_memory_bytes",
	} {
		require.Contains(t, body, want)
	}
	require.Contains(t, r.log.String(), `"path":"/v1/completions","status":200`)
	require.Contains(t, r.log.String(), `"generated_tokens":3`)
}

// TestSlowClient leaves an answer unread. The others do not notice; it is cut when our patience ends.
func TestSlowClient(t *testing.T) {
	r := start(t, Options{Patience: 500 * time.Millisecond}, nil)
	conn := r.dial(t, "/v1/completions", endless(true, `,"logprobs":20,"n":2`))
	require.NoError(t, conn.SetReadBuffer(4096))
	r.open(t, 2)
	_, err := r.ask(t.Context(), question(1), 0, 0)
	require.NoError(t, err)
	r.open(t, 0)
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), `"status":499`) },
		patient, time.Millisecond)
}

func TestShutdownWaits(t *testing.T) {
	r := start(t, Options{Reading: 10 * time.Minute}, nil) // so long an idle connection may take
	idle, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer idle.Close()
	answer := make(chan error, 1)
	go func() {
		got, err := r.http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(endless(true, `,"max_tokens":700`)))
		if err == nil {
			_, err = io.Copy(io.Discard, got.Body)
			err = errors.Join(err, got.Body.Close())
		}
		answer <- err
	}()
	require.Eventually(t, func() bool { return r.engine.Snapshot().Requests == 1 }, patient, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	require.NoError(t, r.Shutdown(ctx))
	require.NoError(t, <-answer, "the answer was finished first")
	_, err = net.Dial("tcp", r.addr)
	require.Error(t, err)
}

func TestShutdownCuts(t *testing.T) {
	r := start(t, Options{}, nil)
	frozen := r.dial(t, "/v1/completions", endless(true, `,"logprobs":20,"n":2`))
	require.NoError(t, frozen.SetReadBuffer(4096))
	r.open(t, 2)
	generated := uint64(0)
	require.Eventually(t, func() bool { // nothing is generated any more for a client that does not read
		before := generated
		generated = r.engine.Snapshot().Generated
		return generated > 0 && generated == before
	}, patient, 100*time.Millisecond)
	streaming := r.dial(t, "/v1/completions", endless(true, ""))
	whole := r.dial(t, "/v1/completions", endless(false, ""))
	ends := make(chan string, 2)
	for _, conn := range []net.Conn{streaming, whole} {
		go func() {
			var all strings.Builder
			b := make([]byte, 4096)
			for {
				n, err := conn.Read(b)
				all.Write(b[:n])
				if err != nil {
					ends <- all.String()
					return
				}
			}
		}()
	}
	r.open(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := r.Shutdown(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, -1, r.Server.http.GetOpenConnectionsCount(), "connections, less the listener, which is gone")
	for range 2 {
		end := <-ends
		require.Contains(t, end, "the server is stopping", fmt.Sprintf("%.200s", end))
	}
	r.open(t, 0)
}
