package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/token"
)

// TestLlamaTexts: what llama-server says of tokens and prompts is what the engine works with.
func TestLlamaTexts(t *testing.T) {
	const bos = 5
	r := start(t, Options{}, func(c *actors.Config) {
		c.File.Meta.Set("tokenizer.ggml.bos_token_id", uint32(bos))
		c.File.Meta.Set("tokenizer.ggml.add_bos_token", true)
	})
	ask := func(path, body string, to any) {
		status, text := r.post(t, path, body)
		require.Equal(t, 200, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), to), text)
	}
	v := r.engine.Vocab()
	const text = "Grüße 🚀 <|im_end|> 12"
	var got struct{ Tokens []int32 }
	for body, o := range map[string]token.Options{
		`{"content":"` + text + `"}`:                       {ParseSpecial: true},
		`{"content":"` + text + `","parse_special":false}`: {},
		`{"content":"` + text + `","add_special":true}`:    {ParseSpecial: true, AddSpecial: true},
	} {
		want, err := v.Encode(nil, text, o)
		require.NoError(t, err)
		ask("/tokenize", body, &got)
		require.Equal(t, want, got.Tokens, body)
	}
	var pieces struct {
		Tokens []struct {
			ID    int32
			Piece any
		}
	}
	ask("/tokenize", `{"content":"`+text+`","with_pieces":true}`, &pieces)
	var spelled []byte
	for _, p := range pieces.Tokens {
		switch piece := p.Piece.(type) {
		case string:
			spelled = append(spelled, piece...)
		case []any:
			for _, b := range piece {
				spelled = append(spelled, byte(b.(float64)))
			}
		}
	}
	require.Equal(t, text, string(spelled))
	require.True(t, slices.ContainsFunc(pieces.Tokens, func(p struct {
		ID    int32
		Piece any
	}) bool {
		_, bytes := p.Piece.([]any)
		return bytes
	}), "some tokens are part of a character")
	ask("/tokenize", `{"content":["`+text+`",[5,6]]}`, &got)
	require.Equal(t, []int32{5, 6}, got.Tokens[len(got.Tokens)-2:])
	ask("/tokenize", `{"content":["a","b"],"add_special":true}`, &got)
	require.Len(t, got.Tokens, 3, "special tokens are not put into the middle")
	require.EqualValues(t, bos, got.Tokens[0])
	for _, n := range []int{0, 1, 511, 512, 513, 1024, 3000} { // it is spelled some at a time
		ask("/tokenize", `{"content":"`+strings.Repeat(" a", n)+`"}`, &got)
		want, err := v.Encode(nil, strings.Repeat(" a", n), token.Options{})
		require.NoError(t, err)
		require.Len(t, got.Tokens, len(want))
	}
	ask("/tokenize", `{"content":"`+text+`"}`, &got)
	ids, err := json.Marshal(got)
	require.NoError(t, err)
	var back struct{ Content string }
	ask("/detokenize", strings.Replace(string(ids), "Tokens", "tokens", 1), &back)
	require.Equal(t, text, back.Content)

	var made struct{ Prompt string }
	ask("/apply-template", `{`+capitalOfFrance+`}`, &made)
	require.True(t, strings.HasSuffix(made.Prompt, "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"),
		made.Prompt)
	ask("/apply-template", `{`+capitalOfFrance+`,"add_generation_prompt":false}`, &made)
	require.True(t, strings.HasSuffix(made.Prompt, "<|im_end|>\n"), made.Prompt)
	require.Zero(t, r.engine.Snapshot().Requests, "nothing is computed")
}

