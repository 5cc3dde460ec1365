package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCORS: pages of the origins that were named may ask and read, whatever they ask; others may not, and hear nothing.
func TestCORS(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"secret"}, Origins: []string{"https://chat.example", "http://other.example:81"}}, nil)
	all := start(t, Options{APIKeys: []string{"secret"}, Origins: []string{anyOrigin}}, nil)
	ask := func(r *running, method, path, origin, body string, headers ...string) (int, http.Header, string) {
		request, _ := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		request.Header.Set("Origin", origin)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		status, text := read(t, answer)
		return status, answer.Header, text
	}
	const chat = "/v1/chat/completions"
	before := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type",
		"Access-Control-Request-Private-Network", "true"}
	for _, origin := range []string{"https://chat.example", "http://other.example:81"} {
		status, header, body := ask(r, http.MethodOptions, chat, origin, "", before...)
		require.Equal(t, http.StatusNoContent, status, body)
		require.Empty(t, body)
		require.Equal(t, origin, header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, header.Get("Access-Control-Allow-Methods"), "POST")
		require.Equal(t, "authorization,content-type", header.Get("Access-Control-Allow-Headers"))
		require.Equal(t, "true", header.Get("Access-Control-Allow-Private-Network"))
		require.Contains(t, header.Values("Vary"), "Origin")

		const question = `{"stream":true,"messages":[{"role":"user","content":"12 + 30"}]}`
		status, header, body = ask(r, http.MethodPost, chat, origin, question, "Authorization", "Bearer secret")
		require.Equal(t, http.StatusOK, status, body)
		require.Contains(t, body, "[DONE]")
		require.Equal(t, origin, header.Get("Access-Control-Allow-Origin"), "of a stream, too")
		status, header, _ = ask(r, http.MethodPost, chat, origin, question)
		require.Equal(t, http.StatusUnauthorized, status, "the key is wanted all the same")
		require.Equal(t, origin, header.Get("Access-Control-Allow-Origin"), "and the page may read that")
	}
	for _, origin := range []string{"https://evil.example", "https://chat.example.evil.example", "http://chat.example", "null",
		"https://chat.example:444"} {
		status, header, _ := ask(r, http.MethodOptions, chat, origin, "", before...)
		require.Equal(t, http.StatusForbidden, status, origin)
		require.Empty(t, header.Get("Access-Control-Allow-Origin"), origin)
		status, header, _ = ask(r, http.MethodGet, "/v1/models", origin, "", "Authorization", "Bearer secret")
		require.Equal(t, http.StatusForbidden, status, origin)
		require.Empty(t, header.Get("Access-Control-Allow-Origin"), origin)
		status, header, _ = ask(all, http.MethodGet, "/v1/models", origin, "", "Authorization", "Bearer secret")
		require.Equal(t, http.StatusOK, status, origin)
		require.Equal(t, origin, header.Get("Access-Control-Allow-Origin"))
	}
	status, header, _ := ask(r, http.MethodGet, "/health", r.url, "")
	require.Equal(t, http.StatusOK, status, "our own page")
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	status, _, _ = ask(r, http.MethodOptions, chat, "https://chat.example", "", "Authorization", "Bearer secret")
	require.Equal(t, http.StatusMethodNotAllowed, status, "no question that browsers ask")
}
