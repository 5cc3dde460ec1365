// Package hubtest is a hub for tests. It serves as much of Hugging Face's API and of Ollama's registry as a pull
// needs. Files come from a second server, to which the first redirects. Settings make either of them fail.
package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Commit is the commit of every repository.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// Token opens private repositories.
const Token = "hf_test"

// Hub is a running fake hub: one server for the APIs, one for the bytes of files. After the first request, Settings
// may be changed through Change only.
type Hub struct {
	URL string
	Settings

	Sent     atomic.Int64 // bytes of files
	Requests atomic.Int64 // requests for files
	Asked    atomic.Int64 // requests for anything else: to the first server
	Leaked   atomic.Int64 // requests for files that carried a token

	front, back *httptest.Server
	mu          sync.Mutex     // guards Settings and the fields below
	used        map[string]int // number of requests by the signature in their URL
	signed      int
}

// Settings say which models a hub has, and how it fails.
type Settings struct {
	// Repositories holds Hugging Face's models: OWNER/NAME to the files by path. Those in Private are shown only to
	// requests with Token.
	Repositories map[string]map[string][]byte
	Private      map[string]bool

	// Layers holds Ollama's models: OWNER/NAME/TAG to the files by kind, such as model.
	Layers map[string]map[string][]byte

	// Cut, if not nil, returns after how many bytes of its body (of the given length) a file's answer breaks off;
	// negative: never.
	Cut func(length int64) int64

	// Slow is how long each 64 KiB of a file take.
	Slow time.Duration

	// Stall, if not nil, says whether a request for a file gets no answer.
	Stall func() bool

	Uses     int                           // how often a redirect's URL may be used before it expires; 0: always
	NoRanges bool                          // requests for ranges get the whole file
	NoLength bool                          // with NoRanges: without Content-Length
	Content  map[string][]byte             // bytes to send for a digest in place of the right ones
	Fault    func(*http.Request) int       // status with which the first server refuses a request; 0: it answers
	Alter    func(name, doc string) string // from a model's name and its right description: the description to send
}

// New starts a hub without models.
func New() *Hub {
	h := &Hub{used: map[string]int{}, Settings: Settings{Repositories: map[string]map[string][]byte{},
		Private: map[string]bool{}, Content: map[string][]byte{}, Layers: map[string]map[string][]byte{}}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/{owner}/{name}/revision/{revision}", h.repository)
	mux.HandleFunc("GET /v2/{owner}/{name}/manifests/{tag}", h.manifest)
	mux.HandleFunc("GET /v2/{owner}/{name}/blobs/{digest}", h.blob)
	files := http.NewServeMux() // a mux of its own: its pattern would conflict with the others
	files.HandleFunc("GET /{owner}/{name}/resolve/{revision}/{path...}", h.resolve)
	mux.Handle("/", files)
	h.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Asked.Add(1)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.Fault != nil {
			if status := h.Fault(r); status != 0 {
				w.Header().Set("Retry-After", "1")
				http.Error(w, `{"error": "told to fail"}`, status)
				return
			}
		}
		mux.ServeHTTP(w, r)
	}))
	h.back = httptest.NewServer(http.HandlerFunc(h.file))
	h.URL = h.front.URL
	return h
}

// Change edits the settings between two requests.
func (h *Hub) Change(edit func(*Settings)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	edit(&h.Settings)
}

// Close ends both servers.
func (h *Hub) Close() {
	h.front.Close()
	h.back.CloseClientConnections() // a slow answer is not waited for
	h.back.Close()
}

// Digest is the SHA-256 of bytes, in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// large reports whether a file is kept in LFS rather than in git itself.
func large(path string) bool {
	return strings.HasSuffix(path, ".gguf") || strings.HasSuffix(path, ".safetensors")
}

// gitName returns the hash of a file's git blob.
func gitName(data []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))
	return hex.EncodeToString(sum[:])
}

// allowed returns the files of a repository. If there are none, or the request may not read them, it writes the error
// and returns nil.
func (h *Hub) allowed(w http.ResponseWriter, r *http.Request, name string) map[string][]byte {
	files := h.Repositories[name]
	switch key := r.Header.Get("Authorization"); {
	case h.Private[name] && key != "Bearer "+Token, files == nil && key == "": // as if it were not there
		w.Header().Set("X-Error-Message", "Invalid username or password.")
		http.Error(w, `{"error": "Invalid username or password."}`, http.StatusUnauthorized)
		return nil
	case files == nil:
		http.Error(w, `{"error": "Repository not found"}`, http.StatusNotFound)
	}
	return files
}

func (h *Hub) repository(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("owner") + "/" + r.PathValue("name")
	files := h.allowed(w, r, name)
	if files == nil {
		return
	}
	type lfs struct {
		SHA256      string `json:"sha256"`
		Size        int    `json:"size"`
		PointerSize int    `json:"pointerSize"`
	}
	type sibling struct {
		Name string `json:"rfilename"`
		Size int    `json:"size"`
		Blob string `json:"blobId"`
		LFS  *lfs   `json:"lfs,omitempty"`
	}
	answer := map[string]any{"id": name, "sha": Commit, "tags": []string{"gguf"}, "gated": false}
	siblings := []sibling{}
	for path, data := range files {
		s := sibling{Name: path, Size: len(data), Blob: gitName(data)}
		if large(path) {
			s.LFS = &lfs{Digest(data), len(data), 134}
		}
		siblings = append(siblings, s)
	}
	if r.URL.Query().Get("blobs") == "true" {
		answer["siblings"] = siblings
	}
	h.say(w, name, answer)
}

