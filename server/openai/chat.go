package openai

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// chat serves POST /v1/chat/completions.
func (a *api) chat(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	o, fault := decodeChat(body, a.finder(x, answer.Write))
	if fault != nil {
		return fault
	}
	e := newEncoder(&o, "chatcmpl-"+x.ID, "chat.completion.chunk", "chat.completion", chatShape{})
	return a.Answer(rc, x, &o.Order, e)
}

// chatShape spells choices of a conversation.
type chatShape struct{}

func (chatShape) first(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	return append(dst, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`...)
}

func (s chatShape) part(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	dst = append(dst, `,"delta":{`...)
	if len(c.New.Thought) > 0 {
		dst = wire.AppendString(append(dst, `"reasoning_content":`...), c.New.Thought)
		if len(c.New.Text) > 0 {
			dst = append(dst, ',')
		}
	}
	if len(c.New.Text) > 0 || len(c.New.Thought) == 0 {
		dst = wire.AppendString(append(dst, `"content":`...), c.New.Text)
	}
	dst = s.probs(append(dst, '}'), c, goOn)
	return append(dst, `,"finish_reason":null}`...)
}

func (chatShape) last(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	return appendFinish(append(dst, `,"delta":{},"logprobs":null`...), c)
}

func (s chatShape) whole(dst []byte, c *answer.Choice, more more) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	dst = wire.AppendString(append(dst, `,"message":{"role":"assistant","content":`...), c.New.Text)
	if len(c.New.Thought) > 0 {
		dst = wire.AppendString(append(dst, `,"reasoning_content":`...), c.New.Thought)
	}
	dst = s.probs(append(dst, `,"refusal":null}`...), c, more)
	return appendFinish(dst, c)
}

// probs writes the log-probabilities of the tokens since the last part.
func (chatShape) probs(dst []byte, c *answer.Choice, more more) []byte {
	dst = append(dst, `,"logprobs":`...)
	if !c.Probs {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":[`...)
	for i := range c.New.Probs {
		if i > 0 {
			dst = append(dst, ',')
		}
		var wanted bool
		if dst, wanted = more(appendProb(dst, c, &c.New.Probs[i])); !wanted {
			return dst
		}
	}
	return append(dst, `],"refusal":null}`...)
}

// appendProb writes a token with its log-probability, and the likeliest ones in its place.
func appendProb(dst []byte, c *answer.Choice, p *answer.Prob) []byte {
	dst = append(wire.AppendProb(dst, c.Piece(p.ID), p.LogProb), `,"top_logprobs":[`...)
	for i, t := range p.Top {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendProb(dst, c.Piece(t.ID), t.LogProb), '}')
	}
	return append(dst, "]}"...)
}
