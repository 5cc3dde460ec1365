package openai

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
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

func (a *api) object(m *answer.Model) modelObject {
	i := &m.Engine.Info
	return modelObject{
		m.Name, "model", a.created, "sluice",
		modelMeta{i.Architecture, i.Vocab, i.Trained, i.Context, i.Parameters, i.WeightBytes},
	}
}

// list serves GET /v1/models.
func (a *api) list(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	all := []modelObject{}
	for _, m := range a.Models() {
		all = append(all, a.object(m))
	}
	wire.WriteJSON(rc, struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", all})
	return nil
}

// modelPath is where single models are, by name; names may hold slashes.
const modelPath = "/v1/models/"

// describe serves GET /v1/models/{name}.
func (a *api) describe(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	m, fault := a.Named(strings.TrimPrefix(string(rc.Path()), modelPath))
	if fault != nil {
		return fault
	}
	wire.WriteJSON(rc, a.object(m))
	return nil
}