// say writes a document as JSON, after Alter has changed it.
func (h *Hub) say(w io.Writer, name string, document any) {
	text, _ := json.Marshal(document)
	if h.Alter != nil {
		text = []byte(h.Alter(name, string(text)))
	}
	_, _ = w.Write(text)
}

func (h *Hub) resolve(w http.ResponseWriter, r *http.Request) {
	files := h.allowed(w, r, r.PathValue("owner")+"/"+r.PathValue("name"))
	if files == nil {
		return
	}
	data, found := files[r.PathValue("path")]
	if !found || r.PathValue("revision") != Commit {
		http.Error(w, "Entry not found", http.StatusNotFound)
		return
	}
	w.Header().Set("X-Repo-Commit", Commit)
	if !large(r.PathValue("path")) {
		if other, found := h.Content[Digest(data)]; found {
			data = other
		}
		w.Header().Set("ETag", `"`+gitName(data)+`"`)
		_, _ = w.Write(data)
		return
	}
	w.Header().Set("X-Linked-Size", strconv.Itoa(len(data)))
	w.Header().Set("X-Linked-Etag", `"`+Digest(data)+`"`)
	h.redirect(w, r, Digest(data))
}

func (h *Hub) manifest(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("owner") + "/" + r.PathValue("name") + "/" + r.PathValue("tag")
	layers := h.Layers[name]
	if layers == nil {
		http.Error(w, `{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}`, http.StatusNotFound)
		return
	}
	type layer struct {
		Kind   string `json:"mediaType"`
		Digest string `json:"digest"`
		Size   int    `json:"size"`
	}
	var all []layer
	for _, kind := range []string{"model", "projector", "template", "system", "params", "license", "messages", "adapter"} {
		if data, found := layers[kind]; found {
			all = append(all, layer{"application/vnd.ollama.image." + kind, "sha256:" + Digest(data), len(data)})
		}
	}
	h.say(w, name, map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": layer{"application/vnd.docker.container.image.v1+json", "sha256:" + Digest(nil), 0}, "layers": all})
}

func (h *Hub) blob(w http.ResponseWriter, r *http.Request) {
	digest, _ := strings.CutPrefix(r.PathValue("digest"), "sha256:")
	if h.find(digest) == nil {
		http.Error(w, `{"errors": [{"code": "BLOB_UNKNOWN", "message": "blob unknown"}]}`, http.StatusNotFound)
		return
	}
	h.redirect(w, r, digest)
}

// redirect redirects to the second server, with a signature that expires.
func (h *Hub) redirect(w http.ResponseWriter, r *http.Request, digest string) {
	h.signed++
	signature := strconv.Itoa(h.signed)
	to := h.back.URL + "/files/" + digest + "?" + url.Values{"signature": {signature}}.Encode()
	http.Redirect(w, r, to, http.StatusFound)
}

// find returns the content of the file with a digest; nil if there is none.
func (h *Hub) find(digest string) []byte {
	for _, models := range []map[string]map[string][]byte{h.Repositories, h.Layers} {
		for _, files := range models {
			for _, data := range files {
				if Digest(data) == digest {
					return data
				}
			}
		}
	}
	return nil
}

// file sends a file, or a range of it.
func (h *Hub) file(w http.ResponseWriter, r *http.Request) {
	h.Requests.Add(1)
	if r.Header.Get("Authorization") != "" {
		h.Leaked.Add(1)
	}
	digest := strings.TrimPrefix(r.URL.Path, "/files/")
	h.mu.Lock()
	now := h.Settings
	signature := r.URL.Query().Get("signature")
	h.used[signature]++
	expired := now.Uses > 0 && h.used[signature] > now.Uses
	data := h.find(digest)
	if other, found := now.Content[digest]; found {
		data = other
	}
	h.mu.Unlock()
	if expired {
		http.Error(w, "Request has expired", http.StatusForbidden)
		return
	}
	if now.Stall != nil && now.Stall() {
		<-r.Context().Done()
		return
	}
	out := &sender{ResponseWriter: w, sent: &h.Sent, slow: now.Slow, cut: now.Cut, left: -1}
	w.Header().Set("ETag", `"`+digest+`"`)
	if now.NoRanges {
		if !now.NoLength {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		}
		out.WriteHeader(http.StatusOK)
		_, _ = io.Copy(out, bytes.NewReader(data))
		return
	}
	http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(data))
}

// sender counts what is sent, slows it down and breaks it off.
type sender struct {
	http.ResponseWriter
	sent *atomic.Int64
	slow time.Duration
	cut  func(int64) int64
	left int64 // bytes until the connection is broken; negative: it is not broken
}

func (s *sender) WriteHeader(status int) {
	if s.cut != nil && status < 300 {
		length, _ := strconv.ParseInt(s.Header().Get("Content-Length"), 10, 64)
		s.left = s.cut(length)
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *sender) Write(data []byte) (n int, err error) {
	for len(data) > 0 && err == nil {
		part := data[:min(len(data), 64<<10)]
		if s.left >= 0 {
			part = part[:min(int64(len(part)), s.left)]
			s.left -= int64(len(part))
		}
		var m int
		m, err = s.ResponseWriter.Write(part)
		n += m
		data = data[m:]
		s.sent.Add(int64(m))
		if s.left == 0 {
			_ = http.NewResponseController(s.ResponseWriter).Flush()
			panic(http.ErrAbortHandler) // the connection breaks
		}
		if s.slow > 0 {
			_ = http.NewResponseController(s.ResponseWriter).Flush()
			time.Sleep(s.slow)
		}
	}
	return n, err
}

// ReadFrom copies through Write, so that all bytes are counted, slowed and cut.
func (s *sender) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{s}, r)
	if err != nil {
		return n, fmt.Errorf("sending: %w", err)
	}
	return n, nil
}
