package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/server/ollama"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/storage/hub"
	"github.com/sluice-ai/sluice/storage/store"
)

// manager lets clients change the store. They send names and digests, never paths.
type manager struct {
	e       *env.Env
	store   *store.Store
	changed func(name string) // called with the name of a model that was replaced or removed
}

// refusal converts an error to one with the status and text that a client gets.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	var status int
	var absent *store.Absent
	var refused *hub.Refused
	switch {
	case errors.As(err, &absent):
		return &ollama.Refusal{Status: http.StatusNotFound, Err: errors.New("model '" + absent.Name.String() + "' not found")}
	case errors.As(err, new(library.Unmakable)), errors.As(err, new(*store.WrongContent)), errors.Is(err, fs.ErrNotExist):
		status = http.StatusBadRequest
	case errors.As(err, new(*store.NoRoom)):
		status = http.StatusInsufficientStorage
	case errors.As(err, &refused):
		status = http.StatusBadGateway
		switch refused.Status {
		case http.StatusUnauthorized, http.StatusNotFound: // hubs do not tell strangers which of the two it is
			status = http.StatusNotFound
		case http.StatusForbidden:
			status = refused.Status
		}
	default:
		return err
	}
	return &ollama.Refusal{Status: status, Err: err}
}

// sent parses a name that a client sent.
func sent(text string) (store.Name, error) {
	n, err := store.ParseName(text)
	if err != nil {
		return n, &ollama.Refusal{Status: http.StatusBadRequest, Err: err}
	}
	return n, nil
}

// Known implements ollama.Store.
func (m *manager) Known(name string) string {
	n, err := store.ParseName(name)
	if err != nil {
		return name
	}
	if found, err := m.store.Find(n); err == nil {
		return found.Name.String()
	}
	return n.String()
}

// Pull implements ollama.Store.
func (m *manager) Pull(ctx context.Context, name string, tell func(ollama.Progress)) error {
	n, err := sent(name)
	if err != nil {
		return err
	}
	client := library.HubFor(m.e, n, "")
	client.Progress = func(p hub.Progress) {
		at := ollama.Progress{Digest: string(p.Digest), Total: p.Total, Completed: p.Done}
		at.Status = "pulling " + strings.TrimPrefix(at.Digest, "sha256:")[:12]
		tell(at)
	}
	got, err := client.Pull(ctx, m.store, n)
	if err != nil {
		return refusal(err)
	}
	tell(ollama.Progress{Status: "verifying sha256 digest"})
	tell(ollama.Progress{Status: "writing manifest"})
	if !got.Fresh {
		m.changed(library.PulledName(got).String())
	}
	return nil
}

// Create implements ollama.Store.
func (m *manager) Create(ctx context.Context, c *ollama.Creation, tell func(ollama.Progress)) error {
	name, err := sent(c.Name)
	if err != nil {
		return err
	}
	b := library.Builder{Store: m.store, Tell: func(status string) { tell(ollama.Progress{Status: status}) }}
	manner := &modelfile.Manner{Template: c.Template, System: c.System, Licenses: c.Licenses}
	if c.Parameters != "" {
		manner.Parameters, err = modelfile.ParseParameters(c.Parameters)
	}
	if c.Messages != "" && err == nil {
		manner.Messages, err = modelfile.ParseMessages(c.Messages)
	}
	if err != nil {
		return refusal(library.Unmakable{Err: err})
	}
	from, err := m.from(&b, c)
	if err == nil {
		err = b.AdaptBy(from, c.Adapters)
	}
	if err != nil {
		return refusal(err)
	}
	if _, err = b.Make(ctx, name, from, manner, c.Quantize); err != nil {
		return refusal(err)
	}
	m.changed(m.Known(c.Name))
	return nil
}

// from finds the files and settings that a client wants a model made of.
func (m *manager) from(b *library.Builder, c *ollama.Creation) (*library.Material, error) {
	if c.From == "" {
		return b.FromDigests(c.Files)
	}
	if digest := strings.TrimPrefix(c.From, "@"); strings.HasPrefix(digest, "sha256:") {
		return b.FromDigests(map[string]string{"model.gguf": digest})
	}
	n, err := sent(c.From)
	if err != nil {
		return nil, err
	}
	return b.FromName(n)
}

// Copy implements ollama.Store.
func (m *manager) Copy(ctx context.Context, from, to string) error {
	source, err := sent(from)
	if err != nil {
		return err
	}
	destination, err := sent(to)
	if err != nil {
		return err
	}
	if err := m.store.Copy(ctx, source, destination, true); err != nil {
		return refusal(err)
	}
	m.changed(m.Known(to))
	return nil
}

// Remove implements ollama.Store.
func (m *manager) Remove(ctx context.Context, name string) error {
	n, err := sent(name)
	if err != nil {
		return err
	}
	gone := m.Known(name)
	if _, err := m.store.Remove(ctx, n); err != nil {
		return refusal(err)
	}
	m.changed(gone)
	return nil
}

// Has implements ollama.Store.
func (m *manager) Has(digest string) (bool, error) {
	d, err := store.ParseDigest(digest)
	if err != nil {
		return false, refusal(library.Unmakable{Err: err})
	}
	_, here := m.store.Size(d)
	return here, nil
}

// Receive implements ollama.Store.
func (m *manager) Receive(ctx context.Context, digest string, size int64, from io.Reader) error {
	d, err := store.ParseDigest(digest)
	if err != nil {
		return refusal(library.Unmakable{Err: err})
	}
	_, err = m.store.Upload(ctx, d, size, from)
	return refusal(err)
}
