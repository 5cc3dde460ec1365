package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/trace/chrome"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// TestDebugActors: every number has its unit in its name, and the device's time adds up.
func TestDebugActors(t *testing.T) {
	r := start(t, Options{}, nil)
	status, body := r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":3}`)
	require.Equal(t, http.StatusOK, status, body)
	_, body = r.get(t, "/debug/actors")
	var about Inside
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&about), body)
	require.Len(t, about.Models, 1)
	m := about.Models[0]
	require.EqualValues(t, 1, m.Requests)
	require.EqualValues(t, 3, m.GeneratedTokens)
	ids := func(all []ActorInside) (ids []string) {
		for _, a := range all {
			ids = append(ids, a.ID[strings.LastIndexByte(a.ID, '/')+1:])
		}
		return ids
	}
	require.Subset(t, ids(m.Actors), []string{"kv", "sampler", "scheduler", "sessions"})
	require.Subset(t, ids(about.Actors), []string{"house", "device", "reader", "pool", "uploader"})
	require.NotContains(t, ids(about.Actors), "kv")
	flight := 1
	if devicetest.OnGPU() {
		flight = 2 // steps are in flight there
	}
	require.Contains(t, m.Credits, CreditsInside{"scheduler", "device", "step", 0, flight})
	sum := about.Device.Computing
	for _, s := range about.Device.Idle {
		sum += s
	}
	require.InDelta(t, about.Device.Uptime, sum, 1e-6)
	require.GreaterOrEqual(t, m.Device.Uptime, 0.0)
	require.Equal(t, "loaded", m.State)
	require.Positive(t, about.UptimeSeconds)
	require.Positive(t, about.Device.Computing)
	require.Positive(t, about.Device.Idle["no_work"])
	require.Contains(t, body, `"kind":"idle","cause":"`)
	require.NotContains(t, body, `"Wait"`)
}

// TestDebugTrace: the trace of some seconds in which an answer was given has its steps, and ends in time.
func TestDebugTrace(t *testing.T) {
	r := start(t, Options{}, nil)
	status, body := r.post(t, "/v1/completions", `{"prompt":"three four","max_tokens":4,"ignore_eos":true}`)
	require.Equal(t, http.StatusOK, status, body) // a GPU's kernels are there
	for seconds := 1; ; seconds *= 2 {            // a busy machine may take longer than a second for the answer
		began := time.Now()
		answer, err := r.http.Get(fmt.Sprintf("%s/debug/trace?seconds=%d", r.url, seconds))
		require.NoError(t, err)
		require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
		status, body := r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":4,"ignore_eos":true}`)
		require.Equal(t, http.StatusOK, status, body)
		spans, err := chrome.Read(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Less(t, time.Since(began), patient)
		a := stall.Of("house/device/compute", spans)
		require.GreaterOrEqual(t, a.Explained(), 0.99)
		steps := [2]int{a.Kinds[stall.Prefill].Steps, a.Kinds[stall.Decode].Steps}
		if off := a.Wall().Seconds() - float64(seconds); steps == [2]int{1, 3} && -0.5 < off && off < 0.5 {
			break
		}
		require.Less(t, seconds, 16, "%v steps in %v", steps, a.Wall())
	}

	var open []*http.Response
	for range mostTraces {
		answer, err := r.http.Get(r.url + "/debug/trace?seconds=300")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		open = append(open, answer)
	}
	status, body = r.get(t, "/debug/trace?seconds=1")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "4 traces are being written already")
	for _, answer := range open {
		require.NoError(t, answer.Body.Close())
	}
	require.Eventually(t, func() bool { return r.traces.Load() == 0 }, patient, time.Millisecond, "they end as their clients go")

	for _, seconds := range []string{"0", "301", "-1", "1.5", "", "x"} {
		status, body := r.get(t, "/debug/trace?seconds="+seconds)
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, body, "want a whole number from 1 to 300")
	}
}
