package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/storage/store"
)

// repository is Hugging Face's description of a repository, reduced to what pulls use.
type repository struct {
	commit string
	files  []published
}

// published is a file of a repository.
type published struct {
	path   string // with slashes, in the repository
	size   int64
	digest store.Digest // empty if the file is kept in git itself and not in LFS; such files are small
	git    string       // hash of its git blob: SHA-1 of a header and the content
}

// foreign is the error of an answer that is no JSON, such as the page by which a network wants its guests to log in.
func foreign(what string, data []byte, err error) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		return fmt.Errorf("%s: a web page came: open the hub in a browser, the network may want a login first", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

var commitText = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// parseRepository decodes the answer to GET /api/models/OWNER/NAME/revision/REVISION?blobs=true. Unknown fields are
// ignored; known ones are checked.
func parseRepository(data []byte) (*repository, error) {
	var said struct {
		SHA      string
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64
			Blob string `json:"blobId"`
			LFS  *struct {
				SHA256 string
				Size   int64
			}
		}
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, foreign("the hub's answer is not what its API says", data, err)
	}
	if !commitText.MatchString(said.SHA) {
		return nil, fmt.Errorf("the hub's answer names the commit %.60q, want 40 hexadecimal digits", said.SHA)
	}
	r := &repository{commit: said.SHA}
	for _, s := range said.Siblings {
		if !fs.ValidPath(s.Name) {
			return nil, fmt.Errorf("the hub's answer: %.100q is no path of a file", s.Name)
		}
		f := published{path: s.Name, git: s.Blob}
		if s.LFS != nil {
			f.size = s.LFS.Size
			var err error
			if f.digest, err = store.ParseDigest("sha256:" + s.LFS.SHA256); err != nil {
				return nil, fmt.Errorf("the hub's answer, file %.100q: %w", s.Name, err)
			}
			if s.Size != nil && *s.Size != f.size {
				return nil, fmt.Errorf("the hub's answer, file %.100q: has two sizes, %d and %d", s.Name, *s.Size, f.size)
			}
		} else if s.Size != nil {
			f.size = *s.Size
		}
		if f.size < 0 {
			return nil, fmt.Errorf("the hub's answer, file %.100q: has %d bytes", s.Name, f.size)
		}
		r.files = append(r.files, f)
	}
	return r, nil
}

func (h *session) findHuggingFace(ctx context.Context, n store.Name) (*offer, error) {
	api := h.base.JoinPath("api", "models", n.Owner, n.Model, "revision", "main")
	api.RawQuery = url.Values{"blobs": {"true"}}.Encode()
	data, err := h.document(ctx, api, h.token, "application/json")
	if err != nil {
		return nil, h.explain(n, err)
	}
	repo, err := parseRepository(data)
	if err != nil {
		return nil, err
	}
	o, err := h.offerOf(repo, n)
	if err != nil {
		return nil, err
	}
	return o, h.fetchSmall(ctx, o)
}

// offerOf returns the model of a repository that a name means.
func (h *session) offerOf(repo *repository, n store.Name) (*offer, error) {
	tag, files, err := choose(repo.files, n)
	if err != nil {
		return nil, err
	}
	source := h.base.JoinPath(n.Owner, n.Model)
	o := &offer{token: h.token, manifest: store.Manifest{Name: n.Host + "/" + n.Owner + "/" + n.Model + ":" + tag,
		Source: source.String(), Revision: repo.commit, Pulled: h.clock().UTC().Truncate(time.Second)}}
	if tag != folderTag {
		files = append(slices.Clip(files), repo.projector()...)
	}
	for _, f := range files {
		role := store.Weights
		switch {
		case IsProjector(f.path):
			role = store.Projector
		case tag == folderTag && path.Ext(f.path) != tensors:
			role = store.Config
		}
		if f.digest == "" && (role != store.Config || f.size > mostSmall || !commitText.MatchString(f.git)) {
			return nil, fmt.Errorf("%s: the hub gives no checksum of it: it cannot be pulled, only downloaded by hand", f.path)
		}
		o.manifest.Files = append(o.manifest.Files, store.File{Role: role, Name: base(f.path), Size: f.size,
			Digest: f.digest})
		o.git = append(o.git, f.git)
		o.places = append(o.places, source.JoinPath("resolve", repo.commit, escaped(f.path)))
	}
	return o, nil
}

// projector is the file by which a repository's models see, if there is one.
func (r *repository) projector() []published {
	paths := make([]string, len(r.files))
	for i, f := range r.files {
		paths[i] = f.path
	}
	if i := Projector(paths); i >= 0 {
		return r.files[i : i+1]
	}
	return nil
}

// mostSmall bounds the size of a file that is kept in git itself, in bytes.
const mostSmall = mostAnswer

// fetchSmall fetches the files that are kept in git itself: the hub states only their SHA-1, and the store needs the
// SHA-256 of their content.
func (h *session) fetchSmall(ctx context.Context, o *offer) error {
	o.small = map[store.Digest][]byte{}
	for i := range o.manifest.Files {
		f := &o.manifest.Files[i]
		if f.Digest != "" {
			continue
		}
		data, err := h.document(ctx, o.places[i], o.token, "*/*")
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if found := gitName(data); found != o.git[i] || int64(len(data)) != f.Size {
			return fmt.Errorf("%s: what came has %d bytes and the checksum %s, want %d and %s: pull again, or from elsewhere",
				f.Name, len(data), found, f.Size, o.git[i])
		}
		f.Digest = store.DigestOf(data)
		o.small[f.Digest] = data
	}
	return nil
}

// gitName returns the hash by which git names a file with these bytes (SHA-1 of a blob).
func gitName(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// escaped escapes a path for a URL.
func escaped(file string) string {
	parts := strings.Split(file, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// explain adds advice to the hub's error for a repository that does not exist or that the token does not open.
func (h *session) explain(n store.Name, err error) error {
	var r *Refused
	if !errors.As(err, &r) {
		return err
	}
	page := h.base.JoinPath(n.Owner, n.Model)
	switch {
	case r.Status == http.StatusNotFound:
		return fmt.Errorf("%w: there is no such model: check the name at %s", err, page)
	case !Locked(err):
		return err
	case h.token == "":
		return fmt.Errorf("%w: there is no such model, or it wants to know who asks: check the name, accept its conditions at %s, "+
			"make a token at %s/settings/tokens, and give it by HF_TOKEN or hf auth login", err, page, huggingFaceURL)
	}
	return fmt.Errorf("%w: the token that was sent (HF_TOKEN's, or that of hf auth login) may not read it: ask for access at %s, "+
		"or check the name", err, page)
}
