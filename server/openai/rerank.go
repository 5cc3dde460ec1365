package openai

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
)

// rerank is the format of the answer to POST /v1/rerank.
type rerank struct {
	answer.Reading
	most int // results
}

// decodeRerank decodes the body of POST /v1/rerank, in Jina's and Cohere's shape.
func decodeRerank(body answer.Body, find decode.Finder) (*answer.Reading, speller, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return nil, nil, f.Fault
	}
	o := &rerank{Reading: answer.Reading{Model: m, Field: "documents"}}
	f.Text("query", &o.Query)
	if o.Query == "" && f.Fault == nil {
		f.Fault = wire.Invalid("query", "missing_required_parameter", "query is missing or empty: want a string")
	}
	o.Texts = f.documents()
	o.most = len(o.Texts)
	f.Count("top_n", 1, math.MaxInt32, &o.most)
	f.Flag("return_documents", &o.Kept)
	return &o.Reading, o.spell, f.Fault
}

// documents decodes texts, each a string or {"text": …}.
func (f fields) documents() (all []answer.Text) {
	const name, want = "documents", `a list of strings, or of objects such as {"text": "..."}`
	raw, ok := f.Get(name)
	if !ok {
		if f.Fault == nil {
			f.Fault = wire.Invalid(name, "missing_required_parameter", "%s is missing: want %s", name, want)
		}
		return nil
	}
	r := f.Reader(raw)
	err := r.Array(func() (err error) {
		text := ""
		if r.Next() == '{' {
			err = r.Object(func(key string) (err error) {
				if key == "text" {
					text, err = r.String()
					return err
				}
				_, err = r.Raw()
				return err
			})
		} else {
			text, err = r.String()
		}
		switch {
		case err != nil:
			return err
		case text == "":
			f.Fault = wire.Invalid(name, "invalid_value", "%s: entry %d is empty: want %s", name, len(all), want)
			return errDocument
		case len(all) == answer.MaxTexts:
			f.Fault = wire.Invalid(name, "invalid_value", "%s has more than %d entries: want fewer", name, answer.MaxTexts)
			return errDocument
		}
		all = append(all, answer.Text{Text: text})
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errDocument
	}
	if err != nil {
		f.Broken(name, raw, err, want)
	}
	return all
}

// spell yields the results as JSON, the best first.
func (o *rerank) spell(v *answer.Vectors) iter.Seq[[]byte] {
	order := make([]int, len(v.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(v.Rows[j][0], v.Rows[i][0]) })
	order = order[:min(o.most, len(order))]
	return func(yield func([]byte) bool) {
		dst := wire.AppendString([]byte(`{"object":"list","model":`), o.Model.Name)
		dst = append(appendRead(dst, v.Tokens), `,"results":[`...)
		for n, i := range order {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(append(dst, `{"index":`...), int64(i), 10)
			dst = append(dst, `,"relevance_score":`...)
			dst = strconv.AppendFloat(dst, relevance(v.Rows[i][0]), 'g', -1, 32)
			if o.Kept {
				dst = wire.AppendString(append(dst, `,"document":{"text":`...), o.Texts[i].Text)
				dst = append(dst, '}')
			}
			if !yield(append(dst, '}')) {
				return
			}
			dst = dst[:0]
		}
		yield(append(dst, "]}"...))
	}
}

// relevance maps a model's score, which is any number, to a probability by the logistic function.
func relevance(score float32) float64 { return 1 / (1 + math.Exp(-float64(score))) }

// errDocument ends the decoding of a document of a wrong type.
var errDocument = errors.New("no document")
