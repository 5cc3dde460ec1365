package ollama

import (
	"iter"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// embeddings is what a client wants of texts.
type embeddings struct {
	answer.Reading
	dimensions int // of the vectors that are sent
}

// embed serves POST /api/embed.
func (a *api) embed(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	began := time.Now()
	o, v, loading, fault := a.vectors(rc, x, decodeEmbed)
	if fault != nil {
		return fault
	}
	for i := range v.Rows {
		v.Rows[i] = answer.Unit(v.Rows[i], o.dimensions)
	}
	x.Whole(rc, "application/json", o.spell(v, time.Since(began), loading))
	return nil
}

// embedOne serves POST /api/embeddings, the older endpoint: one vector, of the length that the model gives it.
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
	decode func(answer.Body, ask.Finder) (*embeddings, *wire.Fault),
) (o *embeddings, v *answer.Vectors, loading time.Duration, fault *wire.Fault) {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return nil, nil, 0, fault
	}
	find, took := timed(a.finder(x, answer.Embed))
	if o, fault = decode(body, find); fault != nil {
		return nil, nil, 0, fault
	}
	v, fault = a.Vectors(x, &o.Reading)
	return o, v, *took, fault
}

func decodeEmbed(body answer.Body, find ask.Finder) (*embeddings, *wire.Fault) {
	in, m := ask.Read(body, find)
	if m == nil {
		return nil, in.Fault
	}
	f := fields{in}
	o := f.reading(m, "input")
	f.Flag("truncate", new(bool))
	f.Count("dimensions", 0, m.Width, &o.dimensions)
	if o.dimensions == 0 {
		o.dimensions = m.Width
	}
	if raw, ok := f.Get("input"); ok && raw != `""` && raw != "[]" {
		o.Texts = f.Inputs("input", answer.MaxTexts, m)
	}
	return o, f.Fault
}

func decodeEmbedOne(body answer.Body, find ask.Finder) (*embeddings, *wire.Fault) {
	in, m := ask.Read(body, find)
	if m == nil {
		return nil, in.Fault
	}
	f, text := fields{in}, ""
	o := f.reading(m, "prompt")
	if f.Text("prompt", &text); text != "" {
		o.Texts = []answer.Text{{Text: text}}
	}
	return o, f.Fault
}

// reading reads what both endpoints have.
func (f fields) reading(m *answer.Model, field string) *embeddings {
	f.unloads()
	f.Object("options", `an object such as {"num_ctx": 2048}`, func(*wire.Fields) {}) // there is nothing to choose
	return &embeddings{Reading: answer.Reading{Model: m, Field: field}, dimensions: m.Width}
}

// spell writes the answer, a vector at a time.
func (o *embeddings) spell(v *answer.Vectors, took, loading time.Duration) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := append(wire.AppendString([]byte(`{"model":`), o.Model.Name), `,"embeddings":[`...)
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
