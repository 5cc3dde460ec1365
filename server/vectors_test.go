package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// startFixture serves a model of the reference data that makes vectors. It is called "small".
func startFixture(t *testing.T, edit func(*gguf.File) *gguf.File) *running {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "bert.gguf"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	if edit != nil {
		f = edit(f)
	}
	return start(t, Options{}, func(c *actors.Config) { c.Model = actors.Model{File: f, Name: "small"} })
}

// pooling has a file pool its rows in another way, and adds a classifier of the first one.
func pooling(t *testing.T, kind, classes int) func(*gguf.File) *gguf.File {
	return func(f *gguf.File) *gguf.File {
		f.Meta.Set("bert.pooling_type", uint32(kind))
		all := slices.Clone(f.Tensors)
		if classes > 0 {
			f.Meta.Set("bert.classifier.output_labels", make([]string, classes))
			all = append(all, gguf.Tensor{Name: "cls.output.weight", Type: quant.F32, Shape: []int{64, classes}})
		}
		var weight, out []byte
		for i := range 64 * classes {
			weight = binary.LittleEndian.AppendUint32(weight, math.Float32bits(float32(i%7)/8-0.25))
		}
		buffer := bytes.NewBuffer(out)
		require.NoError(t, gguf.Write(buffer, &f.Meta, all, func(tensor *gguf.Tensor, w io.Writer) error {
			data := weight
			if old, ok := f.Tensor(tensor.Name); ok {
				data = f.Bytes(old)
			}
			_, err := w.Write(data)
			return err
		}))
		made, err := gguf.Parse("made", buffer.Bytes())
		require.NoError(t, err)
		return made
	}
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, name)
}

// rounded has so few digits that every set of kernels writes the same.
func rounded(row []float64) (short []string) {
	for _, x := range row {
		short = append(short, strconv.FormatFloat(x, 'f', 3, 64))
	}
	return short
}

// TestEmbeddings compares a fixture's text with the mean of the rows that transformers computes, by OpenAI's client.
func TestEmbeddings(t *testing.T) {
	var fixture struct{ Tokens []int64 }
	dir := filepath.Join(testref.Dir(t), "fixtures")
	text, err := os.ReadFile(filepath.Join(dir, "bert.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &fixture))
	rows, err := os.ReadFile(filepath.Join(dir, "bert.embd.f32"))
	require.NoError(t, err)
	want, square := make([]float64, 64), 0.0
	for i := range len(rows) / 4 {
		want[i%64] += float64(math.Float32frombits(binary.LittleEndian.Uint32(rows[4*i:])))
	}
	r := startFixture(t, nil)
	client := r.client()
	got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "small", Dimensions: openai.Int(16),
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{fixture.Tokens, fixture.Tokens[:3]}},
	})
	require.NoError(t, err)
	require.Len(t, got.Data, 2)
	require.Len(t, got.Data[0].Embedding, 16)
	require.EqualValues(t, len(fixture.Tokens)+3, got.Usage.TotalTokens)
	require.Equal(t, "small", got.Model)
	for _, x := range want[:16] {
		square += x * x
	}
	for i, x := range got.Data[0].Embedding {
		require.InDelta(t, want[i]/math.Sqrt(square), x, 2e-3, i)
	}
	require.NotEqual(t, got.Data[0].Embedding, got.Data[1].Embedding)
	require.Contains(t, r.log.String(), `"path":"/v1/embeddings","status":200,"prompt_tokens":35`)
}

type embeddingList struct {
	Data []struct {
		Index     int
		Embedding json.RawMessage
	}
	Usage map[string]int
}

