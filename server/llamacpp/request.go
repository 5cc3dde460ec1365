package llamacpp

import (
	"errors"
	"math"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
)

// request is a decoded request: an order, and the format of its answer.
type request struct {
	answer.Order
	settings settings // sampling parameters, which the answer repeats
	several  bool     // the answer is a list
	tokens   bool     // the ids of tokens are wanted
	probs    bool     // the log-probabilities of tokens are wanted
	silent   bool     // no text is wanted: the prompt is only computed into the cache, for later prompts
}

// fields are the members of a request's body.
type fields struct{ decode.Fields }

// decodeCompletion decodes the body of POST /completion.
func decodeCompletion(body answer.Body, find decode.Finder) (request, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return request{}, in.Fault
	}
	f := fields{in}
	o, r := f.common(m)
	texts := f.Inputs("prompt", answer.MaxChoices, m)
	names, pictures := f.pictures(m)
	for _, t := range texts {
		one := r
		if one.Text, one.Tokens = t.Text, t.Tokens; len(pictures) > 0 {
			one.Text, one.Shown = chat.Show(t.Text, names, pictures)
		}
		o.Prompts = append(o.Prompts, one)
	}
	f.placed(names, texts)
	o.several = len(o.Prompts) > 1
	return o, f.Fault
}

// decodeInfill decodes the body of POST /infill.
func decodeInfill(body answer.Body, find decode.Finder) (request, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return request{}, in.Fault
	}
	f := fields{in}
	o, r := f.common(m)
	f.off("image_data", "a text with a gap has no places for pictures")
	before, after, prompt := "", "", ""
	f.Text("input_prefix", &before)
	f.Text("input_suffix", &after)
	f.Text("prompt", &prompt) // the beginning of the text in the gap
	r.Tokens = f.Fill(m, "input_suffix", f.beside(), before+prompt, after)
	o.Prompts = []actors.Request{r}
	return o, f.Fault
}

// beside decodes the texts from other files (input_extra).
func (f fields) beside() (all []token.Snippet) {
	const name, most, want = "input_extra", 1024, `a list such as [{"filename": "a.go", "text": "..."}]`
	raw, ok := f.Get(name)
	if !ok {
		return nil
	}
	r := f.Reader(raw)
	err := r.Array(func() error {
		if len(all) == most && f.Fault == nil {
			f.Fault = wire.Invalid(name, "invalid_value", "%s has more than %d entries: want fewer", name, most)
		}
		if f.Fault != nil {
			return errExtra
		}
		s := token.Snippet{Name: "file"}
		err := r.Object(func(key string) (err error) {
			switch key {
			case "filename":
				s.Name, err = r.String()
			case "text":
				s.Text, err = r.String()
			default:
				_, err = r.Raw()
			}
			return err
		})
		all = append(all, s)
		return err
	})
	if err != nil {
		f.Broken(name, raw, err, want)
	}
	return all
}

// common decodes the fields of both endpoints. The returned engine request lacks the prompt.
func (f fields) common(m *answer.Model) (o request, r actors.Request) {
	o = request{Order: answer.Order{Model: m, N: 1}}
	f.Terms(&o.Order)
	r = actors.Request{Sampling: f.Sampling(m), MaxTokens: -1}
	f.Flag("stream", &o.Stream)
	f.Flag("return_progress", &o.Reading)
	f.Flag("return_tokens", &o.tokens)
	f.Count("max_tokens", -2, decode.AnyLength, &r.MaxTokens)
	f.Count("n_predict", -2, decode.AnyLength, &r.MaxTokens)
	if o.silent = r.MaxTokens == 0; o.silent {
		r.MaxTokens = 1 // the engine generates at least one token, which the answer leaves out
	}
	r.MaxTokens = max(r.MaxTokens, 0)
	most := -1
	f.Count("t_max_predict_ms", -1, math.MaxInt32, &most)
	o.Within = time.Duration(max(most, 0)) * time.Millisecond
	f.Texts("stop", answer.MaxStops, answer.MaxStopBytes, &r.Stop)
	f.Flag("ignore_eos", &r.IgnoreEOG)
	if r.IgnoreEOG {
		r.Sampling.IgnoreEOG = m.EndTokens
	}
	r.Unguessed, r.Slot = f.Unguessed(), answer.SlotOf(f.Slot(m))
	top := 0
	f.Count("n_probs", 0, answer.MaxTopProbs, &top)
	r.Sampling.LogProbs = -1
	if o.probs = top > 0; o.probs || o.tokens {
		r.Sampling.LogProbs = top // ids come with the log-probabilities
	}
	r.Form = f.Form()
	f.off("post_sampling_probs", "n_probs gives those of the model")
	f.adapters(m, &r)
	o.settings = settingsOf(&r.Sampling, r.MaxTokens)
	if o.silent {
		o.settings.MaxTokens, o.tokens, o.probs = 0, false, false
	}
	return o, r
}

// errExtra ends the decoding of an input_extra of a wrong type.
var errExtra = errors.New("no text")

// off refuses a field that asks for a missing feature. Clients send such fields with their neutral value, which is
// accepted.
func (f fields) off(name, instead string) {
	switch raw, _ := f.Get(name); raw {
	case "0", "-1", "[]", "{}":
	default:
		f.Absent(name, instead)
	}
}
