package decode

import (
	"errors"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/token"
)

// Fill returns the tokens of a prompt that asks for the text between before and after. field names the request's
// field in faults.
func (f Fields) Fill(m *answer.Model, field string, beside []token.Snippet, before, after string) []int32 {
	if f.Fault != nil {
		return nil
	}
	if m.Fill == nil {
		f.Fault = wire.Invalid(field, "unsupported_value",
			"%s: the model %s has no tokens for a gap in a text: ask one that was trained to fill in", field, wire.Shown(m.Name))
		return nil
	}
	ids, err := m.Fill(beside, before, after, func() bool { return f.Budget.Stop != nil && f.Budget.Stop() != nil })
	var long *token.TooLong
	switch {
	case err == nil:
	case errors.As(err, &long):
		f.Fault = wire.Invalid(field, "context_length_exceeded", "the texts around the gap are more than the context holds, "+
			"which is %d tokens: send less of them, or start with a larger --ctx", m.Context)
	case errors.Is(err, token.ErrStopped):
		f.Fault = wire.Gone()
	default:
		f.Fault = wire.Invalid(field, "invalid_value", "the texts around the gap cannot be put into tokens: %v", err)
	}
	return ids
}