// TestLlamaAnswers: completions and gaps, whole and in events.
func TestLlamaAnswers(t *testing.T) {
	r := start(t, Options{}, func(c *actors.Config) { c.Name = "demo" })
	type part struct {
		Index   int
		Content string
		Tokens  []int32
		Stop    bool
		Why     string `json:"stop_type"`
		Word    string `json:"stopping_word"`
		Written int    `json:"tokens_predicted"`
		Read    int    `json:"tokens_evaluated"`
		Probs   []struct {
			ID    int32
			Token string
			Top   []struct{ ID int32 } `json:"top_logprobs"`
		} `json:"completion_probabilities"`
		Settings struct {
			MaxTokens int `json:"n_predict"`
		} `json:"generation_settings"`
	}
	ask := func(path, body string) (one part) {
		status, text := r.post(t, path, body)
		require.Equal(t, 200, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), &one), text)
		return one
	}
	const prompt = `"prompt":"<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n","temperature":0`
	const want = "The capital of France is Paris."
	whole := ask("/completion", `{`+prompt+`,"n_probs":2,"return_tokens":true}`)
	require.Equal(t, []any{want, true, "eos", "", -1},
		[]any{whole.Content, whole.Stop, whole.Why, whole.Word, whole.Settings.MaxTokens})
	require.Len(t, whole.Tokens, whole.Written-1)
	require.Len(t, whole.Probs, whole.Written-1)
	require.Equal(t, want, string(r.engine.Vocab().Decode(nil, whole.Tokens, true)))
	require.Len(t, whole.Probs[0].Top, 2)
	require.Equal(t, []int32{whole.Tokens[0], whole.Tokens[0]}, []int32{whole.Probs[0].ID, whole.Probs[0].Top[0].ID})
	word := ask("/completions", `{`+prompt+`,"stop":[" France"]}`)
	require.Equal(t, []any{"The capital of", "word", " France"}, []any{word.Content, word.Why, word.Word})
	short := ask("/completion", `{`+prompt+`,"n_predict":2}`)
	require.Equal(t, []any{"The capital", "limit", 2, 2}, []any{short.Content, short.Why, short.Written, short.Settings.MaxTokens})
	for _, stop := range []string{"", `,"stop":["The"],"n_probs":3,"return_tokens":true`} {
		none := ask("/completion", `{`+prompt+stop+`,"n_predict":0}`)
		require.Equal(t, []any{"", "limit", "", 0, 0, whole.Read},
			[]any{none.Content, none.Why, none.Word, none.Written, none.Settings.MaxTokens, none.Read})
		require.Empty(t, none.Tokens)
		require.Empty(t, none.Probs)
	}

	status, text := r.post(t, "/completion", `{`+prompt+`,"stream":true,"return_tokens":true}`)
	require.Equal(t, 200, status)
	said, ids := "", []int32(nil)
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	for i, event := range events {
		var p part
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &p), event)
		require.Equal(t, i == len(events)-1, p.Stop)
		said, ids = said+p.Content, append(ids, p.Tokens...)
	}
	require.Equal(t, want, said)
	require.Equal(t, whole.Tokens, ids)

	status, text = r.post(t, "/completion", `{"prompt":["one two","the"],"temperature":0,"n_predict":2}`)
	require.Equal(t, 200, status, text)
	var several []part
	require.NoError(t, json.Unmarshal([]byte(text), &several))
	require.Len(t, several, 2)
	require.Equal(t, []int{0, 1}, []int{several[0].Index, several[1].Index})

	gap := ask("/infill", `{"input_prefix":"a","input_suffix":"b","n_predict":2,"temperature":0}`)
	require.Equal(t, []int{5, 2}, []int{gap.Read, gap.Written})
}

