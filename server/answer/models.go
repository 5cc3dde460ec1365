package answer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Models are the models that requests may ask for, by their names for clients. The set may change at any time.
type Models interface {
	// Names lists the models; the first one is the default.
	Names() []string
	// Engine returns the engine of a model; nil if the model does not run now.
	Engine(name string) *actors.Engine
	// Use waits until the model runs, and keeps it running until done is called.
	Use(ctx context.Context, name string) (e *actors.Engine, done func(), err error)
	// Unload unloads the model once no request uses it.
	Unload(name string) error
	// Status reports whether a model is loaded, waiting, loading or unloading.
	Status(name string) actors.ModelStatus
	// Header returns what a model's file says, whether or not the model runs; nil if that is not known.
	Header(name string) *actors.Header
}

// Entry is a model that requests may ask for, whether or not it runs.
type Entry struct {
	Name   string
	Status actors.ModelStatus
	Header *actors.Header // nil: its file cannot be read
	Model  *Model         // nil: it does not run
}

// Model is an entry whose model runs, with what decoding a request needs of it.
type Model struct {
	Name   string
	Engine *actors.Engine
	// Adapters change it for requests that name none themselves; nil: those that the engine has for all.
	Adapters []actors.Adapting

	Sampling  sample.Params // its own defaults
	Vocab     int           // tokens have ids below it
	Context   int           // tokens that one request may hold
	Width     int           // numbers of a text's vector, of a model that makes some
	EndTokens []int32
	Habits    chat.Habits                           // what its template reads
	Breakers  func(texts []string) *sample.Breakers // sequence breakers of DRY sampling; no texts: the usual ones
	Fill      Fill                                  // nil: it was not trained to fill in gaps

	places *stock // places of answers in the engine, computed or waiting there
}

// Fill makes the prompt that asks for the text between before and after. stop is called from time to time; it ends
// the work if it returns true.
type Fill func(beside []token.Snippet, before, after string, stop func() bool) ([]int32, error)

const (
	following = 2              // answers of a client that may wait in the engine, beyond its share of the computed ones
	rooms     = 6              // places of a model, as a multiple of those that a lone client may have
	sessions  = 192            // most places of a model; the engine allows more sessions, for those that are about to end
	queue     = 8 * MaxChoices // choices that may wait for a place; they are not in the engine yet
)

// describe collects the properties of a model that decoding needs.
func describe(name string, e *actors.Engine) *Model {
	usual := sync.OnceValue(func() *sample.Breakers { return breakers(e.Vocab(), []string{"\n", ":", `"`, "*"}) })
	m := &Model{
		Name: name, Engine: e, places: newPlaces(e.Info.Sequences), Habits: e.Habits(),
		Sampling: e.Info.Sampling, Vocab: e.Info.Vocab, Width: e.Info.Program.OutputWidth(), Context: e.Info.Context,
		EndTokens: e.Vocab().EOG(),
		Breakers: func(texts []string) *sample.Breakers {
			if texts == nil {
				return usual()
			}
			return breakers(e.Vocab(), texts)
		},
	}
	if e.Vocab().FillsIn() {
		m.Fill = func(beside []token.Snippet, before, after string, stop func() bool) ([]int32, error) {
			return e.Vocab().Fill(beside, before, after, token.Options{AddSpecial: true, Most: m.Context, Stop: stop})
		}
	}
	return m
}

// breakers finds the tokens that restart DRY's search for repetitions.
func breakers(v *token.Vocab, texts []string) *sample.Breakers {
	return sample.TextBreakers(texts, v.Size(), v.Piece, func(text string) []int32 {
		ids, _ := v.Encode(nil, text, token.Options{}) // a text without tokens breaks nothing
		return ids
	})
}

// directory caches the descriptions of models.
type directory struct {
	models Models
	// Painter makes pictures of texts; nil: nothing does. Gallery hears of them.
	Painter Painter
	Gallery Gallery

	mu    sync.Mutex
	known map[string]*Model
}

// Entries lists all models that requests may ask for.
func (d *directory) Entries() (all []Entry) {
	for _, name := range d.models.Names() {
		all = append(all, d.entry(name))
	}
	return all
}

func (d *directory) entry(name string) Entry {
	e := Entry{Name: name, Status: d.models.Status(name), Header: d.models.Header(name)}
	if engine := d.models.Engine(name); engine != nil {
		e.Model = d.lookup(name, engine)
		said := e.Header
		if e.Header = engine.Header(); said != nil {
			e.Header.Modified = said.Modified
		}
	}
	return e
}

