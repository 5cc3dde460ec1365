package ollama

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// api answers requests in this dialect.
type api struct {
	*answer.Service
	since time.Time // what it says of every model: when it began to be served
}

// Dialect is Ollama's list of models for those of a service. What changes models is refused: they are the owner's.
func Dialect(s *answer.Service) answer.Dialect {
	a := &api{s, time.Now().UTC()}
	routes := []answer.Route{
		{Method: fasthttp.MethodGet, Path: "/api/tags", Help: "the models, as Ollama lists them", Handle: a.tags},
	}
	for _, verb := range []string{"pull", "push", "create", "copy", "delete"} {
		routes = append(routes, answer.Route{Path: "/api/" + verb, Handle: refuse(verb)})
	}
	return answer.Dialect{Name: "Ollama's model list", Fault: appendFault, Routes: routes}
}

// appendFault writes {"error": "…"}.
func appendFault(dst []byte, f *wire.Fault) []byte {
	return append(wire.AppendString(append(dst, `{"error":`...), f.Text), '}')
}

func refuse(verb string) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
		return wire.Refused(fasthttp.StatusNotImplemented, "not_implemented",
			"%s is not possible here: the models are those that the server was started with", verb)
	}
}

// tag describes a model. There is no digest, as files are not hashed.
type tag struct {
	Name     string    `json:"name"`
	Model    string    `json:"model"`
	Modified time.Time `json:"modified_at"`
	Size     int64     `json:"size"` // bytes of weights
	Details  details   `json:"details"`
}

type details struct {
	Format     string   `json:"format"`
	Family     string   `json:"family"`
	Families   []string `json:"families"`
	Parameters string   `json:"parameter_size"`
}

// tags serves GET /api/tags.
func (a *api) tags(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	all := []tag{}
	for _, m := range a.Models() {
		i := &m.Engine.Info
		family := details{"gguf", i.Architecture, []string{i.Architecture}, scaled(i.Parameters)}
		all = append(all, tag{m.Name, m.Name, a.since, i.WeightBytes, family})
	}
	wire.WriteJSON(rc, map[string][]tag{"models": all})
	return nil
}

// scaled spells a number of parameters as people do: 7.6B.
func scaled(n int64) string {
	unit, size := "", 1.0
	switch {
	case n >= 1e9:
		unit, size = "B", 1e9
	case n >= 1e6:
		unit, size = "M", 1e6
	case n >= 1e3:
		unit, size = "K", 1e3
	default:
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(float64(n)/size, 'f', 1, 64) + unit
}
