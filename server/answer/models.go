package answer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Models are those that can be asked, by the names that clients know. Which they are may change at any time.
type Models interface {
	// Names lists them, the first one first. There is at least one.
	Names() []string
	// Engine runs the model of that name; nil if there is none.
	Engine(name string) *actors.Engine
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
	Roles     []string                              // that messages may have
	Breakers  func(texts []string) *sample.Breakers // of DRY; nil: the usual ones
	Fill      Fill                                  // nil: it was not trained to fill in gaps

	places *stock // those of its answers: as many as are computed at once, and some that are ready to follow
}

// Fill makes the prompt that asks for what is missing between two texts; stop is asked from time to time.
type Fill func(beside []token.Snippet, before, after string, stop func() bool) ([]int32, error)

const (
	following = 2              // answers that are opened beside those that are computed
	queue     = 8 * MaxChoices // choices that may wait for a place; they are no sessions of the engine's yet
)

// describe collects what decoding needs.
func describe(name string, e *actors.Engine) *Model {
	usual := sync.OnceValue(func() *sample.Breakers { return breakers(e.Vocab(), []string{"\n", ":", `"`, "*"}) })
	m := &Model{
		Name: name, Engine: e, places: newStock(int64(e.Info.Sequences+following), queue), Roles: e.Roles(),
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

// Models lists all.
func (d *directory) Models() (all []*Model) {
	for _, name := range d.models.Names() {
		if m := d.lookup(name); m != nil {
			all = append(all, m)
		}
	}
	return all
}

// Named finds a model by its name.
func (d *directory) Named(name string) (*Model, *wire.Fault) {
	if m := d.lookup(name); m != nil {
		return m, nil
	}
	f := wire.Refused(fasthttp.StatusNotFound, "model_not_found", "the model %s is not here: %s",
		wire.Shown(name), d.offer())
	f.Param = "model"
	return nil, f
}

// Asked finds the model that a request wants an answer of. If there is only one, it is that, whichever name the client
// knows it by.
func (d *directory) Asked(name string) (*Model, *wire.Fault) { return d.AskedTo(Write, name) }

// AskedTo finds the model that a request wants for a task, and refuses one that is for another.
func (d *directory) AskedTo(do Task, name string) (*Model, *wire.Fault) {
	m, fault := d.wanted(name)
	if fault == nil {
		fault = do.refused(m)
	}
	if fault != nil {
		return nil, fault
	}
	return m, nil
}

func (d *directory) wanted(name string) (*Model, *wire.Fault) {
	if names := d.models.Names(); len(names) == 1 {
		return d.Named(names[0])
	}
	if name == "" {
		return nil, wire.Invalid("model", "missing_required_parameter", "model is missing: %s", d.offer())
	}
	return d.Named(name)
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
	if len(names) == 1 {
		return fmt.Sprintf("the one that is has the name %q", names[0])
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "those that are have the names " + strings.Join(quoted, ", ")
}

func (d *directory) lookup(name string) *Model {
	e := d.models.Engine(name)
	if e == nil {
		return nil
	}
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
