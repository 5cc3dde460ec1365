package actors

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Recorded is what a token trace says of a request beside the ids of its prompt, as JSON: all that its answer follows
// from.
type Recorded struct {
	sample.Params
	ID           string            `json:",omitempty"` // by which the server and its client know the request
	Drawn        int               `json:",omitempty"` // so many ids of the prompt, the last ones, were drawn before
	Drift        float64           `json:",omitempty"` // state of sampling behind them
	Form         *constrain.Source `json:",omitempty"`
	Tools        *tools.Choice     `json:",omitempty"`
	Tail         string            `json:",omitempty"` // the prompt's text that the answer goes on from, where a form has to know
	MostThoughts int               `json:",omitempty"`
	Beyond       string            `json:",omitempty"` // what the answer follows from that is not here
}

// settingsOf describes the request of a sequence that begins.
func settingsOf(h *sequence) []byte {
	a := h.of
	r := Recorded{Params: a.Sampling, ID: a.ID, Tools: a.Tools, MostThoughts: a.MostThoughts}
	if r.DRY.Multiplier == 0 {
		r.DRY.Breakers = nil // nobody looks, and there may be thousands
	}
	if r.Drawn = len(h.Tokens) - a.terms.Prompt; r.Drawn > 0 {
		r.Drift = h.state.Drift
	}
	if r.Masked && a.prompt != nil {
		r.Tail = a.prompt.Tail
	}
	switch form := a.Form; {
	case a.prompt != nil && len(a.prompt.shown) > 0:
		r.Beyond = "pictures"
	case len(a.Adapters) > 0:
		r.Beyond = "adapters"
	case form != nil && form.From == nil:
		r.Beyond = "a form"
	case form != nil:
		r.Form = form.From
	}
	text, err := json.Marshal(&r)
	if err != nil { // what JSON cannot say is no setting that was checked
		text, _ = json.Marshal(Recorded{ID: r.ID, Beyond: err.Error()})
	}
	return text
}

// errUnsaid is of a trace that has no settings of a request.
var errUnsaid = errors.New("the trace does not say how it was answered")

// Again returns a request for the tokens that one in a trace got: its settings, its prompt with what was drawn before,
// and so many tokens that it got. ID is set if only the settings can be read.
func (r *Recorded) Again(settings []byte, prompt []int32, tokens int) (Request, error) {
	switch err := json.Unmarshal(settings, r); {
	case len(settings) == 0:
		return Request{}, errUnsaid
	case err != nil:
		return Request{}, fmt.Errorf("its settings are %w", err)
	case r.Beyond != "":
		return Request{}, fmt.Errorf("the trace does not hold what it was answered with: %s", r.Beyond)
	case r.Drawn < 0 || r.Drawn >= len(prompt):
		return Request{}, fmt.Errorf("%d of its %d tokens are said to have been drawn: the file is damaged", r.Drawn, len(prompt))
	}
	known := len(prompt) - r.Drawn
	again := Request{Tokens: prompt[:known], Drawn: prompt[known:], Drift: r.Drift, MaxTokens: r.Drawn + tokens,
		Sampling: r.Params, Stop: []string{}, Tools: r.Tools, Tail: r.Tail, MostThoughts: r.MostThoughts, ID: r.ID}
	if r.Form != nil {
		again.Form = r.Form.Form("form")
	}
	bound := again.Form != nil || again.Tools != nil && again.Tools.Binds() || again.MostThoughts > 0
	if r.Masked && !bound {
		return Request{}, errors.New("the trace does not have the form of its answer")
	}
	again.IgnoreEOG = !bound // what was drawn decides where it ends
	return again, nil
}
