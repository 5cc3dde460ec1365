package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
)

// call asks with some headers.
func (r *running) call(t *testing.T, method, path, body string, headers ...string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	got, err := r.http.Do(request)
	require.NoError(t, err)
	return read(t, got)
}

const capitalOfFrance = `"messages":[{"role":"user","content":"What is the capital of France?"}]`

// TestSharedPaths: a header says whose path it is where dialects share one, and whose fault where nobody has it.
func TestSharedPaths(t *testing.T) {
	r := start(t, Options{}, nil)
	name := r.engine.Info.Name
	for _, c := range []struct{ path, version, want string }{
		{"/v1/models", "2023-06-01", `"last_id":"` + name + `"}`},
		{"/v1/models", "", `{"object":"list"`},
		{"/v1/models/" + strings.ReplaceAll(name, " ", "%20"), "2023-06-01", `{"type":"model","id":"` + name + `"`},
		{"/v1/models/" + strings.ReplaceAll(name, " ", "%20"), "", `"object":"model"`},
		{"/v1/models/none", "2023-06-01", `{"type":"error","error":{"type":"not_found_error","message":"the model none is not found here`},
		{"/v1/models/none", "", `{"error":{"message":"the model none is not found here`},
		{"/v1/none", "2023-06-01", `{"type":"error","error":{"type":"not_found_error","message":"there is nothing at`},
		{"/v1/none", "", `{"error":{"message":"there is nothing at`},
		{"/v1/messages", "", `{"type":"error","error":{"type":"invalid_request_error","message":"GET is not possible`},
		{"/health", "2023-06-01", `{"status":"ok"}`},
	} {
		headers := []string{"anthropic-version", c.version}
		if c.version == "" {
			headers = nil
		}
		_, body := r.call(t, http.MethodGet, c.path, "", headers...)
		require.Contains(t, body, c.want, "%s %s", c.path, c.version)
	}
}

// TestFittingRoute: which dialect is first decides nothing where one's header tells.
func TestFittingRoute(t *testing.T) {
	plain := answer.Dialect{Name: "plain", Routes: []answer.Route{{Path: "/v1/a"}, {Path: "/v1/b/"}, {Path: "/v1/plain"}}}
	marked := answer.Dialect{Name: "marked", Header: "Mark",
		Routes: []answer.Route{{Path: "/v1/a"}, {Path: "/v1/b/"}, {Path: "/v1/marked"}}}
	for _, order := range [][]answer.Dialect{{plain, marked}, {marked, plain}} {
		routes := newRoutes(order)
		for _, path := range []string{"/v1/a", "/v1/b/c", "/v1/nowhere", "/v1/plain", "/v1/marked"} {
			q := &fasthttp.Request{}
			q.SetRequestURI(path)
			want := "plain"
			if path == "/v1/marked" {
				want = "marked"
			}
			require.Equal(t, want, routes.find(q).dialect.Name, path)
			if want = "marked"; path == "/v1/plain" {
				want = "plain"
			}
			q.Header.Set("mark", "x")
			require.Equal(t, want, routes.find(q).dialect.Name, path)
		}
	}
}

// TestKeyHeaders: a key may come in either header, of which one must be good; refusals are in the dialect of the path.
func TestKeyHeaders(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"secret"}}, nil)
	ask := `{"max_tokens":1,` + capitalOfFrance + `}`
	for _, c := range []struct {
		bearer, key string
		want        int
	}{
		{"", "secret", 200}, {"Bearer secret", "", 200}, {"Bearer wrong", "secret", 200}, {"Bearer secret", "wrong", 200},
		{"Bearer wrong", "wrong", 401}, {"", "", 401}, {"", "Bearer secret", 401}, {"secret", "", 401},
	} {
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions"} {
			status, body := r.call(t, http.MethodPost, path, ask, "Authorization", c.bearer, "x-api-key", c.key)
			require.Equal(t, c.want, status, "%s %+v: %s", path, c, body)
			if status == 401 && strings.HasPrefix(path, "/v1/messages") {
				require.Contains(t, body, `{"type":"error","error":{"type":"authentication_error","message":"the API key is missing`)
			}
		}
	}
	require.NotContains(t, r.log.String(), "secret")
}

