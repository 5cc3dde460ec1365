package openai

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Chat serves POST /v1/chat/completions.
func (a *API) Chat(rc *fasthttp.RequestCtx, x *exchange.Exchange) {
	o, fault := decodeChat(rc.PostBody(), &a.model)
	if fault != nil {
		Write(rc, fault)
		return
	}
	h := newHead("chatcmpl-"+x.ID, time.Now().Unix(), a.Model, "chat.completion.chunk", "chat.completion")
	a.answer(rc, x, &o, h, chatShape{a.Engine.Vocab()})
}

type chatShape struct{ vocab *token.Vocab }

func (chatShape) first(dst []byte, c *choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
	return append(dst, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`...)
}

func (s chatShape) part(dst []byte, c *choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
	dst = append(dst, `,"delta":{`...)
	if len(c.thought) > 0 {
		dst = appendString(append(dst, `"reasoning_content":`...), c.thought)
		if len(c.text) > 0 {
			dst = append(dst, ',')
		}
	}
	if len(c.text) > 0 || len(c.thought) == 0 {
		dst = appendString(append(dst, `"content":`...), c.text)
	}
	dst = s.probs(append(dst, '}'), c)
	return append(dst, `,"finish_reason":null}`...)
}

func (chatShape) last(dst []byte, c *choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
	return appendFinish(append(dst, `,"delta":{},"logprobs":null`...), c)
}

func (s chatShape) whole(dst []byte, c *choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
	dst = appendString(append(dst, `,"message":{"role":"assistant","content":`...), c.text)
	if len(c.thought) > 0 {
		dst = appendString(append(dst, `,"reasoning_content":`...), c.thought)
	}
	dst = s.probs(append(dst, `,"refusal":null}`...), c)
	return appendFinish(dst, c)
}

// probs writes the log-probabilities of the tokens since the last part.
func (s chatShape) probs(dst []byte, c *choice) []byte {
	dst = append(dst, `,"logprobs":`...)
	if !c.wants {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":[`...)
	for i, p := range c.probs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(s.prob(dst, p.TokenProb), `,"top_logprobs":[`...)
		for j, t := range p.top {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(s.prob(dst, t), '}')
		}
		dst = append(dst, "]}"...)
	}
	return append(dst, `],"refusal":null}`...)
}

// prob writes a token without the closing brace. Its text may be part of a character; the bytes tell which.
func (s chatShape) prob(dst []byte, p sample.TokenProb) []byte {
	piece := s.vocab.Piece(p.ID)
	dst = appendString(append(dst, `{"token":`...), piece)
	dst = appendLogProb(append(dst, `,"logprob":`...), p.LogProb)
	dst = append(dst, `,"bytes":[`...)
	for i, b := range piece {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(b), 10)
	}
	return append(dst, ']')
}