// TestPathsWithoutVersion: clients of llama-server leave /v1 out of their base URLs.
func TestPathsWithoutVersion(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, path := range []string{"/v1", ""} {
		status, text := r.post(t, path+"/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1}`)
		require.Equal(t, 200, status, text)
		require.Contains(t, text, `"object":"chat.completion"`)
		status, text = r.post(t, path+"/responses", `{"input":"Hi","max_output_tokens":1}`)
		require.Equal(t, 200, status, text)
		status, text = r.get(t, path+"/models")
		require.Equal(t, 200, status, text)
		for _, name := range []string{"/rerank", "/reranking"} {
			status, text = r.post(t, path+name, `{"query":"a","documents":["b"]}`)
			require.Equal(t, 400, status, text)
			require.Contains(t, text, "model_not_supported", path+name)
		}
	}
}

// TestSeedsComeBack: the seed that an answer tells makes the same answer again, from a client that has doubles alone.
func TestSeedsComeBack(t *testing.T) {
	r := start(t, Options{}, nil)
	ask := func(seed string) (content string, said float64) {
		status, text := r.post(t, "/completion", `{"prompt":"Once","temperature":2,"n_predict":20`+seed+`}`)
		require.Equal(t, 200, status, text)
		var got struct {
			Content  string
			Settings struct{ Seed float64 } `json:"generation_settings"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		return got.Content, got.Settings.Seed
	}
	one, seed := ask("")
	again, _ := ask(fmt.Sprintf(`,"seed":%.0f`, seed))
	require.Equal(t, one, again)
}

func TestLlamaProps(t *testing.T) {
	r := start(t, Options{}, nil)
	_, text := r.get(t, "/props")
	var got struct {
		Settings struct {
			Context int `json:"n_ctx"`
			Params  struct {
				Temp float32 `json:"temperature"`
			}
		} `json:"default_generation_settings"`
		Slots    int    `json:"total_slots"`
		Template string `json:"chat_template"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	info := r.engine.Info
	require.Equal(t, []any{info.Context, info.Sampling.Temp, info.Sequences},
		[]any{got.Settings.Context, got.Settings.Params.Temp, got.Slots})
	require.Contains(t, got.Template, "<|im_start|>")
	taken := func(n int) func() bool {
		return func() bool {
			status, text := r.get(t, "/slots?fail_on_no_slot=1")
			return status == http.StatusOK && strings.HasPrefix(text, `[{"id":0,"id_task":-1,"n_ctx":`) &&
				strings.Count(text, `"is_processing":true`) == n && strings.Count(text, `"id":`) == info.Sequences
		}
	}
	require.True(t, taken(0)())
	var all []*net.TCPConn
	for range info.Sequences {
		all = append(all, r.dial(t, "/completion", endless(true, "")))
		if len(all) < info.Sequences {
			require.Eventually(t, taken(len(all)), patient, time.Millisecond)
		}
	}
	require.Eventually(t, func() bool {
		status, text := r.get(t, "/slots?fail_on_no_slot=1")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "slots are taken: ask again later")
	}, patient, time.Millisecond)
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, taken(0), patient, time.Millisecond)
	status, text := r.get(t, "/completion")
	require.Equal(t, 405, status)
	require.Contains(t, text, `{"error":{"code":405,`)
}

// TestLlamaEmbeds: /embedding has the vectors of the other dialects, in llama-server's shape.
func TestLlamaEmbeds(t *testing.T) {
	r := startFixture(t, nil)
	var theirs struct{ Embeddings [][]float64 }
	status, body := r.post(t, "/api/embed", `{"model":"small","input":["a","b c"]}`)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &theirs))
	for path, field := range map[string]string{"/embedding": "content", "/embeddings": "input"} {
		var got []struct {
			Index     int
			Embedding [][]float64
		}
		status, body = r.post(t, path, `{"`+field+`":["a","b c"]}`)
		require.Equal(t, 200, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Len(t, got, 2)
		for i, g := range got {
			require.Equal(t, i, g.Index)
			require.Equal(t, theirs.Embeddings[i], g.Embedding[0])
		}
	}
	var raw []struct{ Embedding [][]float64 }
	status, body = r.post(t, "/embedding", `{"content":"a","embd_normalize":-1}`)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &raw))
	require.NotEqual(t, theirs.Embeddings[0], raw[0].Embedding[0])
	status, body = r.post(t, "/embedding", `{"content":"a","embd_normalize":1}`)
	require.Equal(t, 400, status)
	require.Contains(t, body, "embd_normalize is 1: want 2 (length 1) or -1 (as they are)")
	status, body = r.post(t, "/embedding", `{}`)
	require.Equal(t, 400, status, body)
}