// ModelsPath is the path at which two APIs list models. A model's own path is ModelsPath, a slash and its name, which
// may contain slashes.
const ModelsPath = "/v1/models"

// Described returns a handler for paths below ModelsPath that answers with object's description of the model.
func Described[T any](s *Service, object func(*Entry) T) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
		e, fault := s.Entry(strings.TrimPrefix(string(rc.Path()), ModelsPath+"/"))
		if fault != nil {
			return fault
		}
		wire.WriteJSON(rc, object(&e))
		return nil
	}
}

// Entry finds a model by its name. An unknown name is a fault that lists the names there are.
func (d *directory) Entry(name string) (Entry, *wire.Fault) {
	if slices.Contains(d.models.Names(), name) {
		return d.entry(name), nil
	}
	return Entry{}, d.unknown(name)
}

func (d *directory) unknown(name string) *wire.Fault {
	which := "the model " + wire.Shown(name)
	if name == "" {
		which = "a model without a name"
	}
	f := wire.Refused(fasthttp.StatusNotFound, "model_not_found", "%s is not found here: %s", which, d.offer())
	f.Param = "model"
	return f
}

// Asked finds the model that a request for generated text names, and keeps it running until the exchange ends. If
// there is only one model, it is found by any name. The request's body must have been received.
func (d *directory) Asked(x *exchange.Exchange, name string) (*Model, *wire.Fault) {
	return d.AskedTo(x, Write, name)
}

// AskedTo is Asked for a given task. A model that is made for another task is refused.
func (d *directory) AskedTo(x *exchange.Exchange, do Task, name string) (*Model, *wire.Fault) {
	if d.MakesPictures(name) {
		return nil, wire.Invalid("model", "model_not_supported", "the model %s makes pictures, and no text: ask "+
			"POST /v1/images/generations, or another model: %s", wire.Shown(name), d.offer())
	}
	said := name
	name, adapter := d.adapterOf(name)
	if name == "" {
		return nil, wire.Invalid("model", "missing_required_parameter", "model is missing: %s", d.offer())
	}
	x.Watch()
	x.Spend(bill.Receive)
	engine, done, err := d.models.Use(x.Context, name)
	x.Spend(bill.Load)
	switch {
	case err == nil:
	case errors.Is(err, actors.ErrUnknown):
		return nil, d.unknown(name)
	case errors.Is(err, actors.ErrFull):
		return nil, wire.Unavailable("overloaded", "%v", err)
	case errors.Is(err, actors.ErrClosed), errors.Is(context.Cause(x.Context), exchange.ErrStopping):
		return nil, wire.Stopping()
	case x.Context.Err() != nil:
		return nil, wire.Gone()
	default:
		return nil, wire.Refused(fasthttp.StatusServiceUnavailable, "model_failed", "%s", wire.Told(err))
	}
	x.Keep(done)
	m := d.lookup(name, engine)
	if fault := do.refused(m); fault != nil {
		return nil, fault
	}
	if adapter == "" {
		return m, nil
	}
	if !hasAdapter(engine, adapter) {
		return nil, d.unknown(said)
	}
	changed := *m
	changed.Name, changed.Adapters = said, []actors.Adapting{{Name: adapter, Scale: 1}}
	return &changed, nil
}

// Unload unloads a model once no request uses it. The model need not run.
func (d *directory) Unload(name string) *wire.Fault {
	if names := d.models.Names(); len(names) == 1 {
		name = names[0]
	}
	switch err := d.models.Unload(name); {
	case err == nil:
		return nil
	case errors.Is(err, actors.ErrUnknown):
		return d.unknown(name)
	default:
		return wire.Refused(fasthttp.StatusNotImplemented, "not_supported", "%v", err)
	}
}

// Waiting counts the answers of a model that wait for a place in the engine.
func (d *directory) Waiting(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.known[name]; m != nil {
		return m.places.pool.Waiting()
	}
	return 0
}

// offer lists the names of models for an error message.
func (d *directory) offer() string {
	names := d.models.Names()
	if len(names) == 0 {
		return "there is none yet"
	}
	if len(names) == 1 {
		return fmt.Sprintf("the one that is has the name %q", names[0])
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "those that are have the names " + strings.Join(quoted, ", ")
}

func (d *directory) lookup(name string, e *actors.Engine) *Model {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.known[name]
	if m == nil || m.Engine != e {
		names := d.models.Names()
		maps.DeleteFunc(d.known, func(old string, _ *Model) bool { return !slices.Contains(names, old) })
		m = describe(name, e)
		d.known[name] = m
	}
	return m
}
