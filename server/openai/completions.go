package openai

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// complete serves POST /v1/completions.
func (a *api) complete(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	o, fault := decodeCompletion(body, a.finder(x, answer.Write))
	if fault != nil {
		return fault
	}
	e := newEncoder(&o, "cmpl-"+x.ID, "text_completion", "text_completion", x.At, textShape{})
	return a.Answer(rc, x, &o.Order, e)
}

// textShape writes choices that continue a text.
type textShape struct{}

func (textShape) first(dst []byte, _ *answer.Choice) []byte { return dst }

func (s textShape) part(dst []byte, c *answer.Choice) []byte {
	dst = wire.AppendString(append(dst, `{"text":`...), c.New.Said(answer.Speech))
	dst = strconv.AppendInt(append(dst, `,"index":`...), int64(c.Index), 10)
	return append(s.probs(dst, c, goOn), `,"finish_reason":null}`...)
}

func (s textShape) last(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"text":"","index":`...), int64(c.Index), 10)
	return appendFinish(append(dst, `,"logprobs":null`...), c)
}

func (s textShape) whole(dst []byte, c *answer.Choice, more more) []byte {
	dst = wire.AppendString(append(dst, `{"text":`...), c.New.Said(answer.Speech))
	dst = strconv.AppendInt(append(dst, `,"index":`...), int64(c.Index), 10)
	return appendFinish(s.probs(dst, c, more), c)
}

// probs appends the log-probabilities of the tokens since the last part, as four lists of the same length.
func (textShape) probs(dst []byte, c *answer.Choice, more more) []byte {
	dst = append(dst, `,"logprobs":`...)
	if !c.Probs {
		return append(dst, "null"...)
	}
	wanted := true
	list := func(name string, write func(p *answer.Prob)) {
		dst = append(append(append(dst, '"'), name...), `":[`...)
		for i := range c.New.Probs {
			if i > 0 {
				dst = append(dst, ',')
			}
			write(&c.New.Probs[i])
			if dst, wanted = more(dst); !wanted {
				return
			}
		}
		dst = append(dst, ']')
	}
	dst = append(dst, '{')
	list("tokens", func(p *answer.Prob) { dst = wire.AppendString(dst, c.Piece(p.ID)) })
	dst = append(dst, ',')
	list("token_logprobs", func(p *answer.Prob) { dst = wire.AppendLogProb(dst, p.LogProb) })
	dst = append(dst, ',')
	list("top_logprobs", func(p *answer.Prob) { dst = appendTop(dst, c, p) })
	dst = append(dst, ',')
	list("text_offset", func(p *answer.Prob) { dst = strconv.AppendInt(dst, int64(p.Offset), 10) })
	return append(dst, '}')
}

// appendTop appends the likeliest tokens by their text. If several have the same text, the likeliest counts.
func appendTop(dst []byte, c *answer.Choice, p *answer.Prob) []byte {
	dst = append(dst, '{')
	for i, t := range p.Top {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, c.Piece(t.ID))
		dst = wire.AppendLogProb(append(dst, ':'), t.LogProb)
	}
	return append(dst, '}')
}
