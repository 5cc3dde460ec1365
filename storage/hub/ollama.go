package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/storage/store"
)

// Media types of the registry: of a manifest, and the prefix of those of layers.
const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	layerType    = "application/vnd.ollama.image."
)

// layerRoles maps the kinds of layers to the roles of files. Layers of other kinds are not fetched.
var layerRoles = map[string]store.Role{
	"model": store.Weights, "template": store.Template, "system": store.System, "params": store.Params,
	"license": store.License, "messages": store.Messages, "projector": store.Projector, "adapter": store.Adapter,
}

// ParseLayers decodes a manifest of the registry, or of a folder that Ollama keeps, into the files of a model.
func ParseLayers(data []byte, n store.Name) ([]store.File, error) {
	var said struct {
		SchemaVersion int
		Layers        []struct {
			MediaType string
			Digest    string
			Size      int64
		}
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, foreign("the registry's answer is no manifest", data, err)
	}
	if said.SchemaVersion != 2 {
		return nil, fmt.Errorf("the registry's manifest is of version %d, want 2", said.SchemaVersion)
	}
	var files []store.File
	count := map[store.Role]int{}
	for i, layer := range said.Layers {
		kind, _ := strings.CutPrefix(layer.MediaType, layerType)
		role, known := layerRoles[kind]
		if !known {
			continue
		}
		digest, err := store.ParseDigest(layer.Digest)
		if err != nil {
			return nil, fmt.Errorf("the registry's manifest, layer %d: %w", i+1, err)
		}
		count[role]++
		files = append(files, store.File{Role: role, Name: layerName(role, n, count[role]), Size: layer.Size, Digest: digest})
	}
	if count[store.Weights] != 1 {
		return nil, fmt.Errorf("it has %d GGUF files of weights, want 1", count[store.Weights])
	}
	return files, nil
}

// layerName makes a name for a file, since the registry has none.
func layerName(role store.Role, n store.Name, nth int) string {
	name, ext := string(role), ""
	switch role {
	case store.Weights:
		return n.Model + "-" + n.Tag + ".gguf"
	case store.Projector:
		name, ext = "mmproj-"+n.Model+"-"+n.Tag, ".gguf"
	case store.Adapter:
		ext = ".gguf"
	}
	if nth > 1 {
		name += "-" + strconv.Itoa(nth)
	}
	return name + ext
}

func (h *session) findOllama(ctx context.Context, n store.Name) (*offer, error) {
	n.Tag = cmp.Or(n.Tag, "latest")
	data, err := h.document(ctx, h.base.JoinPath("v2", n.Owner, n.Model, "manifests", n.Tag), "", manifestType)
	if r := (*Refused)(nil); errors.As(err, &r) && r.Status == http.StatusNotFound {
		return nil, fmt.Errorf("%w: the registry has no such model: check the name; a model of Hugging Face is OWNER/NAME", err)
	}
	if err != nil {
		return nil, err
	}
	return h.offerOfLayers(data, n)
}

// offerOfLayers returns the model of a manifest of the registry.
func (h *session) offerOfLayers(data []byte, n store.Name) (*offer, error) {
	files, err := ParseLayers(data, n)
	if err != nil {
		return nil, err
	}
	registry := h.base.JoinPath("v2", n.Owner, n.Model)
	o := &offer{manifest: store.Manifest{Name: n.Host + "/" + n.Owner + "/" + n.Model + ":" + n.Tag,
		Source: registry.String(), Revision: string(store.DigestOf(data)), Files: files,
		Pulled: h.clock().UTC().Truncate(time.Second)}}
	for _, f := range files {
		o.places = append(o.places, registry.JoinPath("blobs", string(f.Digest)))
	}
	return o, nil
}
