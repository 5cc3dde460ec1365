package openai

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/stages/token"
)

// Completions serves POST /v1/completions.
func (a *API) Completions(rc *fasthttp.RequestCtx, x *exchange.Exchange) {
	o, fault := decodeCompletion(rc.PostBody(), &a.model)
	if fault != nil {
		Write(rc, fault)
		return
	}
	h := newHead("cmpl-"+x.ID, time.Now().Unix(), a.Model, "text_completion", "text_completion")
	a.answer(rc, x, &o, h, textShape{a.Engine.Vocab()})
}

type textShape struct{ vocab *token.Vocab }

func (textShape) first(dst []byte, _ *choice) []byte { return dst }

func (s textShape) part(dst []byte, c *choice) []byte {
	dst = appendString(append(dst, `{"text":`...), c.text)
	dst = strconv.AppendInt(append(dst, `,"index":`...), int64(c.index), 10)
	return append(s.probs(dst, c), `,"finish_reason":null}`...)
}

func (s textShape) last(dst []byte, c *choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"text":"","index":`...), int64(c.index), 10)
	return appendFinish(append(dst, `,"logprobs":null`...), c)
}

func (s textShape) whole(dst []byte, c *choice) []byte {
	dst = appendString(append(dst, `{"text":`...), c.text)
	dst = strconv.AppendInt(append(dst, `,"index":`...), int64(c.index), 10)
	return appendFinish(s.probs(dst, c), c)
}

// probs writes the log-probabilities of the tokens since the last part, as four lists of the same length.
func (s textShape) probs(dst []byte, c *choice) []byte {
	dst = append(dst, `,"logprobs":`...)
	if !c.wants {
		return append(dst, "null"...)
	}
	list := func(name string, write func(p *tokenProb)) {
		dst = append(append(append(dst, '"'), name...), `":[`...)
		for i := range c.probs {
			if i > 0 {
				dst = append(dst, ',')
			}
			write(&c.probs[i])
		}
		dst = append(dst, ']')
	}
	dst = append(dst, '{')
	list("tokens", func(p *tokenProb) { dst = appendString(dst, s.vocab.Piece(p.ID)) })
	dst = append(dst, ',')
	list("token_logprobs", func(p *tokenProb) { dst = appendLogProb(dst, p.LogProb) })
	dst = append(dst, ',')
	list("top_logprobs", func(p *tokenProb) { dst = s.top(dst, p) })
	dst = append(dst, ',')
	list("text_offset", func(p *tokenProb) { dst = strconv.AppendInt(dst, int64(p.offset), 10) })
	return append(dst, '}')
}

// top writes the likeliest tokens by their text. Of tokens with the same text the first is the likeliest.
func (s textShape) top(dst []byte, p *tokenProb) []byte {
	dst = append(dst, '{')
	for i, t := range p.top {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s.vocab.Piece(t.ID))
		dst = appendLogProb(append(dst, ':'), t.LogProb)
	}
	return append(dst, '}')
}
