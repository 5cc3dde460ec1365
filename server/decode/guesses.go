package decode

import (
	"errors"
	"strings"

	"github.com/sluice-ai/sluice/server/wire"
)

// Unguessed reports whether a request forbids guessing of tokens (speculative decoding): speculate is off, or, as in
// llama-server's API, speculative.n_max is 0. The answer's tokens are the same either way.
func (f Fields) Unguessed() bool {
	how, most := "auto", 1
	f.Text("speculate", &how)
	switch how {
	case "auto", "off":
	default:
		raw, _ := f.Get("speculate")
		f.Wrong("speculate", raw, `"auto" or "off"`)
	}
	f.Count("speculative.n_max", 0, AnyLength, &most)
	return how == "off" || most == 0
}

var errPart = errors.New("it is no part of a text")

// Prediction decodes OpenAI's prediction, the text that a client expects as its answer; "" if there is none.
func (f Fields) Prediction() (text string) {
	const want = `an object such as {"type": "content", "content": "..."}`
	f.Object("prediction", want, func(p *wire.Fields) {
		kind := "content"
		p.Text("type", &kind)
		if kind != "content" {
			raw, _ := p.Get("type")
			p.Wrong("type", raw, `"content"`)
		}
		raw, ok := p.Get("content")
		switch {
		case !ok:
		case strings.HasPrefix(raw, `"`):
			p.Text("content", &text)
		default:
			text = parts(p, "content", raw)
		}
	})
	return text
}

// parts returns the joined text of a list of parts, {"type": "text", "text": "..."}.
func parts(p *wire.Fields, name, raw string) string {
	var all strings.Builder
	r := p.Reader(raw)
	err := r.Array(func() error {
		kind, said := "text", ""
		err := r.Object(func(key string) (err error) {
			switch key {
			case "type":
				kind, err = r.String()
			case "text":
				said, err = r.String()
			default:
				_, err = r.Raw()
			}
			return err
		})
		if err == nil && kind != "text" {
			return errPart
		}
		all.WriteString(said)
		return err
	})
	if err != nil {
		p.Broken(name, raw, err, `a text, or a list such as [{"type": "text", "text": "..."}]`)
	}
	return all.String()
}
