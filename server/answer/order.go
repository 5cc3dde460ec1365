package answer

import "github.com/sluice-ai/sluice/actors"

// Limits of a request in any dialect.
const (
	MaxChoices   = 128 // N times the number of prompts
	MaxMessages  = 4096
	MaxStops     = 16
	MaxStopBytes = 1024
	MaxTopProbs  = 20
)

// Order is what a request asks for.
type Order struct {
	Model   *Model
	Prompts []actors.Request
	N       int // choices for each prompt; they differ in their seed
	Stream  bool
}

// Requests are the engine's, one for each choice.
func (o *Order) Requests() []actors.Request {
	out := make([]actors.Request, 0, len(o.Prompts)*o.N)
	for _, r := range o.Prompts {
		out = append(out, r.Choices(o.N)...)
	}
	return out
}
