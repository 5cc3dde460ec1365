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

// speller yields the JSON of an answer made of vectors.
type speller func(*answer.Vectors) iter.Seq[[]byte]

// vectors serves an endpoint that computes vectors or scores. parse decodes the request and returns the writer of its
// answer.
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

// appendRead appends the usage of a request that generates no tokens.
func appendRead(dst []byte, tokens int) []byte {
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), int64(tokens), 10)
	return append(strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(tokens), 10), '}')
}
