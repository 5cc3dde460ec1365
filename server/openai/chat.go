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
	e := newEncoder(&o, "chatcmpl-"+x.ID, "chat.completion.chunk", "chat.completion", x.At, chatShape{})
	return a.Answer(rc, x, &o.Order, e)
}

// chatShape writes the choices of a conversation.
type chatShape struct{}

func (chatShape) first(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	return append(dst, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`...)
}

func (s chatShape) part(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	dst = append(dst, `,"delta":{`...)
	from := len(dst)
	if thought := c.New.Said(answer.Thought); len(thought) > 0 {
		dst = append(wire.AppendString(append(dst, `"reasoning_content":`...), thought), ',')
	}
	dst = s.calls(dst, c, true)
	if said := c.New.Said(answer.Speech); len(said) > 0 || len(dst) == from {
		dst = append(wire.AppendString(append(dst, `"content":`...), said), ',')
	}
	dst[len(dst)-1] = '}' // in place of the last comma
	dst = s.probs(dst, c, goOn)
	return append(dst, `,"finish_reason":null}`...)
}

func (chatShape) last(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	return appendFinish(append(dst, `,"delta":{},"logprobs":null`...), c)
}

func (s chatShape) whole(dst []byte, c *answer.Choice, more more) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	dst = append(dst, `,"message":{"role":"assistant",`...)
	if thought := c.New.Said(answer.Thought); len(thought) > 0 {
		dst = append(wire.AppendString(append(dst, `"reasoning_content":`...), thought), ',')
	}
	dst = append(s.calls(dst, c, false), `"content":`...)
	if said := c.New.Said(answer.Speech); len(said) > 0 || c.Calls == 0 {
		dst = wire.AppendString(dst, said)
	} else {
		dst = append(dst, "null"...)
	}
	dst = s.probs(append(dst, `,"refusal":null}`...), c, more)
	return appendFinish(dst, c)
}

// calls appends the calls since the last part, if any, and a comma. In a stream each has the index of the call that
// it continues.
func (chatShape) calls(dst []byte, c *answer.Choice, stream bool) []byte {
	any := false
	for i := range c.New.Parts {
		p := &c.New.Parts[i]
		if p.Kind != answer.Call {
			continue
		}
		if any {
			dst = append(dst, ',')
		} else {
			dst = append(dst, `"tool_calls":[`...)
		}
		any = true
		dst = append(dst, '{')
		if stream {
			dst = append(strconv.AppendInt(append(dst, `"index":`...), int64(p.Call), 10), ',')
		}
		if p.Name != "" {
			dst = wire.AppendString(append(dst, `"id":`...), p.ID)
			dst = wire.AppendString(append(dst, `,"type":"function","function":{"name":`...), p.Name)
			dst = append(dst, ',')
		} else {
			dst = append(dst, `"function":{`...)
		}
		dst = append(wire.AppendString(append(dst, `"arguments":`...), p.Text), "}}"...)
	}
	if any {
		dst = append(dst, "],"...)
	}
	return dst
}

// probs appends the log-probabilities of the tokens since the last part.
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

// appendProb appends a token with its log-probability and its likeliest alternatives.
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
