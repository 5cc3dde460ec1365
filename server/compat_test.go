package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/lora"
)

// TestMetricsCompat: other servers' names are there where they are asked for, all of docs/metrics.md, with values.
func TestMetricsCompat(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	listed := names("`((?:vllm|llamacpp):\\w+)`", text)
	require.Len(t, listed, 14+11)
	listed = slices.DeleteFunc(listed, func(name string) bool { return name == "vllm:lora_requests_info" }) // there are no adapters
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
		model := `{engine="0",model_name="` + r.engine.Info.Name + `"}`
		for _, line := range []string{
			"vllm:generation_tokens_total" + model + " 4", "vllm:time_to_first_token_seconds_count" + model + " 1",
			"vllm:inter_token_latency_seconds_count" + model + " 3", "vllm:num_requests_running" + model + " 0",
			"llamacpp:tokens_predicted_total 4", "llamacpp:n_decode_total 4", "llamacpp:n_busy_slots_per_decode 1",
		} {
			require.Contains(t, page, "\n"+line+"\n")
		}
		require.Regexp(t, `(?m)^vllm:cache_config_info\{block_size="\d+",cache_dtype="f16",enable_prefix_caching="True",`+
			`engine="0",model_name="[^"]+",num_gpu_blocks="[1-9]\d*"\} 1$`, page)
		require.Regexp(t, `(?m)^llamacpp:predicted_tokens_seconds [1-9]`, page)
	}
}

// TestLoraInfo: which adapters requests use is told as vLLM does, with the time.
func TestLoraInfo(t *testing.T) {
	engine := startEngine(t, func(c *actors.Config) { c.Adapted, c.Sequences = true, 5 })
	for i, name := range []string{"one", "two", "three"} {
		require.NoError(t, engine.AddAdapter(actors.Adapter{Name: name, Open: func(p *ir.Program) (*lora.Loaded, error) {
			a := backendtest.RandomAdapter(rand.New(rand.NewPCG(1, 2)), p, 4, 1)
			return &lora.Loaded{Adapter: *a, Bytes: 1, Digest: [32]byte{byte(i)}}, nil
		}}, true))
	}
	o := Options{MetricsCompat: []Compat{CompatVLLM}}
	r := startServer(t, engine, o, func(o Options) *Server { return New(Engines(engine), o) })
	const line = `(?m)^vllm:lora_requests_info\{engine="0",max_lora="5",model_name="[^"]+",running_lora_adapters="%s",` +
		`waiting_lora_adapters=""\} 1[.][0-9]+e\+09$`
	_, page := r.get(t, "/metrics")
	require.Regexp(t, fmt.Sprintf(line, ""), page)
	var open []*actors.Stream
	for _, name := range []string{"one", "three"} {
		s, err := engine.Generate(actors.Request{Tokens: []int32{1, 2, 3}, MaxTokens: 1000, Sampling: engine.Info.Sampling,
			Adapters: []actors.Adapting{{Name: name, Scale: 1}}})
		require.NoError(t, err)
		open = append(open, s)
	}
	_, page = r.get(t, "/metrics")
	require.Regexp(t, fmt.Sprintf(line, "one,three"), page)
	for _, s := range open {
		s.Close()
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
