package server

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricsCompat: other servers' names are there where they are asked for, all of docs/metrics.md, with values.
func TestMetricsCompat(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	listed := names("`((?:vllm|llamacpp):\\w+)`", text)
	require.Len(t, listed, 13+11)
	for _, asked := range [][]Compat{nil, {CompatVLLM, CompatLlamaCPP}} {
		r := start(t, Options{MetricsCompat: asked}, nil)
		status, body := r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":4,"ignore_eos":true}`)
		require.Equal(t, http.StatusOK, status, body)
		_, page := r.get(t, "/metrics")
		if found := names(`(?m)^# TYPE ((?:vllm|llamacpp):\w+) `, []byte(page)); asked == nil {
			require.Empty(t, found)
			continue
		} else {
			require.Equal(t, listed, found)
		}
		model := `{model_name="` + r.engine.Info.Name + `"}`
		for _, line := range []string{
			"vllm:generation_tokens_total" + model + " 4", "vllm:time_to_first_token_seconds_count" + model + " 1",
			"vllm:inter_token_latency_seconds_count" + model + " 3", "vllm:num_requests_running" + model + " 0",
			"llamacpp:tokens_predicted_total 4", "llamacpp:n_decode_total 4", "llamacpp:n_busy_slots_per_decode 1",
		} {
			require.Contains(t, page, "\n"+line+"\n")
		}
		require.Regexp(t, `(?m)^vllm:cache_config_info\{block_size="\d+",cache_dtype="f16",enable_prefix_caching="True",`+
			`model_name="[^"]+",num_gpu_blocks="[1-9]\d*"\} 1$`, page)
		require.Regexp(t, `(?m)^llamacpp:predicted_tokens_seconds [1-9]`, page)
	}
}

// TestDashboard: each query of the dashboard asks for metrics that there are.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../docs/grafana.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Definition string } }
	}
	require.NoError(t, json.Unmarshal(text, &board))
	require.Greater(t, len(board.Panels), 10)
	r := start(t, Options{}, nil)
	r.post(t, "/v1/completions", `{"prompt":"one two","max_tokens":2}`)
	_, page := r.get(t, "/metrics")
	there := map[string]bool{}
	for _, name := range names(`(?m)^# TYPE (\w+) `, []byte(page)) {
		there[name] = true
	}
	metric := regexp.MustCompile(`(?:sluice|process|go)_\w+`)
	check := func(title, query string) {
		found := metric.FindAllString(query, -1)
		require.NotEmpty(t, found, title)
		for _, name := range found {
			require.True(t, there[strings.TrimSuffix(name, "_bucket")], "%s: %s", title, name)
		}
	}
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			check(p.Title, q.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if v.Definition != "" {
			check("variable", v.Definition)
		}
	}
}
