package page

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// get asks a page for a path.
func get(p *Page, path string, headers ...string) (*fasthttp.RequestCtx, bool) {
	rc := &fasthttp.RequestCtx{}
	rc.Request.SetRequestURI(path)
	for i := 0; i < len(headers); i += 2 {
		rc.Request.Header.Set(headers[i], headers[i+1])
	}
	return rc, p.Serve(rc)
}

func TestWanted(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"text/html": true, "TEXT/HTML; q=0.5": true, "application/json, text/html": true,
		"": false, "*/*": false, "text/plain": false, "application/json": false, "text/htmlx": false, ";;,": false,
	} {
		h := &fasthttp.RequestHeader{}
		h.Set("Accept", accept)
		require.Equal(t, want, Wanted(h), accept)
	}
}

// TestDrawerOfModels: who may not change models is offered nothing that does.
func TestDrawerOfModels(t *testing.T) {
	for _, store := range []bool{false, true} {
		rc, ok := get(New(store, nil), "/")
		require.True(t, ok)
		require.Equal(t, !store, strings.Contains(string(rc.Response.Body()), `id="open-models" hidden`))
	}
}

// TestOrigins: the policy has exactly those that were named, and the page knows them.
func TestOrigins(t *testing.T) {
	for _, named := range [][]string{nil, {"http://127.0.0.1:7000"}, {"https://tools.example.org", "http://nas:81"}} {
		rc, ok := get(New(false, named), "/")
		require.True(t, ok)
		list := strings.Join(named, " ")
		require.Contains(t, string(rc.Response.Body()), `<meta name="mcp" content="`+list+`">`)
		require.Contains(t, string(rc.Response.Header.Peek("Content-Security-Policy")),
			"; connect-src "+strings.TrimSpace("'self' "+list)+"; manifest-src 'self';")
	}
	for text, want := range map[string]bool{
		"http://localhost:3000": true, "https://A.example.org": true, "http://10.0.0.1:65535": true, "http://a": true,
		"": false, "*": false, "http://*": false, "http://a:*": false, "ws://a": false, "a:80": false, "http://a/": false,
		"http://a;script-src *": false, "http://a b": false, "http://a,b": false, `http://a"b`: false, "http://[::1]:80": false,
		"http://u@a": false, "http://a?b": false, "http://a#b": false, "data:": false, "http://a:": false, "http://'self'": false,
	} {
		got, ok := ParseOrigin(text)
		require.Equal(t, want, ok, text)
		require.Equal(t, strings.ToLower(text), got)
	}
	for text, want := range map[string]string{"http://a:80": "http://a", "https://a:443": "https://a", "http://a:443": "http://a:443"} {
		got, _ := ParseOrigin(text)
		require.Equal(t, want, got, "as browsers write it")
	}
}

func TestServe(t *testing.T) {
	p := New(false, nil)
	for at, media := range map[string]string{
		"/": "text/html", "/page/main.js": "text/javascript", "/page/base.css": "text/css", "/page/icon.svg": "image/svg+xml",
		"/page/app.webmanifest": "application/manifest+json", "/page/vendor/marked/LICENSE": "text/plain",
	} {
		rc, found := get(p, at)
		require.True(t, found, at)
		require.Contains(t, string(rc.Response.Header.ContentType()), media, at)
		require.NotEmpty(t, rc.Response.Body(), at)
		policy := string(rc.Response.Header.Peek("Content-Security-Policy"))
		require.Contains(t, policy, "default-src 'none'", at)
		require.Contains(t, policy, "require-trusted-types-for 'script'", at)
		require.NotContains(t, policy, "unsafe", at)
		require.Equal(t, "nosniff", string(rc.Response.Header.Peek("X-Content-Type-Options")), at)
		again, found := get(p, at, "If-None-Match", string(rc.Response.Header.Peek("ETag")))
		require.True(t, found)
		require.Equal(t, fasthttp.StatusNotModified, again.Response.StatusCode(), at)
		require.Empty(t, again.Response.Body(), at)
	}
	for _, at := range []string{"/page/", "/page/x.js", "/page/vendor", "/page/../page.go", "/page//", "/page/%2e%2e/doc.go"} {
		_, found := get(p, at)
		require.False(t, found, at)
	}
}

var (
	imported = regexp.MustCompile(`(?:from |import\()'([^']+)'`)
	linked   = regexp.MustCompile(`(?:href|src)="(page/[^"]+)"`)
	pictured = regexp.MustCompile(`(?:icon|iconButton)\('(\w+)'`)
	inlined  = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(?:[^>]*)>[^<]`)
	parsing  = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc`)
	outside  = regexp.MustCompile(`https?://`)
)

// TestFilesAreWhole: what a file names is there, and nothing in them needs more than the policy allows.
func TestFilesAreWhole(t *testing.T) {
	p := New(false, nil)
	html := string(p.files[index].body)
	require.Empty(t, inlined.FindString(html))
	for _, m := range linked.FindAllStringSubmatch(html, -1) {
		require.Contains(t, p.files, strings.TrimPrefix(m[1], "page/"))
	}
	scripts := 0
	for name, f := range p.files {
		if path.Ext(name) != ".js" || strings.HasPrefix(name, "vendor/") {
			continue
		}
		scripts++
		text := string(f.body)
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			require.Contains(t, p.files, path.Join(path.Dir(name), m[1]), name)
		}
		for _, m := range pictured.FindAllStringSubmatch(text, -1) {
			require.Contains(t, html, `<symbol id="`+m[1]+`"`, name)
		}
		require.Empty(t, parsing.FindString(text), name)
		require.Empty(t, outside.FindString(strings.ReplaceAll(text, "'http://www.w3.org/2000/svg'", "")), name)
		require.Less(t, strings.Count(text, "\n"), 300, "%s: split it by what changes together", name)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len(line), 145, "%s: %s", name, line)
		}
	}
	require.Greater(t, scripts, 10)
}

// TestVendored: what others wrote is as they published it.
func TestVendored(t *testing.T) {
	p := New(false, nil)
	list := string(p.files["vendor/README"].body)
	for name, f := range p.files {
		if rest, ok := strings.CutPrefix(name, "vendor/"); ok && rest != "README" {
			sum := sha256.Sum256(f.body)
			require.Contains(t, list, hex.EncodeToString(sum[:])+"  "+rest+"\n")
		}
	}
}

// TestSize: the program grows by this much.
func TestSize(t *testing.T) {
	sum := 0
	for _, f := range New(false, nil).files {
		sum += len(f.body)
	}
	require.Less(t, sum, 600_000)
}
