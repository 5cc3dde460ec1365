package hub

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/hub/hubtest"
)

func TestToken(t *testing.T) {
	h, s, c := fixture(t)
	c.Token = hubtest.Token
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.NoError(t, err)
	require.Zero(t, h.Leaked.Load(), "the server of the files got the token")
	_, err = c.Pull(context.Background(), s, named(t, "Ann/None"))
	require.ErrorContains(t, err, "answers 404 Not Found: Repository not found: there is no such model: check the name")
	c.Token = "hf_wrong"
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.ErrorContains(t, err, "(HF_TOKEN's, or that of hf auth login) may not read it: ask for access at "+h.URL+"/Ann/Private")
	require.NotContains(t, err.Error(), "hf_wrong")
	c.Endpoint = "http://192.0.2.1"
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.ErrorContains(t, err, "is not secure, and anybody on the way could read the token")
}

// The token of the Hub's own login goes to huggingface.co, and nowhere else; one that was given goes first.
func TestLogin(t *testing.T) {
	for _, c := range []struct{ endpoint, token, want string }{
		{"", "", "login"}, {"https://huggingface.co/", "", "login"}, {"", "given", "given"},
		{"https://hf-mirror.example", "", ""}, {"http://huggingface.co", "", ""}, {"https://huggingface.co/mirror", "", ""},
		{"https://huggingface.co:444", "", ""}, {"https://mirror.example", "given", "given"},
	} {
		client := &Client{Endpoint: c.endpoint, Token: c.token, Login: "login"}
		base, err := client.endpoint(named(t, "Ann/X"))
		require.NoError(t, err)
		require.Equal(t, c.want, client.tokenFor(base), c.endpoint)
	}
	h, s, c := fixture(t)
	c.Login = hubtest.Token
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.ErrorContains(t, err, "answers 401", "this hub is not huggingface.co")
	require.Zero(t, h.Leaked.Load())
}

// TestGated: a hub that tells of a model and refuses its files says so at the files. Nothing is left then.
func TestGated(t *testing.T) {
	h, s, c := fixture(t)
	h.Fault = func(r *http.Request) int {
		if strings.Contains(r.URL.Path, "/resolve/") {
			return http.StatusUnauthorized
		}
		return 0
	}
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF"))
	require.ErrorContains(t, err, "accept its conditions at "+h.URL+"/Ann/Small-GGUF, make a token at "+
		"https://huggingface.co/settings/tokens, and give it by HF_TOKEN or hf auth login")
	require.Empty(t, files(t, s))
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct{ from, location, want string }{
		{"https://hub.test/a/b", "/c", "https://hub.test/c"},
		{"https://hub.test/a/b", "https://files.test/c?signature=1", "https://files.test/c?signature=1"},
		{"http://hub.test/a", "https://files.test/c", "https://files.test/c"},
		{"http://hub.test/a", "http://files.test/c", "http://files.test/c"},
		{"https://hub.test/a", "http://files.test/c?signature=1", "https://hub.test/a redirects to http://files.test/c, which is not secure"},
		{"https://hub.test/a", "file:///etc/passwd", "which is no address"},
		{"https://hub.test/a", "ftp://files.test/c", "which is not secure"},
		{"https://hub.test/a?token=x", "", `https://hub.test/a redirects to "", which is no address`},
		{"https://hub.test/a", "https://[", "which is no address"},
		{"http://hub.test/a", "http://me:secret@files.test/c", "redirects to http://files.test/c with a user's name, which is not passed on"},
	} {
		from, err := url.Parse(c.from)
		require.NoError(t, err)
		to, err := next(from, c.location)
		if err != nil {
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "=", "what may be secret")
			require.NotContains(t, err.Error(), "secret")
			continue
		}
		require.Equal(t, c.want, to.String())
	}
	ring := httptest.NewServer(http.RedirectHandler("/again", http.StatusFound))
	defer ring.Close()
	_, s, c := fixture(t)
	c.Endpoint = ring.URL
	_, err := c.Pull(context.Background(), s, named(t, "a/b"))
	require.ErrorContains(t, err, "redirects lead to redirects, more than 10 times")
}

// Addresses of files that expire are asked for again.
func TestExpiredAddresses(t *testing.T) {
	h, s, c := fixture(t)
	h.Uses = 1
	got, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.NoError(t, err)
	require.EqualValues(t, 3_000_000, got.Received)
	same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])
}
