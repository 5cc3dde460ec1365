package answer

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/wire"
)

// AdapterFolder has adapters that clients may have the server load.
type AdapterFolder interface {
	// Adapter returns the adapter that lies there under path, with another name, for the model of an engine.
	Adapter(name, path string, base *actors.Engine) (actors.Adapter, error)
}

// ChangesAdapters is the fault of a request that changes adapters where clients may not.
func (s *Service) ChangesAdapters() *wire.Fault {
	if s.Folder != nil {
		return nil
	}
	return wire.Refused(fasthttp.StatusForbidden, "forbidden",
		"clients may not change adapters here: start the server with --loras FOLDER and --allow-store")
}

// between is what stands between the name of a model and that of an adapter: BASE+NAME.
const between = "+"

// adapterOf takes apart what a request calls a model: the name of one, of an adapter of one that runs, or BASE+NAME. If
// there is only one model, it is found by any name without an adapter.
func (d *directory) adapterOf(name string) (base, adapter string) {
	names := d.models.Names()
	if slices.Contains(names, name) {
		return name, ""
	}
	for _, base := range names {
		if e := d.models.Engine(base); e != nil && hasAdapter(e, name) {
			return base, name
		}
	}
	if at := strings.LastIndex(name, between); at > 0 {
		base, adapter = name[:at], name[at+len(between):]
		if slices.Contains(names, base) {
			return base, adapter
		}
	}
	if len(names) == 1 {
		return names[0], ""
	}
	return name, ""
}

// Adapts says whether a request that calls a model so asks for an adapter.
func (d *directory) Adapts(name string) bool {
	_, adapter := d.adapterOf(name)
	return adapter != ""
}

func hasAdapter(e *actors.Engine, name string) bool {
	return slices.ContainsFunc(e.Adapters(), func(a actors.AdapterState) bool { return a.Name == name })
}

// AdapterEntry is an adapter that requests may ask for as for a model.
type AdapterEntry struct {
	actors.AdapterState
	Base string // the model that it changes
}

// Adapters lists the adapters of models that run.
func (d *directory) Adapters() (all []AdapterEntry) {
	for _, base := range d.models.Names() {
		if e := d.models.Engine(base); e != nil {
			for _, a := range e.Adapters() {
				all = append(all, AdapterEntry{a, base})
			}
		}
	}
	return all
}
