package decode

import (
	"errors"
	"strings"

	"github.com/sluice-ai/sluice/server/wire"
)

// Unguessed says whether a request wants no token of its answer guessed: speculate is off, or, as llama-server has it,
// speculative.n_max is 0. It changes no token.
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

// Prediction is the text that a client expects as its answer, OpenAI's prediction; "": none.
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

// parts is the text of a list of parts, {"type": "text", "text": "..."}.
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
