package openai

import (
	"iter"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// speller writes an answer made of vectors, one after another.
type speller func(*answer.Vectors) iter.Seq[[]byte]

// vectors serves an endpoint for which nothing is generated: decode says what is to be read, and how the answer is
// written.
func (a *api) vectors(do answer.Task, parse func(answer.Body, decode.Finder) (*answer.Reading, speller, *wire.Fault),
) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
		body, fault := a.Body(rc, x)
		if fault != nil {
			return fault
		}
		r, spell, fault := parse(body, a.finder(x, do))
		if fault != nil {
			return fault
		}
		v, fault := a.Vectors(x, r)
		if fault != nil {
			return fault
		}
		x.Whole(rc, "application/json", spell(v))
		return nil
	}
}

// appendRead writes the usage of a request that nothing is generated for.
func appendRead(dst []byte, tokens int) []byte {
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), int64(tokens), 10)
	return append(strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(tokens), 10), '}')
}