func (r *running) embed(t *testing.T, body string) (list embeddingList) {
	t.Helper()
	status, text := r.post(t, "/v1/embeddings", body)
	require.Equal(t, 200, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	return list
}

// TestEmbeddingForms: one text alone, among many and as base64 is the same vector; a large body comes in pieces.
func TestEmbeddingForms(t *testing.T) {
	r := startFixture(t, nil)
	one := r.embed(t, `{"input":"entry 7"}`)
	var row []float32
	require.NoError(t, json.Unmarshal(one.Data[0].Embedding, &row))
	texts := make([]string, 500)
	for i := range texts {
		texts[i] = "entry " + strconv.Itoa(i%10)
	}
	input, _ := json.Marshal(texts)
	many := r.embed(t, `{"input":`+string(input)+`}`)
	require.Len(t, many.Data, len(texts))
	for i, d := range many.Data {
		require.Equal(t, i, d.Index)
		require.Equal(t, i%10 == 7, string(d.Embedding) == string(one.Data[0].Embedding), i)
	}
	require.Equal(t, 500*one.Usage["prompt_tokens"], many.Usage["prompt_tokens"])
	require.Equal(t, many.Usage["prompt_tokens"], many.Usage["total_tokens"])
	var coded []byte
	require.NoError(t, json.Unmarshal(r.embed(t, `{"input":["entry 7"],"encoding_format":"base64"}`).Data[0].Embedding, &coded))
	var bits []byte
	for _, x := range row {
		bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(x))
	}
	require.Equal(t, bits, coded)
	var short []float64
	require.NoError(t, json.Unmarshal(r.embed(t, `{"input":"entry 7","dimensions":4}`).Data[0].Embedding, &short))
	requireGolden(t, "embedding", strings.Join(rounded(short), " ")+"\n")
}

