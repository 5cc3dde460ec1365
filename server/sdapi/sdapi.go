// Package sdapi is the API of stable-diffusion-webui, as far as chat front-ends ask it for pictures: txt2img, its
// progress, and the lists that they read first.
package sdapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Usual values of a request that does not say them.
const (
	usualSide = 512
)

type api struct{ *answer.Service }

// Dialect returns stable-diffusion-webui's API for a service's models that make pictures, of which it has at least one.
func Dialect(s *answer.Service) answer.Dialect {
	a := &api{s}
	const get, post = fasthttp.MethodGet, fasthttp.MethodPost
	return answer.Dialect{Name: "stable-diffusion-webui's API", Fault: appendFault, Routes: []answer.Route{
		{Method: post, Path: "/sdapi/v1/txt2img", Help: "pictures of a text", Handle: a.txt2img},
		{Method: get, Path: "/sdapi/v1/progress", Help: "how far they have come", Handle: a.progress},
		{Method: get, Path: "/sdapi/v1/sd-models", Handle: told(a.models)},
		{Method: get, Path: "/sdapi/v1/options", Handle: told(a.options)},
		{Method: get, Path: "/sdapi/v1/samplers", Handle: told(samplers)},
	}}
}

// appendFault appends {"error": code, "detail": text}.
func appendFault(dst []byte, f *wire.Fault) []byte {
	dst = wire.AppendString(append(dst, `{"error":`...), f.Code)
	return append(wire.AppendString(append(dst, `,"detail":`...), f.Text), '}')
}

// told answers with what a function returns.
func told(what func() any) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
		wire.WriteJSON(rc, what())
		return nil
	}
}

func (a *api) models() any {
	type model struct {
		Title string `json:"title"`
		Name  string `json:"model_name"`
		File  string `json:"filename"`
	}
	all := []model{}
	for _, name := range a.Painter.Names() {
		all = append(all, model{name, name, name})
	}
	return all
}

func (a *api) options() any {
	return map[string]any{"sd_model_checkpoint": a.Painter.Names()[0], "samples_format": "png"}
}

func samplers() any {
	return []map[string]any{{"name": "Euler", "aliases": []string{"euler"}, "options": map[string]string{}}}
}

// txt2img answers POST /sdapi/v1/txt2img.
func (a *api) txt2img(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	p, fault := a.decode(wire.ReadFields(body.Text, body.Budget))
	if fault != nil {
		return fault
	}
	done, fault := a.Easel(x, p)
	if fault != nil {
		return fault
	}
	defer done()
	files := make([][]byte, 0, p.N)
	if fault := a.Paint(x, p, nil, func(_ int, file []byte) { files = append(files, file) }); fault != nil {
		return fault
	}
	text, err := whole(p, files)
	if err != nil {
		return wire.Internal(x.ID)
	}
	x.Whole(rc, "application/json", text)
	return nil
}

// decode decodes the fields that are known; front-ends send many more.
func (a *api) decode(f *wire.Fields) (*answer.Painting, *wire.Fault) {
	p := &answer.Painting{N: 1}
	p.Width, p.Height = usualSide, usualSide
	f.Text("prompt", &p.Prompt)
	f.Text("negative_prompt", &p.Negative)
	const side = answer.MaxPictureSide
	f.Count("width", 1, side, &p.Width)
	f.Count("height", 1, side, &p.Height)
	f.Count("steps", 1, answer.MaxPictureSteps, &p.Steps)
	batch, times, guidance, seed := 1, 1, float32(0), int64(-1)
	f.Count("batch_size", 1, answer.MaxPictures, &batch)
	f.Count("n_iter", 1, answer.MaxPictures, &times)
	f.Number("cfg_scale", 0, 100, &guidance)
	f.Integer("seed", -1, 1<<53, &seed)
	f.Object("override_settings", "an object of settings", func(o *wire.Fields) { o.Text("sd_model_checkpoint", &p.Model) })
	if f.Fault != nil {
		return nil, f.Fault
	}
	if p.N = batch * times; p.N > answer.MaxPictures {
		return nil, wire.Invalid("batch_size", "invalid_value", "batch_size and n_iter make %d pictures: want at most %d", p.N,
			answer.MaxPictures)
	}
	if seed < 0 {
		seed = rand.Int64N(1 << 53)
	}
	p.Seed, p.Guidance = uint64(seed), float64(guidance)
	if fault := a.Paints(p); fault != nil {
		return nil, fault
	}
	return p, p.Check("width, height")
}

// whole is the answer: the pictures, and how they were made, in pieces.
func whole(p *answer.Painting, files [][]byte) (iter.Seq[[]byte], error) {
	info := map[string]any{"prompt": p.Prompt, "negative_prompt": p.Negative, "width": p.Width, "height": p.Height,
		"steps": p.Steps, "cfg_scale": p.Guidance, "seed": p.Seed, "sampler_name": "Euler", "sd_model_name": p.Model}
	seeds, texts := []uint64{}, []string{}
	for i := range p.N {
		o := p.Order
		o.Seed += uint64(i)
		seeds, texts = append(seeds, o.Seed), append(texts, answer.Parameters(&o))
	}
	parameters, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	info["all_seeds"], info["infotexts"] = seeds, texts
	text, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	return func(yield func([]byte) bool) {
		begin := `{"images":["`
		for _, file := range files {
			if !yield(base64.StdEncoding.AppendEncode([]byte(begin), file)) {
				return
			}
			begin = `","`
		}
		dst := append([]byte(`"],"parameters":`), parameters...)
		yield(append(wire.AppendString(append(dst, `,"info":`...), text), '}'))
	}, nil
}

// progress answers GET /sdapi/v1/progress: of the newest request of the key that asks.
func (a *api) progress(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	type state struct {
		Jobs  int    `json:"job_count"`
		Job   int    `json:"job_no"`
		Step  int    `json:"sampling_step"`
		Steps int    `json:"sampling_steps"`
		Began string `json:"job_timestamp"`
	}
	said := struct {
		Progress float64 `json:"progress"`
		Left     float64 `json:"eta_relative"`
		State    state   `json:"state"`
		Image    *string `json:"current_image"`
		Text     *string `json:"textinfo"`
	}{}
	if at, ok := a.Painted(x.Client); ok {
		said.State = state{at.Pictures, at.Picture, at.Step, at.Steps, at.Began.Format("20060102150405")}
		said.Progress = (float64(at.Picture) + float64(at.Step)/float64(max(at.Steps, 1))) / float64(at.Pictures)
		if said.Progress > 0 {
			said.Left = time.Since(at.Began).Seconds() * (1/said.Progress - 1)
		}
		if at.Preview != nil && !rc.QueryArgs().GetBool("skip_current_image") {
			var file bytes.Buffer
			if err := at.Preview().WritePNG(&file); err != nil {
				return wire.Internal(fmt.Sprint(x.ID))
			}
			text := base64.StdEncoding.EncodeToString(file.Bytes())
			said.Image = &text
		}
	}
	wire.WriteJSON(rc, said)
	return nil
}
