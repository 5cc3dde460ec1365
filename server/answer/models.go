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
	"github.com/sluice-ai/sluice/actors/fleet"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Models are those that can be asked, by the names that clients know. Which they are may change at any time.
type Models interface {
	// Names lists them, the first one first.
	Names() []string
	// Engine runs the model of that name; nil if none does now.
	Engine(name string) *actors.Engine
	// Use waits until the model runs, which it then does until done is called.
	Use(ctx context.Context, name string) (e *actors.Engine, done func(), err error)
	// Status says where the model is.
	Status(name string) fleet.Status
}

// Entry is a model that can be asked, whether or not it runs.
type Entry struct {
	Name   string
	Status fleet.Status
	Model  *Model // nil: it does not run
}

// Model is one of them, with what must be known of it to decode a request.
type Model struct {
	Name   string
	Engine *actors.Engine

	Sampling  sample.Params // its own defaults
	Vocab     int           // tokens have ids below it
	Context   int           // tokens that one request may hold
	Width     int           // numbers of a text's vector, of a model that makes some
	EndTokens []int32
	Habits    chat.Habits                           // of its template
	Breakers  func(texts []string) *sample.Breakers // of DRY; nil: the usual ones
	Fill      Fill                                  // nil: it was not trained to fill in gaps

	places *stock // those of its answers in the engine, where they are computed or wait for it
}

// Fill makes the prompt that asks for what is missing between two texts; stop is asked from time to time.
type Fill func(beside []token.Snippet, before, after string, stop func() bool) ([]int32, error)

const (
	following = 2              // answers of a client that are opened beside those that are computed
	rooms     = 6              // so many clients may have as many places as one could that is alone
	sessions  = 192            // places of a model at most; the engine has more, for those that are about to end
	queue     = 8 * MaxChoices // choices that may wait for a place; they are no sessions of the engine's yet
)

// describe collects what decoding needs.
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

// breakers finds the tokens at which DRY starts anew.
func breakers(v *token.Vocab, texts []string) *sample.Breakers {
	return sample.TextBreakers(texts, v.Size(), v.Piece, func(text string) []int32 {
		ids, _ := v.Encode(nil, text, token.Options{}) // a text without tokens breaks nothing
		return ids
	})
}

// directory remembers what was found out about models.
type directory struct {
	models Models
	mu     sync.Mutex
	known  map[string]*Model
}

// Entries lists all that can be asked.
func (d *directory) Entries() (all []Entry) {
	for _, name := range d.models.Names() {
		all = append(all, d.entry(name))
	}
	return all
}

func (d *directory) entry(name string) Entry {
	e := Entry{Name: name, Status: d.models.Status(name)}
	if engine := d.models.Engine(name); engine != nil {
		e.Model = d.lookup(name, engine)
	}
	return e
}

// ModelsPath is where two APIs list models; below it, a model is described by its name, which may hold slashes.
const ModelsPath = "/v1/models"

// Described answers for the model that is asked for below ModelsPath, with what object says of it.
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

// Entry finds one by its name.
func (d *directory) Entry(name string) (Entry, *wire.Fault) {
	if slices.Contains(d.models.Names(), name) {
		return d.entry(name), nil
	}
	return Entry{}, d.unknown(name)
}

func (d *directory) unknown(name string) *wire.Fault {
	f := wire.Refused(fasthttp.StatusNotFound, "model_not_found", "the model %s is not found here: %s",
		wire.Shown(name), d.offer())
	f.Param = "model"
	return f
}

// Asked has the model run that a request wants an answer of, until that is complete. If there is only one, it is that,
// whichever name the client knows it by. The body was received.
func (d *directory) Asked(x *exchange.Exchange, name string) (*Model, *wire.Fault) {
	return d.AskedTo(x, Write, name)
}

// AskedTo is Asked for a task. A model that is for another is refused.
func (d *directory) AskedTo(x *exchange.Exchange, do Task, name string) (*Model, *wire.Fault) {
	if names := d.models.Names(); len(names) == 1 {
		name = names[0]
	}
	if name == "" {
		return nil, wire.Invalid("model", "missing_required_parameter", "model is missing: %s", d.offer())
	}
	x.Watch()
	engine, done, err := d.models.Use(x.Context, name)
	switch {
	case err == nil:
	case errors.Is(err, fleet.ErrUnknown):
		return nil, d.unknown(name)
	case errors.Is(err, fleet.ErrFull):
		return nil, wire.Unavailable("overloaded", "%v", err)
	case errors.Is(err, fleet.ErrClosed), errors.Is(context.Cause(x.Context), exchange.ErrStopping):
		return nil, wire.Stopping()
	case x.Context.Err() != nil:
		return nil, wire.Gone()
	default:
		return nil, wire.Refused(fasthttp.StatusServiceUnavailable, "model_failed", "%v", err)
	}
	x.Keep(done)
	m := d.lookup(name, engine)
	if fault := do.refused(m); fault != nil {
		return nil, fault
	}
	return m, nil
}

// Waiting is how many answers of a model wait for a place among those that are computed.
func (d *directory) Waiting(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.known[name]; m != nil {
		return m.places.pool.Waiting()
	}
	return 0
}

// offer says which names there are.
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
