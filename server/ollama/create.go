package ollama

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Creation is a decoded request to create a model.
type Creation struct {
	Name     string
	From     string            // a name in the store, or the digest of a file there; empty: made of Files
	Files    map[string]string // digests by file name
	Adapters map[string]string // likewise, of what changes the model
	Quantize string            // type to quantise to; empty: none

	Template, System     string
	Licenses             []string
	Parameters, Messages string // JSON; empty: none
}

// Limits of a creation.
const (
	maxFiles    = 1000
	maxLicenses = 100
	maxLicense  = 1 << 20 // bytes
)

// create serves POST /api/create.
func (c *changes) create(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := c.Body(rc, x)
	if fault != nil {
		return fault
	}
	f, stream := wire.ReadFields(body.Text, body.Budget), true
	f.Flag("stream", &stream)
	o, fault := decodeCreate(f)
	if fault != nil {
		return fault
	}
	return c.work(rc, x, stream, func(tell func(Progress)) error { return c.store.Create(x.Context, o, tell) })
}

func decodeCreate(f *wire.Fields) (*Creation, *wire.Fault) {
	o := &Creation{}
	f.Text("name", &o.Name)
	f.Text("model", &o.Name)
	f.Text("from", &o.From)
	f.Text("quantize", &o.Quantize)
	f.Text("template", &o.Template)
	f.Text("system", &o.System)
	f.Texts("license", maxLicenses, maxLicense, &o.Licenses)
	o.Files, o.Adapters = digests(f, "files"), digests(f, "adapters")
	for name, to := range map[string]*string{"parameters": &o.Parameters, "messages": &o.Messages} {
		if raw, ok := f.Get(name); ok {
			*to = strings.Clone(raw)
		}
	}
	f.Absent("modelfile", "send what it says in the fields from, template, system, parameters and messages")
	f.Absent("path", "files of the server cannot be named: upload them to "+blobs)
	if fault := named(f, "model", o.Name); fault != nil {
		return nil, fault
	}
	if (o.From == "") == (len(o.Files) == 0) {
		return nil, wire.Invalid("from", "invalid_value", "want from, the name of a model in the store, or files: one of both")
	}
	return o, nil
}

// digests decodes names of files and their digests.
func digests(f *wire.Fields, field string) map[string]string {
	const want = `an object such as {"model.gguf": "sha256:..."}`
	raw, ok := f.Get(field)
	if !ok {
		return nil
	}
	all := map[string]string{}
	r := f.Reader(raw)
	if r.Next() != '{' {
		f.Wrong(field, raw, want)
		return nil
	}
	err := r.Object(func(name string) error {
		digest, err := r.String()
		if len(all) <= maxFiles {
			all[strings.Clone(name)] = strings.Clone(digest)
		}
		return err
	})
	switch {
	case err != nil:
		f.Broken(field, raw, err, want)
	case len(all) > maxFiles:
		f.Fault = wire.Invalid(field, "invalid_value", "%s has more than %d entries: want fewer", field, maxFiles)
	}
	return all
}
