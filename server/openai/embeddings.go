package openai

import (
	"encoding/base64"
	"encoding/binary"
	"iter"
	"math"
	"strconv"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
)

// embeddings is the format of the answer to POST /v1/embeddings.
type embeddings struct {
	answer.Reading
	base64 bool // vectors are sent as base64 of little-endian float32
}

// decodeEmbeddings decodes the body of POST /v1/embeddings.
func decodeEmbeddings(body answer.Body, find decode.Finder) (*answer.Reading, speller, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return nil, nil, f.Fault
	}
	o := &embeddings{Reading: answer.Reading{Model: m, Field: "input", Unit: m.Width}}
	format := "float"
	f.Text("encoding_format", &format)
	if o.base64 = format == "base64"; !o.base64 && format != "float" {
		f.Wrong("encoding_format", strconv.Quote(format), `"float" or "base64"`)
	}
	f.Count("dimensions", 1, m.Width, &o.Unit)
	f.Text("user", new(string))
	o.Texts = f.Inputs("input", answer.MaxTexts, m)
	for i, t := range o.Texts {
		if t.Text == "" && len(t.Tokens) == 0 && f.Fault == nil {
			f.Fault = wire.Invalid("input", "invalid_value", "input: entry %d is empty: want texts, or tokens", i)
		}
	}
	return &o.Reading, o.spell, f.Fault
}

// spell yields the answer as JSON, a vector at a time.
func (o *embeddings) spell(v *answer.Vectors) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := []byte(`{"object":"list","data":[`)
		for i, row := range v.Rows {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(append(dst, `{"object":"embedding","index":`...), int64(i), 10)
			dst = append(dst, `,"embedding":`...)
			if o.base64 {
				dst = appendBase64(dst, row)
			} else {
				dst = wire.AppendVector(dst, row)
			}
			if !yield(append(dst, '}')) {
				return
			}
			dst = dst[:0]
		}
		dst = wire.AppendString(append(dst, `],"model":`...), o.Model.Name)
		yield(append(appendRead(dst, v.Tokens), '}'))
	}
}

func appendBase64(dst []byte, row []float32) []byte {
	bytes := make([]byte, 0, 4*len(row))
	for _, x := range row {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
	}
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), bytes), '"')
}
