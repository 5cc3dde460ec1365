package anthropic

import (
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// modelObject describes a model as GET /v1/models returns it.
type modelObject struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Display   string `json:"display_name"`
	Created   string `json:"created_at"`
	Lifecycle string `json:"lifecycle"`
	MaxInput  int    `json:"max_input_tokens"` // prompt and answer share the context; 0: not known, its file cannot be read
	Max       int    `json:"max_tokens"`
}

func (a *api) object(e *answer.Entry) modelObject {
	o := modelObject{Type: "model", ID: e.Name, Display: e.Name, Created: a.created, Lifecycle: "active"}
	if e.Header != nil {
		o.MaxInput, o.Max = e.Header.Info.Context, e.Header.Info.Context
	}
	return o
}

// list serves GET /v1/models, all models on one page.
func (a *api) list(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	page := struct {
		Data    []modelObject `json:"data"`
		HasMore bool          `json:"has_more"`
		First   *string       `json:"first_id"`
		Last    *string       `json:"last_id"`
	}{Data: []modelObject{}}
	for _, e := range a.Entries() {
		page.Data = append(page.Data, a.object(&e))
	}
	if n := len(page.Data); n > 0 {
		page.First, page.Last = &page.Data[0].ID, &page.Data[n-1].ID
	}
	wire.WriteJSON(rc, page)
	return nil
}
