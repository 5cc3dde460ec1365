package openai

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// modelObject describes a model; status and meta have llama.cpp's names.
type modelObject struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int64       `json:"created"`
	OwnedBy string      `json:"owned_by"`
	Status  modelStatus `json:"status"`
	Can     []string    `json:"capabilities,omitempty"` // what it can do, in Ollama's words; nil like Meta
	Parent  string      `json:"parent,omitempty"`       // of an adapter: the model that it changes
	Meta    *modelMeta  `json:"meta,omitempty"`         // nil if the model's file cannot be read
}

// modelStatus is the phase of a model: unloaded, measuring, waiting, loading, loaded or unloading.
type modelStatus struct {
	Value    string   `json:"value"`
	Progress *float64 `json:"progress,omitempty"` // 0 to 1, while it is loaded
}

type modelMeta struct {
	Architecture string `json:"architecture"`
	Vocab        int    `json:"n_vocab"`
	Trained      int    `json:"n_ctx_train"`
	Context      int    `json:"n_ctx"`
	Parameters   int64  `json:"n_params"`
	Size         int64  `json:"size"`

	*cacheMeta // nil if the model is not loaded
}

type cacheMeta struct {
	Type  string  `json:"kv_type"` // type of the cached K and V
	Bytes int64   `json:"kv_bytes_per_token"`
	BitsK float64 `json:"kv_bits_k"` // bits of a cached value of K, scales included
	BitsV float64 `json:"kv_bits_v"`
}

func (a *api) object(e *answer.Entry) modelObject {
	o := modelObject{ID: e.Name, Object: "model", Created: a.created, OwnedBy: "sluice"}
	o.Status.Value = e.Status.Phase.String()
	if e.Status.Total > 0 {
		share := float64(e.Status.Done) / float64(e.Status.Total)
		o.Status.Progress = &share
	}
	if e.Header != nil {
		o.Can = e.Capabilities()
		i := &e.Header.Info
		o.Meta = &modelMeta{i.Architecture, i.Vocab, i.Trained, i.Context, i.Parameters, i.WeightBytes, nil}
	}
	if e.Model != nil {
		kv := cacheMeta(e.Model.Engine.Info.KV)
		o.Meta.cacheMeta = &kv
	}
	return o
}

// painter describes a model that makes pictures. It has no place among those that are loaded and unloaded: its parts
// come when a picture wants them.
func (a *api) painter(name string) modelObject {
	o := modelObject{ID: name, Object: "model", Created: a.created, OwnedBy: "sluice", Can: []string{"image"}}
	o.Status.Value = "loaded"
	return o
}

// describe serves GET /v1/models/{name}.
func (a *api) describe(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if name := strings.TrimPrefix(string(rc.Path()), answer.ModelsPath+"/"); a.MakesPictures(name) {
		wire.WriteJSON(rc, a.painter(name))
		return nil
	}
	return answer.Described(a.Service, a.object)(rc, x)
}

// list serves GET /v1/models.
func (a *api) list(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	all := []modelObject{}
	for _, e := range a.Entries() {
		all = append(all, a.object(&e))
	}
	for _, x := range a.Adapters() {
		o := modelObject{ID: x.Name, Object: "model", Created: a.created, OwnedBy: "sluice", Parent: x.Base}
		o.Status.Value = "loaded" // with its model: it comes when it is asked for
		all = append(all, o)
	}
	for _, name := range a.PictureModels() {
		all = append(all, a.painter(name))
	}
	wire.WriteJSON(rc, struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", all})
	return nil
}
