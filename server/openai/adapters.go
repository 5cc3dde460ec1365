package openai

import (
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// loadAdapter serves POST /v1/load_lora_adapter, as vLLM has it: the adapter that the server has under lora_path is
// known by lora_name from now on.
func (a *api) loadAdapter(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.changeAdapter(rc, x, func(m *answer.Model, f *wire.Fields, name string) *wire.Fault {
		path := ""
		if f.Text("lora_path", &path); f.Fault != nil {
			return f.Fault
		}
		one, err := a.Folder.Adapter(name, path, m.Engine)
		if err == nil {
			err = m.Engine.AddAdapter(one, true)
		}
		if err != nil {
			return wire.Invalid("lora_path", "invalid_value", "%s", wire.Told(err))
		}
		return nil
	})
}

// unloadAdapter serves POST /v1/unload_lora_adapter. Requests that use the adapter go on.
func (a *api) unloadAdapter(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.changeAdapter(rc, x, func(m *answer.Model, _ *wire.Fields, name string) *wire.Fault {
		if !m.Engine.DropAdapter(name) {
			return wire.Refused(fasthttp.StatusNotFound, "not_found", "there is no adapter called %.80q", name)
		}
		return nil
	})
}

// changeAdapter receives a body that names an adapter, and answers with success or the fault of do.
func (a *api) changeAdapter(rc *fasthttp.RequestCtx, x *exchange.Exchange,
	do func(m *answer.Model, f *wire.Fields, name string) *wire.Fault) *wire.Fault {
	if fault := a.ChangesAdapters(); fault != nil {
		return fault
	}
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	f := wire.ReadFields(body.Text, body.Budget)
	base, name := "", ""
	f.Text("model", &base)
	if f.Text("lora_name", &name); f.Fault != nil {
		return f.Fault
	}
	if err := actors.CheckAdapterName(name); err != nil {
		return wire.Invalid("lora_name", "invalid_value", "lora_name: %s", err)
	}
	m, fault := a.AskedTo(x, answer.Tell, base)
	if fault == nil {
		fault = do(m, f, name)
	}
	if fault == nil {
		wire.WriteJSON(rc, map[string]bool{"success": true})
	}
	return fault
}
