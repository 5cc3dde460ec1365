package llamacpp

import (
	"iter"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// embed serves POST /embedding: one vector for each text of content, or of input.
func (a *api) embed(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	r, fault := decodeEmbedding(body, a.finder(x, answer.Embed))
	if fault != nil {
		return fault
	}
	v, fault := a.Vectors(x, r)
	if fault != nil {
		return fault
	}
	x.Whole(rc, "application/json", spellVectors(v))
	return nil
}

func decodeEmbedding(body answer.Body, find decode.Finder) (*answer.Reading, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return nil, in.Fault
	}
	const asTheyAre, toLengthOne = -1, 2 // llama-server has other norms, which no known client asks for
	f, norm := fields{in}, toLengthOne
	r := &answer.Reading{Model: m, Field: "content"}
	if _, ok := f.Get("content"); !ok {
		r.Field = "input"
	}
	r.Texts = f.Inputs(r.Field, answer.MaxTexts, m)
	f.Count("embd_normalize", asTheyAre, toLengthOne, &norm)
	switch norm {
	case toLengthOne:
		r.Unit = m.Width
	case asTheyAre:
	default:
		if f.Fault == nil {
			f.Fault = wire.Invalid("embd_normalize", "invalid_value", "embd_normalize is %d: want 2 (length 1) or -1 (as they are)", norm)
		}
	}
	return r, f.Fault
}

// spellVectors yields the answer as JSON, a vector at a time. Each is in a list of its own: in this format a text may
// have a vector for each of its tokens.
func spellVectors(v *answer.Vectors) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := []byte{'['}
		for i, row := range v.Rows {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(append(dst, `{"index":`...), int64(i), 10)
			dst = append(wire.AppendVector(append(dst, `,"embedding":[`...), row), `]}`...)
			if !yield(dst) {
				return
			}
			dst = dst[:0]
		}
		yield(append(dst, ']'))
	}
}
