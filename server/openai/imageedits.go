package openai

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Limits of a form.
const (
	mostParts    = 64
	mostFormText = 64 << 10
)

// editImages answers POST /v1/images/edits: a form, as OpenAI's API has it, with one picture.
func (a *api) editImages(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	text, picture, fault := readForm(string(rc.Request.Header.ContentType()), body.Text)
	if fault != nil {
		return fault
	}
	o, fault := a.decodeImages(wire.ReadFields(text, &jsontext.Budget{Values: 2 * mostParts}))
	if fault != nil {
		return fault
	}
	o.event = "image_edit"
	if fault := a.Opened(x, &o.Painting, "image", picture); fault != nil {
		return fault
	}
	return a.paint(rc, x, o)
}

// readForm reads the parts of a form: its fields as an object of JSON, and the picture.
func readForm(media, body string) (object string, picture []byte, fault *wire.Fault) {
	malformed := func(err error) *wire.Fault {
		return wire.Invalid("", "invalid_form", "the body is no form (multipart/form-data) with the fields image and prompt: %v", err)
	}
	kind, params, err := mime.ParseMediaType(media)
	if err == nil && (kind != "multipart/form-data" || params["boundary"] == "") {
		err = errors.New("its Content-Type is " + wire.Shown(kind))
	}
	if err != nil {
		return "", nil, malformed(err)
	}
	fields := map[string]any{}
	r := multipart.NewReader(strings.NewReader(body), params["boundary"])
	for n := 0; ; n++ {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if n == mostParts {
			err = errors.New("it has more than " + strconv.Itoa(mostParts) + " parts")
		}
		if err != nil {
			return "", nil, malformed(err)
		}
		if fault := readPart(p, fields, &picture); fault != nil {
			return "", nil, fault
		}
	}
	if picture == nil {
		return "", nil, wire.Invalid("image", "missing_required_parameter", "image is missing: want a PNG, JPEG, WebP or GIF file")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return "", nil, malformed(err)
	}
	return string(text), picture, nil
}

// readPart reads a field, or the picture.
func readPart(p *multipart.Part, fields map[string]any, picture *[]byte) *wire.Fault {
	name := strings.TrimSuffix(p.FormName(), "[]")
	switch name {
	case "image":
		if *picture != nil {
			return wire.Invalid("image", "invalid_value", "there is more than one image: the models here begin with one")
		}
		data, err := io.ReadAll(p) // no longer than the body, which is there
		if *picture = data; err != nil || len(data) == 0 {
			return wire.Invalid("image", "invalid_value", "image has %d bytes and then ends: want a whole file", len(data))
		}
		return nil
	case "mask":
		return wire.Invalid("mask", "invalid_value", "mask is not supported: the whole picture is drawn anew, by strength")
	}
	data, err := io.ReadAll(io.LimitReader(p, mostFormText+1))
	if err != nil || len(data) > mostFormText {
		return wire.Invalid(wire.Shown(name), "invalid_value", "the field %s has more than %d bytes, or does not end", wire.Shown(name),
			mostFormText)
	}
	fields[name] = typed(name, string(data))
	return nil
}

// typed is a field's value as JSON has it: forms have texts alone.
func typed(name, text string) any {
	if slices.Contains([]string{"n", "steps", "seed", "guidance", "strength", "partial_images", "stream"}, name) &&
		json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}
