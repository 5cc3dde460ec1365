package server

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/stages/swap"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// several are models that come and go.
type several struct {
	mu      sync.Mutex
	names   []string
	engines map[string]*actors.Engine
	headers map[string]*actors.Header // of models that do not run

	unloaded []string
	faults   map[string]error
}

func (s *several) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names
}

func (s *several) Engine(name string) *actors.Engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engines[name]
}

func (s *several) Use(_ context.Context, name string) (*actors.Engine, func(), error) {
	if e := s.Engine(name); e != nil {
		return e, func() {}, nil
	}
	return nil, nil, actors.ErrUnknown
}

func (s *several) Unload(name string) error {
	if s.Engine(name) == nil {
		return actors.ErrUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unloaded = append(s.unloaded, name)
	return nil
}

func (s *several) Status(name string) actors.ModelStatus {
	if s.Engine(name) == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return actors.ModelStatus{Phase: swap.Loading, Waiting: 3, Done: 1, Total: 4, Fault: s.faults[name]}
	}
	return actors.ModelStatus{Phase: swap.Ready}
}

func (s *several) Header(name string) *actors.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[name]
}

// set replaces them; names may name one that is not there any more.
func (s *several) set(engines map[string]*actors.Engine, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names, s.engines = names, engines
}

// tiny is a random model with 512 tokens, whose K and V heads are few.
func tiny(t *testing.T, cfg *actors.Config) {
	file, err := gguf.Open(filepath.Join("..", "actors", "testdata", "qwen3.gguf"))
	require.NoError(t, err)
	cfg.File, cfg.Context = file, 256
}

func startSeveral(t *testing.T) (*running, *several) {
	m := &several{}
	small := startEngine(t, func(cfg *actors.Config) { tiny(t, cfg) })
	large := startEngine(t, nil)
	m.set(map[string]*actors.Engine{"org/large": large, "small": small}, "org/large", "small")
	return startServer(t, large, Options{}, func(o Options) *Server {
		s := speaking(o, func(s *answer.Service) []answer.Dialect { return append(dialects(s, nil), toy(s)) })
		s.Loaded(m)
		return s
	}), m
}

// bytesOf is the size of all tensors of a file.
func bytesOf(f *gguf.File) (sum int64) {
	for i := range f.Tensors {
		sum += f.Tensors[i].Size
	}
	return sum
}

const (
	unknownModel = `{"error":{"message":"the model nobody is not found here: those that are have the names \"org/large\", \"small\"",` +
		`"type":"invalid_request_error","param":"model","code":"model_not_found"}}`
	noModel = `{"error":{"message":"model is missing: those that are have the names \"org/large\", \"small\"",` +
		`"type":"invalid_request_error","param":"model","code":"missing_required_parameter"}}`
)

func TestSeveralModels(t *testing.T) {
	r, m := startSeveral(t)
	const ask = `{"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0,"max_tokens":20,"model":"%s"}`
	status, body := r.post(t, "/v1/chat/completions", fmt.Sprintf(ask, "org/large"))
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"model":"org/large"`)
	require.Contains(t, body, "Paris")
	status, body = r.post(t, "/v1/completions", `{"prompt":[1,2,511],"max_tokens":5,"model":"small","temperature":0,"stream":true}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"model":"small"`)
	status, body = r.post(t, "/v1/completions", `{"prompt":[512],"max_tokens":5,"model":"small"}`)
	require.Equal(t, http.StatusBadRequest, status, "it is decoded for this model")
	require.Contains(t, body, "the vocabulary has 0 to 511")

	for path, body := range map[string]string{
		"/v1/chat/completions": fmt.Sprintf(ask, "nobody"), "/v1/completions": `{"prompt":"a","model":"nobody"}`,
	} {
		status, got := r.post(t, path, body)
		require.Equal(t, http.StatusNotFound, status, path)
		require.Equal(t, unknownModel, got)
	}
	status, body = r.get(t, "/v1/models/nobody")
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, unknownModel, body)
	status, body = r.post(t, "/v1/completions", `{"prompt":"a"}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, noModel, body)
	status, body = r.post(t, "/toy/say", `{"text":"a","model":"nobody"}`)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, `{"oops":"the model nobody is not found here: those that are have the names \"org/large\", \"small\""}`, body)

	_, body = r.get(t, "/")
	require.Contains(t, body, "sluice serves the models org/large, small with")
	_, body = r.get(t, "/health")
	require.Equal(t, `{"status":"ok"}`, body)
	_, body = r.get(t, "/metrics")
	require.Contains(t, body, `sluice_requests_total{model="org/large"} 1`)
	require.Contains(t, body, `sluice_kv_blocks{model="small",state="free"}`)
	_, body = r.get(t, "/debug/actors")
	require.Contains(t, body, `"models":[{"name":"org/large",`)

	large, small := m.Engine("org/large"), m.Engine("small")
	m.set(map[string]*actors.Engine{"small": large, "org/large": small}, "org/large", "small")
	status, body = r.post(t, "/v1/chat/completions", fmt.Sprintf(ask, "small"))
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "Paris", "another engine has the name now")
	status, _ = r.post(t, "/v1/completions", `{"prompt":[511,512],"max_tokens":5,"model":"small"}`)
	require.Equal(t, http.StatusOK, status, "and what was known of the one before is forgotten")

	m.set(map[string]*actors.Engine{"small": large}, "small")
	status, body = r.post(t, "/v1/chat/completions", fmt.Sprintf(ask, "nobody"))
	require.Equal(t, http.StatusOK, status, "a lone model has any name")
	require.Contains(t, body, `"model":"small"`)
	status, body = r.get(t, "/v1/models/nobody")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, `the model nobody is not found here: the one that is has the name \"small\"`)
}

