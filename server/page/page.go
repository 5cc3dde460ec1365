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
	"strings"

	"github.com/valyala/fasthttp"
)

//go:embed web
var web embed.FS

// Prefix is the path of the page's files; the page itself is at the root.
const Prefix = "/page/"

// index is the name of the page's HTML file.
const index = "index.html"

// policy is the page's Content-Security-Policy (CSP level 3, Trusted Types): only scripts of this server run, no
// other server is asked, and scripts cannot parse text as HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Page is the page and its files. It never changes.
type Page struct{ files map[string]file }

// file is a file of the page with its headers.
type file struct {
	media, tag string
	body       []byte
}

// manages is what hides the drawer of models, where clients may not change them.
var manages = []byte(`id="open-models" hidden`)

// New loads the files that are part of the program. With store the page offers to load, unload, pull and delete models.
func New(store bool) *Page {
	p := &Page{map[string]file{}}
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
	h.Set("Content-Security-Policy", policy)
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
