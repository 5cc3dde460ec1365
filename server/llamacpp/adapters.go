package llamacpp

import (
	"fmt"
	"math"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// adapterObject is an adapter of a model; id is what lora of a request names it by.
type adapterObject struct {
	ID    int     `json:"id"`
	Name  string  `json:"name"`
	Path  string  `json:"path"`
	Scale float32 `json:"scale"`
}

// adapters serves GET /lora-adapters. Paths are those of names: a client learns nothing of the machine's folders.
func (a *api) adapters(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if rc.IsPost() {
		return a.scaleAdapters(rc, x)
	}
	m, fault := a.AskedTo(x, answer.Tell, string(rc.QueryArgs().Peek("model")))
	if fault != nil {
		return fault
	}
	all := []adapterObject{}
	for _, s := range m.Engine.Adapters() {
		all = append(all, adapterObject{s.ID, s.Name, s.Name, s.Scale})
	}
	wire.WriteJSON(rc, all)
	return nil
}

// scaleAdapters serves POST /lora-adapters, [{"id": 0, "scale": 0.5}]: what adapters are multiplied by in requests that
// name none. Those that are left out have 0.
func (a *api) scaleAdapters(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if fault := a.ChangesAdapters(); fault != nil {
		return fault
	}
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	m, fault := a.AskedTo(x, answer.Tell, string(rc.QueryArgs().Peek("model")))
	if fault != nil {
		return fault
	}
	scales := map[int]float32{}
	err := readScales(jsontext.New(body.Text, scaleDepth, body.Budget), func(id, scale float64) error {
		if id != math.Trunc(id) || math.Abs(id) > math.MaxInt32 {
			return fmt.Errorf("there is no adapter of id %g", id)
		}
		scales[int(id)] = float32(scale)
		return nil
	})
	if err == nil {
		err = m.Engine.ScaleAdapters(scales)
	}
	if err != nil {
		return wire.Invalid("", "invalid_value", "%s: want %s", err, wantScales)
	}
	wire.WriteJSON(rc, map[string]bool{"success": true})
	return nil
}

const (
	wantScales = `a list such as [{"id": 0, "scale": 0.5}]`
	scaleDepth = 3 // of lists and objects
)

// adapters decodes lora, a list as of scaleAdapters: which adapters change the answer. An empty list says nothing.
func (f fields) adapters(m *answer.Model, r *actors.Request) {
	const name = "lora"
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	var known []actors.AdapterState
	if m.Engine != nil {
		known = m.Engine.Adapters()
	}
	err := readScales(f.Reader(raw), func(id, scale float64) error {
		for _, a := range known {
			if float64(a.ID) == id {
				r.Adapters = append(r.Adapters, actors.Adapting{Name: a.Name, Scale: float32(scale)})
				return nil
			}
		}
		f.Fault = wire.Invalid(name, "invalid_value", "%s: there is no adapter of id %g: GET /lora-adapters lists them", name, id)
		return errExtra
	})
	if err != nil && f.Fault == nil {
		f.Broken(name, raw, err, wantScales)
	}
}

// readScales reads a list of ids and scales; a scale that is left out is 1.
func readScales(list *jsontext.Reader, each func(id, scale float64) error) error {
	return list.Array(func() error {
		id, scale := -1.0, 1.0
		err := list.Object(func(key string) error {
			raw, err := list.Raw()
			if err != nil {
				return err
			}
			to := map[string]*float64{"id": &id, "scale": &scale}[key]
			if to == nil {
				return nil
			}
			if *to, err = strconv.ParseFloat(raw, 32); err != nil || math.IsInf(*to, 0) {
				return fmt.Errorf("%s is no number", key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return each(id, scale)
	})
}