// TestRefusalsOfMessages: limits and access of the server are told in the shape of the path.
func TestRefusalsOfMessages(t *testing.T) {
	r := start(t, Options{}, nil)
	const shape = `{"type":"error","error":{"type":"`
	long := `{"max_tokens":1,"messages":[{"role":"user","content":"` + strings.Repeat("1 ", 20_000) + `"}]}`
	for _, c := range []struct {
		body, header, value string
		status              int
		want                string
	}{
		{`{}`, "Origin", "http://evil.example", 403, "permission_error"},
		{`{}`, "Content-Encoding", "gzip", 415, "invalid_request_error"},
		{strings.Repeat(" ", maxBody+1), "X", "x", 413, "request_too_large"},
		{`{`, "X", "x", 400, "invalid_request_error"},
		{long, "X", "x", 400, "invalid_request_error"},
	} {
		status, body := r.call(t, http.MethodPost, "/v1/messages", c.body, c.header, c.value)
		require.Equal(t, c.status, status, body)
		require.True(t, strings.HasPrefix(body, shape+c.want), body)
	}
	r.stopping.Store(true)
	status, body := r.call(t, http.MethodPost, "/v1/messages", `{}`)
	require.Equal(t, 503, status)
	require.True(t, strings.HasPrefix(body, shape+"overloaded_error"), body)
}

// TestThreadsAreRefused: in the words at which Anthropic's tool runner goes on without one, which cannot be guessed.
func TestThreadsAreRefused(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, thread := range []string{`{"type":"create"}`, `{"type":"continue","previous_message_id":"msg_1"}`} {
		status, body := r.post(t, "/v1/messages", `{"max_tokens":1,"thread":`+thread+`,`+capitalOfFrance+`}`)
		require.Equal(t, 400, status)
		require.JSONEq(t, `{"type":"error","error":{"type":"invalid_request_error","message":"thread is not supported here: no `+
			`conversations are kept, send the whole of it without thread","details":{"error_code":"thread_unsupported_request"}}}`, body)
	}
}

// TestMessagesAreCounted: what is counted is what an answer reports; what is found in the cache is told apart.
func TestMessagesAreCounted(t *testing.T) {
	r := start(t, Options{}, nil)
	system := `"system":"` + strings.Repeat("one two three ", 30) + `",`
	for _, c := range []struct {
		body   string
		cached bool
	}{{capitalOfFrance, false}, {system + capitalOfFrance, false}, {system + capitalOfFrance, true}} {
		status, counted := r.post(t, "/v1/messages/count_tokens", `{`+c.body+`}`)
		require.Equal(t, 200, status, counted)
		var tokens, input, cached, output int
		_, err := fmt.Sscanf(counted, `{"input_tokens":%d}`, &tokens)
		require.NoError(t, err)
		_, answer := r.post(t, "/v1/messages", `{"max_tokens":2,`+c.body+`}`)
		_, usage, _ := strings.Cut(answer, `"usage":`)
		_, err = fmt.Sscanf(usage, `{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d}`,
			&input, &cached, &output)
		require.NoError(t, err, answer)
		require.Equal(t, []any{tokens, 2, c.cached}, []any{input + cached, output, cached > 0})
	}
	_, answer := r.post(t, "/v1/messages", `{"max_tokens":2,"stream":true,`+system+capitalOfFrance+`}`)
	starts, ends, _ := strings.Cut(answer, "message_delta")
	for _, part := range []string{starts, ends} {
		require.Contains(t, part, `"usage":{"input_tokens":`)
		require.NotContains(t, part, `"cache_read_input_tokens":0`, "the beginning of a stream knows it, too")
	}
	require.EqualValues(t, 8, r.engine.Snapshot().Generated, "counting computes nothing")
}
