package decode

import (
	"errors"
	"strconv"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// Inputs decodes a field with a text, texts, token ids, or lists of token ids. More than most entries are a fault.
func (f Fields) Inputs(name string, most int, m *answer.Model) []answer.Text {
	const want = "a string, a list of strings, a list of token ids, or a list of such lists"
	raw, ok := f.Get(name)
	if !ok {
		if f.Fault == nil {
			f.Fault = wire.Invalid(name, "missing_required_parameter", "%s is missing: want %s", name, want)
		}
		return nil
	}
	r := f.Reader(raw)
	if r.Next() == '"' {
		text, err := r.String()
		if err != nil {
			f.Broken(name, raw, err, want)
		}
		return []answer.Text{{Text: text}}
	}
	var ids []int32
	var all []answer.Text
	err := r.Array(func() error {
		var one answer.Text
		var err error
		switch r.Next() {
		case '"':
			one.Text, err = r.String()
		case '[':
			err = r.Array(func() error { return f.token(r, &one.Tokens, name, m) })
			if err == nil && len(one.Tokens) == 0 {
				err = errInput
			}
		default:
			return f.token(r, &ids, name, m)
		}
		if len(all) == most && f.Fault == nil {
			f.Fault = wire.Invalid(name, "invalid_value", "%s has more than %d entries: want fewer", name, most)
		}
		if f.Fault != nil {
			return errInput
		}
		all = append(all, one)
		return err
	})
	if ids != nil {
		all = append(all, answer.Text{Tokens: ids})
	}
	if err == nil && len(all) == 0 || ids != nil && len(all) > 1 {
		err = errInput // nothing, or tokens beside prompts
	}
	if err != nil {
		f.Broken(name, raw, err, want)
	}
	return all
}

// errInput ends the decoding of an input of a wrong type.
var errInput = errors.New("no input")

// token decodes one token id of an input. There may be as many as the context holds.
func (f Fields) token(r *jsontext.Reader, ids *[]int32, name string, m *answer.Model) error {
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(raw, 10, 32)
	switch {
	case err != nil:
		return err
	case f.Fault != nil:
		return errInput
	case id < 0 || int(id) >= m.Vocab:
		f.Fault = wire.Invalid(name, "invalid_value", "token %d of the %s is %d: the vocabulary has 0 to %d",
			len(*ids), name, id, m.Vocab-1)
		return errInput
	case len(*ids) == m.Context:
		f.Fault = wire.Invalid(name, "context_length_exceeded",
			"the %s has more tokens than the context, which holds %d: shorten it, or start with a larger --ctx", name, m.Context)
		return errInput
	}
	*ids = append(*ids, int32(id))
	return nil
}
