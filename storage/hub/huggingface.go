package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/storage/store"
)

// repository is what Hugging Face says of one, as far as it matters here.
type repository struct {
	commit string
	files  []published
}

// published is a file of a repository.
type published struct {
	path   string // with slashes, in the repository
	size   int64
	digest store.Digest // empty: git keeps it, not LFS, and it is small
}

var commitText = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// parseRepository reads the answer to GET /api/models/OWNER/NAME/revision/REVISION?blobs=true. Fields that the hub adds
// are let pass; what is read is checked.
func parseRepository(data []byte) (*repository, error) {
	var said struct {
		SHA      string
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64
			LFS  *struct {
				SHA256 string
				Size   int64
			}
		}
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, fmt.Errorf("the hub's answer is not what its API says: %w", err)
	}
	if !commitText.MatchString(said.SHA) {
		return nil, fmt.Errorf("the hub's answer names the commit %.60q, want 40 hexadecimal digits", said.SHA)
	}
	r := &repository{commit: said.SHA}
	for _, s := range said.Siblings {
		if !fs.ValidPath(s.Name) {
			return nil, fmt.Errorf("the hub's answer: %.100q is no path of a file", s.Name)
		}
		f := published{path: s.Name}
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
	data, err := h.document(ctx, api, h.Token, "application/json")
	if err != nil {
		return nil, h.explain(n, err)
	}
	repo, err := parseRepository(data)
	if err != nil {
		return nil, err
	}
	return h.offerOf(repo, n)
}

// offerOf is what a repository has under a name.
func (h *session) offerOf(repo *repository, n store.Name) (*offer, error) {
	tag, files, err := choose(repo.files, n)
	if err != nil {
		return nil, err
	}
	source := h.base.JoinPath(n.Owner, n.Model)
	o := &offer{token: h.Token, manifest: store.Manifest{Name: n.Host + "/" + n.Owner + "/" + n.Model + ":" + tag,
		Source: source.String(), Revision: repo.commit, Pulled: h.clock().UTC().Truncate(time.Second)}}
	for _, f := range files {
		if f.digest == "" {
			return nil, fmt.Errorf("%s: the hub gives no checksum of it: it cannot be pulled, only downloaded by hand", f.path)
		}
		o.manifest.Files = append(o.manifest.Files, store.File{Role: store.Weights, Name: base(f.path), Size: f.size,
			Digest: f.digest})
		o.places = append(o.places, source.JoinPath("resolve", repo.commit, escaped(f.path)))
	}
	return o, nil
}

// escaped is a path for a URL: names may hold what has a meaning there.
func escaped(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// explain says what to do about a repository that the hub does not show.
func (h *session) explain(n store.Name, err error) error {
	var r *Refused
	if !errors.As(err, &r) {
		return err
	}
	page := h.base.JoinPath(n.Owner, n.Model)
	switch r.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
	default:
		return err
	}
	switch {
	case r.Status == http.StatusNotFound:
		return fmt.Errorf("%w: there is no such model: check the name at %s", err, page)
	case h.Token == "":
		return fmt.Errorf("%w: there is no such model, or it wants to know who asks: check the name, "+
			"or put a token that may read %s into HF_TOKEN", err, page)
	}
	return fmt.Errorf("%w: the token in HF_TOKEN may not read it: ask for access at %s, or check the name", err, page)
}
