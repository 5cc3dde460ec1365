package ollama

import (
	"iter"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// embed serves POST /api/embed.
func (a *api) embed(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	began := time.Now()
	r, v, loading, fault := a.vectors(rc, x, decodeEmbed)
	if fault != nil {
		return fault
	}
	x.Whole(rc, "application/json", spell(r.Model.Name, v, time.Since(began), loading))
	return nil
}

// embedOne serves POST /api/embeddings, the older endpoint: one vector, not scaled to length 1.
func (a *api) embedOne(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	_, v, _, fault := a.vectors(rc, x, decodeEmbedOne)
	if fault != nil {
		return fault
	}
	var row []float32
	if len(v.Rows) > 0 {
		row = v.Rows[0]
	}
	rc.SetContentType("application/json")
	rc.SetBody(append(wire.AppendVector([]byte(`{"embedding":`), row), '}'))
	return nil
}

func (a *api) vectors(rc *fasthttp.RequestCtx, x *exchange.Exchange,
	parse func(answer.Body, decode.Finder) (*answer.Reading, *wire.Fault),
) (r *answer.Reading, v *answer.Vectors, loading time.Duration, fault *wire.Fault) {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return nil, nil, 0, fault
	}
	find, took := timed(a.finder(x, answer.Embed))
	if r, fault = parse(body, find); fault != nil {
		return nil, nil, 0, fault
	}
	if r.Last {
		x.Keep(func() { _ = a.Unload(r.Model.Name) }) // if it stays loaded, that is no fault to Ollama's clients
	}
	v, fault = a.Vectors(x, r)
	return r, v, *took, fault
}

func decodeEmbed(body answer.Body, find decode.Finder) (*answer.Reading, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return nil, in.Fault
	}
	f := fields{in}
	r := f.reading(m, "input")
	f.Flag("truncate", &r.Cuts)
	f.Count("dimensions", 0, m.Width, &r.Unit)
	if r.Unit == 0 {
		r.Unit = m.Width
	}
	if raw, ok := f.Get("input"); ok && raw != `""` && raw != "[]" {
		r.Texts = f.Inputs("input", answer.MaxTexts, m)
	}
	return r, f.Fault
}

func decodeEmbedOne(body answer.Body, find decode.Finder) (*answer.Reading, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return nil, in.Fault
	}
	f, text := fields{in}, ""
	r := f.reading(m, "prompt")
	if f.Text("prompt", &text); text != "" {
		r.Texts = []answer.Text{{Text: text}}
	}
	return r, f.Fault
}

// reading decodes the fields of both endpoints.
func (f fields) reading(m *answer.Model, field string) *answer.Reading {
	last := f.unloads()
	r := &answer.Reading{Model: m, Field: field, Last: last, Cuts: true}
	f.Object("options", `an object such as {"num_ctx": 2048}`, func(o *wire.Fields) {
		decode.Fields{Fields: o}.Count("num_ctx", 0, decode.AnyLength, &r.Most)
	})
	return r
}

// spell yields the answer as JSON, a vector at a time.
func spell(model string, v *answer.Vectors, took, loading time.Duration) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := append(wire.AppendString([]byte(`{"model":`), model), `,"embeddings":[`...)
		for i, row := range v.Rows {
			if i > 0 {
				dst = append(dst, ',')
			}
			if !yield(wire.AppendVector(dst, row)) {
				return
			}
			dst = dst[:0]
		}
		dst = strconv.AppendInt(append(dst, `],"total_duration":`...), took.Nanoseconds(), 10)
		dst = strconv.AppendInt(append(dst, `,"load_duration":`...), loading.Nanoseconds(), 10)
		dst = strconv.AppendInt(append(dst, `,"prompt_eval_count":`...), int64(v.Tokens), 10)
		yield(append(dst, '}'))
	}
}
