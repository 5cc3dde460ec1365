package answer

import (
	"errors"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
)

// Tokens tokenizes texts and ids in order. If special is set, the model's special tokens are put around the first
// text; if parse is set, names of special tokens in texts are read as these tokens.
func (s *Service) Tokens(x *exchange.Exchange, m *Model, parts []Text, special, parse bool,
) (ids []int32, fault *wire.Fault) {
	x.Watch()
	defer x.Release()
	err := x.Large(func(stop func() bool) (err error) {
		o := token.Options{AddSpecial: special, ParseSpecial: parse, Stop: stop}
		for _, p := range parts {
			if p.Tokens != nil {
				ids = append(ids, p.Tokens...)
			} else if ids, err = m.Engine.Vocab().Encode(ids, p.Text, o); err != nil {
				break
			}
			o.AddSpecial = false
		}
		return err
	})
	switch {
	case errors.Is(err, exchange.ErrCrowded), x.Context.Err() != nil:
		return nil, explain(x, &Order{Model: m}, err)
	case err != nil:
		return nil, wire.Invalid("content", "invalid_value", "the text cannot be put into tokens: %v", err)
	}
	if err := keep(s.kept, x).add(x.Context, int64(4*cap(ids))); err != nil {
		return nil, explain(x, &Order{Model: m}, err)
	}
	return ids, nil
}

// Render renders the prompt of a conversation by the model's chat template.
func (s *Service) Render(x *exchange.Exchange, m *Model, in *chat.Input) (prompt string, fault *wire.Fault) {
	x.Watch()
	defer x.Release()
	err := x.Large(func(stop func() bool) (err error) {
		prompt, err = m.Engine.Render(in, stop)
		return err
	})
	if err == nil {
		err = keep(s.kept, x).add(x.Context, int64(len(prompt)))
	}
	if err != nil {
		return "", explain(x, &Order{Model: m}, err)
	}
	return prompt, nil
}
