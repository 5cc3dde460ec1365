package server

import (
	"net"
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

// TestLocalPages: pages of this machine's own servers may ask for answers and read lists without being named, where the
// server is this machine's alone; what changes the server or shows what others do wants a key besides.
func TestLocalPages(t *testing.T) {
	ask := func(r *running, path, origin string, headers ...string) (int, string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, http.NoBody)
		request.Header.Set("Origin", origin)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		status, _ := read(t, answer)
		return status, answer.Header.Get("Access-Control-Allow-Origin")
	}
	r, keyed := start(t, Options{}, nil), start(t, Options{APIKeys: []string{"secret"}}, nil)
	for _, origin := range []string{"http://localhost:5173", "https://localhost", "http://127.0.0.1:3000", "http://[::1]:81"} {
		status, allowed := ask(r, "/v1/models", origin)
		require.Equal(t, http.StatusOK, status, origin)
		require.Equal(t, origin, allowed)
		for _, path := range []string{"/metrics", "/slots", "/debug/actors"} {
			status, allowed = ask(r, path, origin)
			require.Equal(t, http.StatusForbidden, status, "%s %s", path, origin)
			require.Empty(t, allowed)
		}
		status, _ = ask(keyed, "/metrics", origin, "Authorization", "Bearer secret")
		require.Equal(t, http.StatusOK, status, origin)
		status, _ = ask(keyed, "/v1/models", origin)
		require.Equal(t, http.StatusUnauthorized, status, origin)
	}
	for _, origin := range []string{"javascript://" + strings.TrimPrefix(r.url, "http://"), "http://localhost.evil.example",
		"http://evil.example:5173", "http://user@localhost:5173", "null", "http://localhost:5173/path", "app://obsidian.md"} {
		status, allowed := ask(r, "/v1/models", origin)
		require.Equal(t, http.StatusForbidden, status, origin)
		require.Empty(t, allowed, origin)
	}
	network := access{}
	network.listening(&net.TCPAddr{IP: net.IPv4(192, 168, 0, 7)})
	require.False(t, network.local("http://localhost:5173"), "the page is another machine's")
}

// TestNamedOrigins: any scheme may be named, and any port of a host.
func TestNamedOrigins(t *testing.T) {
	for text, want := range map[string]string{
		"https://Chat.example": "https://chat.example", "http://nas:*": "http://nas:*", "app://obsidian.md": "app://obsidian.md",
		"chrome-extension://abcdef": "chrome-extension://abcdef", "tauri://localhost": "tauri://localhost", "http://[::1]:80": "http://[::1]:80",
		"null": "", "https://": "", "https://a/path": "", "https://user@a": "", "chat.example": "", "https://a b": "", "https://:80": "",
	} {
		got, ok := ParseOrigin(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, got)
		}
	}
	a := access{origins: []string{"http://nas:*", "app://obsidian.md"}}
	for origin, want := range map[string]bool{"http://nas": true, "http://nas:5173": true, "https://nas": false, "app://obsidian.md": true,
		"app://other": false, "http://nas.evil.example:80": false} {
		require.Equal(t, want, a.shared(origin), origin)
	}
}

// TestEmbedded: what a page of another origin embeds is not served, what its visitor opens is.
func TestEmbedded(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, c := range []struct {
		path, site, mode string
		status           int
	}{
		{"/debug/actors", "cross-site", "no-cors", 403}, {"/v1/models", "same-site", "no-cors", 403},
		{"/debug/actors", "same-origin", "cors", 200}, {"/debug/actors", "none", "navigate", 200},
		{"/v1/models", "cross-site", "navigate", 200}, {"/health", "cross-site", "no-cors", 200}, {"/v1/models", "", "", 200},
	} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+c.path, http.NoBody)
		request.Header.Set("Sec-Fetch-Site", c.site)
		request.Header.Set("Sec-Fetch-Mode", c.mode)
		answer, err := r.http.Do(request)
		require.NoError(t, err)
		status, body := read(t, answer)
		require.Equal(t, c.status, status, "%+v: %s", c, body)
	}
}
