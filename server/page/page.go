package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"regexp"
	"strings"

	"github.com/valyala/fasthttp"
)

//go:embed web
var web embed.FS

// Prefix is the path of the page's files; the page itself is at the root.
const Prefix = "/page/"

// index is the name of the page's HTML file.
const index = "index.html"

// policy is the page's Content-Security-Policy (CSP level 3, Trusted Types): only scripts of this server run,
// requests go to this server and the origins of the tool servers that were allowed, and scripts cannot parse text as
// HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'%s; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Page is the page and its files. It never changes.
type Page struct {
	files  map[string]file
	policy string
}

// file is a file of the page with its headers.
type file struct {
	media, tag string
	body       []byte
}

// manages is what hides the drawer of models, where clients may not change them.
var manages = []byte(`id="open-models" hidden`)

// asks is where the page finds the origins of servers of tools.
const asks = `name="mcp" content="`

// ParseOrigin checks an origin that the page may ask: http or https, a host and perhaps a port, and nothing that the
// policy or HTML would read as more than a name. The policy knows no IPv6 addresses.
func ParseOrigin(text string) (origin string, ok bool) {
	origin = strings.ToLower(text)
	if ok = origins.MatchString(origin); ok && strings.HasPrefix(origin, "https") {
		origin = strings.TrimSuffix(origin, ":443") // browsers leave it out
	} else if ok {
		origin = strings.TrimSuffix(origin, ":80")
	}
	return origin, ok
}

var origins = regexp.MustCompile(`^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?$`)

// New loads the files that are part of the program. With store the page offers to load, unload, pull and delete models;
// it may ask servers of tools at the origins of mcp, which are as ParseOrigin returns them.
func New(store bool, mcp []string) *Page {
	list := strings.Join(mcp, " ")
	p := &Page{map[string]file{}, fmt.Sprintf(policy, strings.TrimSuffix(" "+list, " "))}
	err := fs.WalkDir(web, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := web.ReadFile(name)
		if err != nil {
			return err
		}
		if store && path.Base(name) == index {
			body = bytes.Replace(body, manages, []byte(`id="open-models"`), 1)
		}
		if path.Base(name) == index {
			body = bytes.Replace(body, []byte(asks), []byte(asks+list), 1)
		}
		sum := sha256.Sum256(body)
		p.files[strings.TrimPrefix(name, "web/")] = file{media(name), `"` + hex.EncodeToString(sum[:12]) + `"`, body}
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("the page's files, which are part of the program: %v", err))
	}
	return p
}

// media returns a file's Content-Type. The system's own tables are not used, since they differ.
func media(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".webmanifest":
		return "application/manifest+json"
	}
	return "text/plain; charset=utf-8"
}

// Wanted reports whether a request for the root wants the page: browsers accept text/html, programs do not.
func Wanted(h *fasthttp.RequestHeader) bool {
	for part := range strings.SplitSeq(string(h.Peek("Accept")), ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/html" {
			return true
		}
	}
	return false
}

// Serve answers with the page, or with the file below Prefix that the path names; it returns false if there is none.
func (p *Page) Serve(rc *fasthttp.RequestCtx) bool {
	name := strings.TrimPrefix(string(rc.Path()), Prefix)
	if name == "/" {
		name = index
	}
	f, found := p.files[name]
	if !found {
		return false
	}
	h := &rc.Response.Header
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // another version of the program has other files
	h.Set("ETag", f.tag)
	if name == index {
		h.Add("Vary", "Accept")
	}
	if string(rc.Request.Header.Peek("If-None-Match")) == f.tag {
		rc.SetStatusCode(fasthttp.StatusNotModified)
		return true
	}
	rc.SetContentType(f.media)
	rc.Response.SetBodyRaw(f.body)
	return true
}