func TestEmbeddingFaults(t *testing.T) {
	r := startFixture(t, nil)
	long := `"` + strings.Repeat("a b c ", 100) + `"`
	for _, c := range []struct{ path, body, param, code, text string }{
		{"embeddings", `{}`, "input", "missing_required_parameter", "input is missing"},
		{"embeddings", `{"input":""}`, "input", "invalid_value", "entry 0 is empty"},
		{"embeddings", `{"input":["a",""]}`, "input", "invalid_value", "entry 1 is empty"},
		{"embeddings", `{"input":[]}`, "input", "invalid_value", "want a string, a list"},
		{"embeddings", `{"input":[{}]}`, "input", "invalid_value", "want a string, a list"},
		{"embeddings", `{"input":[[1],[512]]}`, "input", "invalid_value", "has 0 to 511"},
		{"embeddings", `{"input":["a"` + strings.Repeat(`,"a"`, 2048) + `]}`, "input", "invalid_value", "more than 2048 entries"},
		{"embeddings", `{"input":["a",` + long + `]}`, "input", "context_length_exceeded", "input, entry 1: "},
		{"embeddings", `{"input":"a","dimensions":65}`, "dimensions", "invalid_value", "from 1 to 64"},
		{"embeddings", `{"input":"a","encoding_format":"hex"}`, "encoding_format", "invalid_value", `"base64"`},
		{"rerank", `{"query":"a","documents":["b"]}`, "model", "model_not_supported", "POST /v1/embeddings"},
		{"chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, "model", "model_not_supported", "POST /v1/embeddings"},
		{"completions", `{"prompt":"a"}`, "model", "model_not_supported", "turns texts into vectors"},
	} {
		status, body := r.post(t, "/v1/"+c.path, c.body)
		requireFault(t, status, body, c.param, c.code, c.text)
	}
	generating := start(t, Options{}, nil)
	status, body := generating.post(t, "/v1/embeddings", `{"input":"a"}`)
	requireFault(t, status, body, "model", "model_not_supported", "generates text: ask one here that turns texts into vectors (sluice pull has them by name")
	rowwise := startFixture(t, pooling(t, 0, 0))
	status, body = rowwise.post(t, "/v1/embeddings", `{"input":"a"}`)
	requireFault(t, status, body, "model", "model_not_supported", "pooling_type")
	classes := startFixture(t, pooling(t, 4, 3))
	status, body = classes.post(t, "/v1/rerank", `{"query":"a","documents":["b"]}`)
	requireFault(t, status, body, "model", "model_not_supported", "classes of texts")
}

func requireFault(t *testing.T, status int, body, param, code, text string) {
	t.Helper()
	require.Equal(t, 400, status, body)
	var got struct {
		Error struct{ Message, Type, Param, Code string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, [3]string{"invalid_request_error", param, code}, [3]string{got.Error.Type, got.Error.Param, got.Error.Code}, body)
	require.Contains(t, got.Error.Message, text)
}

// TestRerank scores documents, the best first, each as if it was the only one.
func TestRerank(t *testing.T) {
	r := startFixture(t, pooling(t, 4, 1))
	type results struct {
		Results []struct {
			Index    int
			Score    float64 `json:"relevance_score"`
			Document *struct{ Text string }
		}
		Usage map[string]int
	}
	ask := func(body string) (got results) {
		status, text := r.post(t, "/v1/rerank", body)
		require.Equal(t, 200, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		return got
	}
	all := ask(`{"query":"cat","documents":["dog",{"text":"a cat"},"x"],"return_documents":true}`)
	require.Len(t, all.Results, 3)
	documents, golden := []string{"dog", "a cat", "x"}, ""
	for i, x := range all.Results {
		require.True(t, x.Score > 0 && x.Score < 1 && (i == 0 || x.Score <= all.Results[i-1].Score))
		require.Equal(t, documents[x.Index], x.Document.Text)
		alone, _ := json.Marshal(x.Document.Text)
		require.Equal(t, x.Score, ask(`{"query":"cat","documents":[` + string(alone) + `]}`).Results[0].Score)
		golden += strconv.Itoa(x.Index) + " " + strconv.FormatFloat(x.Score, 'f', 2, 64) + "\n" // as devices agree on
	}
	requireGolden(t, "rerank", golden)
	best := ask(`{"query":"cat","documents":["dog","a cat","x"],"top_n":1}`)
	require.Len(t, best.Results, 1)
	require.Equal(t, all.Results[0].Index, best.Results[0].Index)
	require.Nil(t, best.Results[0].Document)
	require.NotEqual(t, best.Results[0].Score, ask(`{"query":"dog","documents":["dog","a cat","x"]}`).Results[0].Score, "the query counts")
	v, pairs := r.engine.Vocab(), 0
	for _, d := range documents { // [CLS] query [SEP] document [SEP]
		pairs += 3 + len(mustEncode(t, v, "cat")) + len(mustEncode(t, v, d))
	}
	require.Equal(t, pairs, all.Usage["total_tokens"])
	for _, c := range []struct{ path, body, param, code, text string }{
		{"rerank", `{"documents":["b"]}`, "query", "missing_required_parameter", "query is missing"},
		{"rerank", `{"query":"a"}`, "documents", "missing_required_parameter", "documents is missing"},
		{"rerank", `{"query":"a","documents":[]}`, "documents", "invalid_value", "want a list"},
		{"rerank", `{"query":"a","documents":["b",{"title":"c"}]}`, "documents", "invalid_value", "entry 1 is empty"},
		{"rerank", `{"query":"a","documents":["b"],"top_n":0}`, "top_n", "invalid_value", "top_n is 0"},
		{"rerank", `{"query":"a","documents":["b","` + strings.Repeat("c d ", 200) + `"]}`, "documents", "context_length_exceeded", "entry 1: "},
		{"embeddings", `{"input":"a"}`, "model", "model_not_supported", "POST /v1/rerank"},
		{"completions", `{"prompt":"a"}`, "model", "model_not_supported", "scores documents for a query"},
	} {
		status, body := r.post(t, "/v1/"+c.path, c.body)
		requireFault(t, status, body, c.param, c.code, c.text)
	}
}

func mustEncode(t *testing.T, v *token.Vocab, text string) []int32 {
	t.Helper()
	ids, err := v.Encode(nil, text, token.Options{})
	require.NoError(t, err)
	return ids
}

// TestEmbedUnloads: keep_alive 0 unloads a model when its vectors are made; other values change nothing.
func TestEmbedUnloads(t *testing.T) {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "bert.gguf"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	engine := startEngine(t, func(c *actors.Config) { c.Model = actors.Model{File: f, Name: "small"} })
	m := &several{}
	m.set(map[string]*actors.Engine{"small": engine}, "small")
	r := startServer(t, engine, Options{}, func(o Options) *Server {
		s := speaking(o, func(s *answer.Service) []answer.Dialect { return dialects(s, nil) })
		s.Loaded(m)
		return s
	})
	for i, c := range []struct{ path, body string }{
		{"/api/embed", `"input":"a","keep_alive":"5m"`}, {"/api/embed", `"input":"a","keep_alive":0`},
		{"/api/embeddings", `"prompt":"a","keep_alive":"0s"`},
	} {
		status, body := r.post(t, c.path, `{"model":"small",`+c.body+`}`)
		require.Equal(t, http.StatusOK, status, body)
		require.Eventually(t, func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.unloaded) == i
		}, patient, time.Millisecond)
	}
}