// TestNoName: a path that lacks a model's name does not call it empty.
func TestNoName(t *testing.T) {
	r := start(t, Options{}, nil)
	status, body := r.get(t, "/v1/models/")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "a model without a name is not found here: the one that is has the name")
}

// TestModelList: GET /v1/models says how large each is. A model whose head is apart from its embeddings has both.
func TestModelList(t *testing.T) {
	r, m := startSeveral(t)
	embedded, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	const talks = `["completion","tools","insert"]`
	object := func(name, can string, f *gguf.File) string {
		i := m.Engine(name).Info
		return fmt.Sprintf(`{"id":"%s","object":"model","created":0,"owned_by":"sluice","status":{"value":"loaded"},"capabilities":%s,"meta":{"architecture":"%s","n_vocab":%d,`+
			`"n_ctx_train":%d,"n_ctx":%d,"n_params":%d,"size":%d,`+
			`"kv_type":"f16","kv_bytes_per_token":%d,"kv_bits_k":16,"kv_bits_v":16}}`, name, can, i.Architecture, i.Vocab, i.Trained,
			i.Context, i.Parameters, bytesOf(f), i.KV.Bytes)
	}
	list := func() string {
		status, body := r.get(t, "/v1/models")
		require.Equal(t, http.StatusOK, status)
		return steady(body)
	}
	var small actors.Config
	tiny(t, &small)
	defer small.File.Close()
	require.Equal(t, `{"object":"list","data":[`+object("org/large", talks, embedded)+`,`+object("small", `["completion"]`, small.File)+`]}`, list())
	status, body := r.get(t, "/v1/models/org/large")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, object("org/large", talks, embedded), steady(body))

	llama := filepath.Join(testref.Dir(t), "fixtures", "llama.gguf")
	f, err := gguf.Open(llama)
	require.NoError(t, err)
	_, untied := f.Tensor("output.weight")
	require.True(t, untied)
	engine := startEngine(t, func(cfg *actors.Config) { cfg.File, cfg.Context = f, 256 })
	m.set(map[string]*actors.Engine{"untied": engine}, "untied", "gone")
	const gone = `{"id":"gone","object":"model","created":0,"owned_by":"sluice","status":{"value":"loading","progress":0.25}}`
	require.Equal(t, `{"object":"list","data":[`+object("untied", `["completion"]`, f)+`,`+gone+`]}`, list(), "one that does not run is listed")
	_, body = r.get(t, "/api/tags")
	require.Contains(t, body, `{"name":"gone","model":"gone",`)
	_, body = r.get(t, "/api/ps")
	require.Contains(t, body, `"untied"`)
	require.NotContains(t, body, "gone")
	status, body = r.post(t, "/api/show", `{"model":"gone:latest"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"capabilities":["completion"]`, "it is not loaded for that")
	_, body = r.get(t, "/metrics")
	require.Contains(t, body, `sluice_model_loaded{model="untied"} 1`)
	require.Contains(t, body, `sluice_model_loaded{model="gone"} 0`)
	require.Contains(t, body, `sluice_model_waited_for{model="gone"} 3`)
	m.set(map[string]*actors.Engine{"org/large": r.engine}, "org/large")
}
