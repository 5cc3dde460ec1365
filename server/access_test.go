package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

func TestAPIKeys(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"first-secret", "second-secret"}}, nil)
	for _, key := range []string{"first-secret", "second-secret"} {
		client := r.client(option.WithAPIKey(key))
		_, err := client.Chat.Completions.New(t.Context(), capital("France"))
		require.NoError(t, err)
	}
	wrong := r.client(option.WithAPIKey("third-secret"))
	_, err := wrong.Chat.Completions.New(t.Context(), capital("France"))
	requireError(t, err, 401, "invalid_api_key", "")
	_, hello := r.get(t, "/")
	require.NotContains(t, hello, r.engine.Info.Name, "strangers learn no names")
	for path, status := range map[string]int{"/": 200, "/health": 200, "/v1/health": 200, "/v1/models": 401, "/metrics": 401, "/debug/actors": 401} {
		got, _ := r.get(t, path)
		require.Equal(t, status, got, path)
	}
	answer, err := r.http.Post(r.url+"/v1/completions", "", strings.NewReader(strings.Repeat("x", maxStrangerBody+1)))
	require.NoError(t, err)
	require.Equal(t, 401, answer.StatusCode, "a stranger's large body is not read")
	require.Equal(t, `Bearer realm="sluice"`, answer.Header.Get("WWW-Authenticate"))
	read(t, answer)
	require.NotContains(t, r.log.String(), "secret", "keys do not belong into the log")
}

// TestPrefixIsTheKeys: what one key's prompts left in the cache is nobody else's, unless it is to be shared.
func TestPrefixIsTheKeys(t *testing.T) {
	for _, share := range []bool{false, true} {
		r := start(t, Options{APIKeys: []string{"one", "two"}, SharePrefix: share}, nil)
		cached := func(key string) string {
			body := `{"max_tokens":1,"prompt":"` + strings.Repeat("one two three ", 30) + `"}`
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v1/completions", strings.NewReader(body))
			request.Header.Set("Authorization", "Bearer "+key)
			answer, err := r.http.Do(request)
			require.NoError(t, err)
			_, text := read(t, answer)
			_, after, _ := strings.Cut(text, `"cached_tokens":`)
			before, _, _ := strings.Cut(after, "}")
			return before
		}
		require.Equal(t, "0", cached("one"))
		require.NotEqual(t, "0", cached("one"))
		if share {
			require.NotEqual(t, "0", cached("two"))
			continue
		}
		require.Equal(t, "0", cached("two"), "the other key's prompt is not known")
		require.NotEqual(t, "0", cached("two"))
	}
}

// TestScheme: a key counts only where it is said to be one.
func TestScheme(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"secret"}}, nil)
	for header, want := range map[string]int{
		"Bearer secret": 200, "bearer  secret ": 200, "Basic secret": 401, "secret": 401, "Bearer": 401, "Bearersecret": 401,
		"Token secret": 401, "Bearer Bearer secret": 401, "": 401,
	} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/models", http.NoBody)
		request.Header.Set("Authorization", header)
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		got, body := read(t, answer)
		require.Equal(t, want, got, "%q: %s", header, body)
	}
}

// TestHost refuses what a browser may be made to send.
func TestHost(t *testing.T) {
	r := start(t, Options{}, nil)
	for host, status := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1:1": 200, "[::1]:8080": 200, "[::1]": 200,
		"evil.example": 403, "evil:80@127.0.0.1": 400, "localhost.evil.example": 403, "127.0.0.1.evil.example:8080": 403, "192.168.0.1": 403,
	} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/health", http.NoBody)
		request.Host = host
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		got, body := read(t, answer)
		require.Equal(t, status, got, "%s: %s", host, body)
	}
	for origin, status := range map[string]int{r.url: 200, "http://evil.example": 403, "null": 403} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/health", http.NoBody)
		request.Header.Set("Origin", origin)
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		got, body := read(t, answer)
		require.Equal(t, status, got, "%s: %s", origin, body)
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
	}
}

// TestNetworkHosts: who listens to the network is asked by addresses, which no page can take for a name, and by names
// that were given; a key stands in the way of pages as well.
func TestNetworkHosts(t *testing.T) {
	a := access{names: []string{"sluice.example"}}
	a.listening(&net.TCPAddr{IP: net.IPv4zero})
	require.False(t, a.loopback)
	asked := func(a *access, host string) bool {
		rc := &fasthttp.RequestCtx{}
		rc.Request.Header.SetHost(host)
		return a.browser(rc, &answer.Route{}) == nil
	}
	for _, host := range []string{"sluice.example", "SLUICE.example:8080", "sluice.example.", "localhost:1", "192.168.0.7", "[fd00::1]:80"} {
		require.True(t, asked(&a, host), host)
	}
	for _, host := range []string{"evil.example", "sluice.example.evil.example", "192.168.0.7.evil.example", "", "a b"} {
		require.False(t, asked(&a, host), host)
	}
	require.False(t, asked(&access{}, "sluice.example"))
	keyed := func(a *access) *access { a.setKeys([]string{"k"}); return a }
	require.True(t, asked(keyed(&access{}), "sluice.example"))
	require.False(t, asked(keyed(&access{names: []string{"one"}}), "two"))
	require.False(t, asked(keyed(&access{loopback: true}), "two"))
}

// TestOwnAddress: on loopback only this machine's names are good.
func TestOwnAddress(t *testing.T) {
	a := access{}
	request := func(host string) *fasthttp.RequestCtx {
		rc := &fasthttp.RequestCtx{}
		rc.Request.Header.SetHost(host)
		return rc
	}
	a.listening(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 5)})
	require.NotNil(t, a.browser(request("sluice.example"), &answer.Route{}))
	require.Nil(t, a.browser(request("127.0.0.5:80"), &answer.Route{}))
}

func TestLimits(t *testing.T) {
	steady, hasty := start(t, Options{}, nil), start(t, Options{Reading: 300 * time.Millisecond}, nil)
	const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
	large := strings.Repeat(" ", maxBody+1)
	for _, c := range []struct{ name, request, want, text string }{
		{"body", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(large), large), "413", "body_too_large"},
		{"chunked body", head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(large), large),
			"413", "body_too_large"},
		{"header", head + "X: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", "431", "header_too_large"},
		{"slow header", head, "408", "timeout"},
		{"slow body", head + "Content-Length: 10\r\n\r\n{", "408", "timeout"},
		{"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400", "invalid_http"},
		{"method", "PUT /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", "405", "use POST"},
		{"preflight", "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", "405", "use POST"},
		{"path", "GET /v2/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", "404", "there is nothing at"},
		{"encoding", head + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "415", "gzip"},
		{"depth", head + fmt.Sprintf("Content-Length: 300\r\n\r\n%s", strings.Repeat("[", 300)), "400", "nested deeper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := steady // a large body takes a busy machine longer than the hasty one waits
			if c.want == "408" {
				at = hasty
			}
			conn, err := net.Dial("tcp", at.addr)
			require.NoError(t, err)
			defer conn.Close()
			go io.WriteString(conn, c.request)
			conn.SetReadDeadline(time.Now().Add(patient))
			answer := make([]byte, 4096)
			n, err := conn.Read(answer)
			require.NoError(t, err)
			got := string(answer[:n])
			require.True(t, strings.HasPrefix(got, "HTTP/1.1 "+c.want), "want %s, got %s", c.want, got)
			require.Contains(t, got, c.text)
			require.Contains(t, got, `{"error":{"message":`)
		})
	}
}
