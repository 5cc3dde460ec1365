package answer

import (
	"context"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/promise"
)

// Limits of a request in every dialect.
const (
	MaxChoices   = 128 // N times the number of prompts
	MaxMessages  = 4096
	MaxStops     = 16
	MaxStopBytes = 1024
	MaxTopProbs  = 20
	MaxValues    = 1 << 15 // values in a body's JSON: keys, lists and objects count too, long lists of numbers do not
)

// Body is the text of a request's body, with the budget for decoding it.
type Body struct {
	Text   string
	Budget *jsontext.Budget
	Fetch  Fetch // nil: the server fetches nothing
	Kept   Fetch // finds a picture that came with an earlier request by its name, not an address; nil: none is kept
}

// Fetch gets a picture by its address. Its errors are for the client.
type Fetch func(url string) ([]byte, error)

// NewBody returns a body of the given text, whose decoding stops when ctx ends.
func NewBody(ctx context.Context, text string) Body {
	return Body{Text: text, Budget: &jsontext.Budget{Values: MaxValues, Stop: func() error { return context.Cause(ctx) }}}
}

// Order is a decoded request for generated text.
type Order struct {
	Model   *Model
	Prompts []actors.Request
	N       int // choices for each prompt; they differ in their seed
	Stream  bool
	Reading bool          // the client wants to know at once how far its prompt is read
	Within  time.Duration // after this time the answer ends with the line at hand; 0: no limit
	Notes   []string      // what of the request is passed over, for the log
	IDs     bool          // the encoder wants the ids of all tokens, prompt and answer
	Store   bool          // with answers that outlive the process: this one is kept until it is deleted
	// Background has the answer computed also if nobody reads it; only where Service.Lasts.
	Background bool
	Causes     bool          // the client wants to know what its time went to
	Deadline   time.Duration // after its arrival, by which its answers are to be whole; 0: none
	Repeats    bool          // the encoder keeps parts of the stream for its end: they are charged as memory

	predicted []promise.Forecast // by choice; nil: not known, or nobody asked
}

// Requests returns the engine's requests, one for each choice.
func (o *Order) Requests() []actors.Request {
	out := make([]actors.Request, 0, len(o.Prompts)*o.N)
	for _, r := range o.Prompts {
		out = append(out, r.Choices(o.N)...)
	}
	return out
}
