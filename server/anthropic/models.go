package anthropic

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// modelObject describes a model.
type modelObject struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Display   string `json:"display_name"`
	Created   string `json:"created_at"`
	Lifecycle string `json:"lifecycle"`
	MaxInput  int    `json:"max_input_tokens"` // prompt and answer share the context
	Max       int    `json:"max_tokens"`
}

func (a *api) object(m *answer.Model) modelObject {
	return modelObject{"model", m.Name, m.Name, a.created, "active", m.Context, m.Context}
}

// list serves GET /v1/models: all of them on one page.
func (a *api) list(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	page := struct {
		Data    []modelObject `json:"data"`
		HasMore bool          `json:"has_more"`
		First   *string       `json:"first_id"`
		Last    *string       `json:"last_id"`
	}{Data: []modelObject{}}
	for _, m := range a.Models() {
		page.Data = append(page.Data, a.object(m))
	}
	if n := len(page.Data); n > 0 {
		page.First, page.Last = &page.Data[0].ID, &page.Data[n-1].ID
	}
	wire.WriteJSON(rc, page)
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
