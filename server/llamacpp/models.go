package llamacpp

import (
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// load serves POST /models/load. It answers when the model is loaded.
func (a *api) load(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.named(rc, x, func(name string) *wire.Fault {
		_, fault := a.AskedTo(x, answer.Tell, name)
		return fault
	})
}

// unload serves POST /models/unload. The model is unloaded when no request uses it.
func (a *api) unload(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.named(rc, x, a.Unload)
}

// named receives a body that names a model, and answers with success or the fault of do.
func (a *api) named(rc *fasthttp.RequestCtx, x *exchange.Exchange, do func(name string) *wire.Fault) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	f, name := wire.ReadFields(body.Text, body.Budget), ""
	f.Text("model", &name)
	if f.Fault != nil {
		return f.Fault
	}
	if fault := do(name); fault != nil {
		return fault
	}
	wire.WriteJSON(rc, map[string]bool{"success": true})
	return nil
}
