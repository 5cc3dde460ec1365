package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// api answers requests of Ollama's API.
type api struct {
	*answer.Service
	store Store     // nil: clients may change nothing
	since time.Time // the server's start: modified_at of models whose files' time is not known
}

// Dialect is Ollama's API for the models of a service. Changes of models are refused if store is nil.
func Dialect(s *answer.Service, store Store) answer.Dialect {
	a := &api{Service: s, store: store, since: time.Now().UTC()}
	const get, post = fasthttp.MethodGet, fasthttp.MethodPost
	routes := []answer.Route{
		{Method: post, Path: "/api/chat", Help: "an answer to a conversation", Handle: a.chat},
		{Method: post, Path: "/api/generate", Help: "an answer to a text, or its continuation", Handle: a.generate},
		{Method: post, Path: "/api/embed", Help: "the vectors of texts", Handle: a.embed},
		{Method: post, Path: "/api/embeddings", Handle: a.embedOne},
		{Method: get, Path: "/api/tags", Help: "the models", Handle: a.tags},
		{Method: post, Path: "/api/show", Help: "what a model is", Handle: a.show},
		{Method: get, Path: "/api/ps", Handle: a.running},
		{Method: get, Path: "/api/version", Handle: version},
	}
	c := &changes{api: a, store: store, running: map[string]int{}}
	routes = append(routes, c.routes()...)
	return answer.Dialect{Name: "Ollama's API", Fault: appendFault, Routes: routes}
}

// appendFault appends {"error": "…"}.
func appendFault(dst []byte, f *wire.Fault) []byte {
	return append(wire.AppendString(append(dst, `{"error":`...), f.Text), '}')
}

// likeVersion is the release of Ollama whose fields are all supported here. Clients compare it with the one they
// need.
const likeVersion = "0.12.11"

// version serves GET /api/version.
func version(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	wire.WriteJSON(rc, map[string]string{"version": likeVersion})
	return nil
}

// finder finds models for a task, and keeps them running until the exchange ends.
func (a *api) finder(x *exchange.Exchange, do answer.Task) decode.Finder {
	return func(name string) (*answer.Model, *wire.Fault) {
		if adapter := strings.TrimSuffix(name, ":latest"); a.Adapts(adapter) {
			return a.AskedTo(x, do, adapter)
		}
		m, fault := a.known(name)
		if fault != nil {
			return nil, fault
		}
		return a.AskedTo(x, do, m.Name)
	}
}

// known finds a model by its name. Clients add the tag "latest" to names without a tag. Another tag asks for exactly
// that model; a name without a tag also matches the only model with any tag.
func (a *api) known(name string) (answer.Entry, *wire.Fault) {
	if name == "" {
		return answer.Entry{}, wire.Invalid("model", "missing_required_parameter",
			"model is missing: GET /api/tags lists those that are")
	}
	m, fault := a.Entry(name)
	if fault == nil {
		return m, nil
	}
	if a.store != nil { // the name of a removed model must not lead to another
		return a.Entry(a.store.Known(name))
	}
	at := strings.LastIndexByte(name, ':')
	if at >= 0 && name[at:] != ":latest" {
		return m, fault
	}
	if all := a.Entries(); len(all) == 1 {
		return all[0], nil
	}
	if at >= 0 {
		return a.Entry(name[:at])
	}
	return m, fault
}

// digest distinguishes models that have the same name at different times. It hashes the file's single settings and
// its size, since hashing weights takes too long, and only the name if the file cannot be read.
func digest(e *answer.Entry) string {
	h := sha256.New()
	if e.Header == nil {
		h.Write([]byte(e.Name))
	} else {
		for _, key := range e.Header.Settings.Keys() {
			v, _ := e.Header.Settings.Get(key)
			fmt.Fprintf(h, "%q=%#v\n", key, v)
		}
		fmt.Fprintf(h, "%d bytes\n", e.Header.Info.WeightBytes)
	}
	return hex.EncodeToString(h.Sum(nil))
}
