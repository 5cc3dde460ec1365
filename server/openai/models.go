package openai

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
)

// modelObject describes a model; meta has llama.cpp's names.
type modelObject struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	OwnedBy string    `json:"owned_by"`
	Meta    modelMeta `json:"meta"`
}

type modelMeta struct {
	Architecture string `json:"architecture"`
	Vocab        int    `json:"n_vocab"`
	Trained      int    `json:"n_ctx_train"`
	Context      int    `json:"n_ctx"`
	Parameters   int64  `json:"n_params"`
	Size         int64  `json:"size"`
}

func (a *API) object() modelObject {
	i := &a.Engine.Info
	return modelObject{
		a.Model, "model", a.created, "sluice",
		modelMeta{i.Architecture, i.Vocab, i.Trained, i.Context, i.Parameters, i.WeightBytes},
	}
}

// Models serves GET /v1/models.
func (a *API) Models(rc *fasthttp.RequestCtx, _ *exchange.Exchange) {
	WriteJSON(rc, struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", []modelObject{a.object()}})
}

// ModelPath is where single models are, by name.
const ModelPath = "/v1/models/"

// OneModel serves GET /v1/models/{name}; names may hold slashes.
func (a *API) OneModel(rc *fasthttp.RequestCtx, _ *exchange.Exchange) {
	name := strings.TrimPrefix(string(rc.Path()), ModelPath)
	if name != a.Model {
		e := Refused(fasthttp.StatusNotFound, "model_not_found", "the model %s is not here: the one that is has the name %q",
			shown([]byte(name)), a.Model)
		e.Param = "model"
		Write(rc, e)
		return
	}
	WriteJSON(rc, a.object())
}

// WriteJSON answers with a value that cannot fail to be encoded.
func WriteJSON(rc *fasthttp.RequestCtx, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	rc.SetContentType("application/json")
	rc.SetBody(body)
}
