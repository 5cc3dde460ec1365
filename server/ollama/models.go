package ollama

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
)

// tag describes a model as GET /api/tags lists it.
type tag struct {
	Name     string    `json:"name"`
	Model    string    `json:"model"`
	Modified time.Time `json:"modified_at"`
	Size     int64     `json:"size"` // bytes of weights
	Digest   string    `json:"digest"`
	Details  details   `json:"details"`
}

type details struct {
	Parent     string   `json:"parent_model"`
	Format     string   `json:"format"`
	Family     string   `json:"family"`
	Families   []string `json:"families"`
	Parameters string   `json:"parameter_size"`
	Level      string   `json:"quantization_level"`
}

// detailsOf describes a model by its file's header; without one it knows little.
func detailsOf(h *actors.Header) details {
	if h == nil {
		return details{Format: "gguf"}
	}
	i := &h.Info
	return details{"", "gguf", i.Architecture, []string{i.Architecture}, scaled(i.Parameters), level(h)}
}

// level names the type of a model's weights: as the file does, else the type with the most bytes.
func level(h *actors.Header) string {
	if n, err := h.Settings.Int("general.file_type"); err == nil {
		if name, ok := ftype.Name(n); ok {
			return name
		}
	}
	return h.Type.String()
}

// modified returns when a model's file was written; if that is not known, when the server started.
func (a *api) modified(h *actors.Header) time.Time {
	if h == nil || h.Modified.IsZero() {
		return a.since
	}
	return h.Modified.UTC()
}

// scaled formats a number of parameters as people write it: 7.6B.
func scaled(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if float64(n) >= unit.size {
			return strconv.FormatFloat(float64(n)/unit.size, 'f', 1, 64) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// tags serves GET /api/tags.
func (a *api) tags(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	all := []tag{}
	for _, e := range a.Entries() {
		t := tag{e.Name, e.Name, a.modified(e.Header), 0, digest(&e), detailsOf(e.Header)}
		if e.Header != nil {
			t.Size = e.Header.Info.WeightBytes
		}
		all = append(all, t)
	}
	wire.WriteJSON(rc, map[string][]tag{"models": all})
	return nil
}

// process describes a loaded model as GET /api/ps lists it.
type process struct {
	Name    string    `json:"name"`
	Model   string    `json:"model"`
	Size    int64     `json:"size"` // bytes of weights and cache, in memory
	Digest  string    `json:"digest"`
	Details details   `json:"details"`
	Expires time.Time `json:"expires_at"`
	VRAM    int64     `json:"size_vram"` // bytes of Size on a GPU
	Context int       `json:"context_length"`
}

// never is the number of years from the server's start until models are said to expire, since no time limit unloads
// them.
const never = 100

// running serves GET /api/ps.
func (a *api) running(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	all := []process{}
	for _, e := range a.Entries() {
		m := e.Model
		if m == nil {
			continue
		}
		plan := m.Engine.Plan()
		p := process{
			Name: m.Name, Model: m.Name, Size: plan.Host().Bytes() + plan.Beyond().Bytes(),
			Digest: digest(&e), Details: detailsOf(e.Header), Expires: a.since.AddDate(never, 0, 0), Context: m.Context,
		}
		if plan.Apart() {
			p.VRAM = plan.Beyond().Bytes()
		}
		all = append(all, p)
	}
	wire.WriteJSON(rc, map[string][]process{"models": all})
	return nil
}

// model is the body of POST /api/show.
type model struct {
	License      string         `json:"license,omitempty"`
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"` // of sampling: those that the model's file recommends, else the usual ones
	Template     string         `json:"template"`   // Jinja's
	System       string         `json:"system,omitempty"`
	Messages     jsonText       `json:"messages,omitempty"` // that conversations begin with
	Details      details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	Modified     time.Time      `json:"modified_at"`
}

// show serves POST /api/show. Some clients send the model's name as name.
func (a *api) show(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	e, fault := decodeShow(body, a.known)
	if fault != nil {
		return fault
	}
	h := e.Header
	if h == nil { // its file is damaged, or gone
		wire.WriteJSON(rc, model{Details: detailsOf(nil), Info: map[string]any{}, Capabilities: e.Capabilities(),
			Modified: a.since})
		return nil
	}
	license, _ := h.Settings.String("general.license")
	template, _ := chat.Own(h.Settings)
	settings := modelfile.Of(h.Settings)
	said := modelfile.Modelfile{From: e.Name, Manner: modelfile.Manner{Template: template, System: settings.System}}
	wire.WriteJSON(rc, model{
		license, said.String(), parameters(h, settings.Stop), template, settings.System, jsonText(settings.Messages), detailsOf(h),
		infoOf(h), e.Capabilities(), a.modified(h),
	})
	return nil
}

// jsonText is JSON that is written as it is.
type jsonText string

// MarshalJSON implements json.Marshaler.
func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

func decodeShow(body answer.Body, find func(name string) (answer.Entry, *wire.Fault)) (answer.Entry, *wire.Fault) {
	f, name := wire.ReadFields(body.Text, body.Budget), ""
	f.Text("name", &name)
	f.Text("model", &name)
	f.Flag("verbose", new(bool)) // lists are too long for an answer
	if f.Fault != nil {
		return answer.Entry{}, f.Fault
	}
	return find(name)
}

// parameters returns a model's parameters in the form of a Modelfile, one on each line.
func parameters(h *actors.Header, stop []string) string {
	var text strings.Builder
	s := &h.Info.Sampling
	for _, line := range []struct {
		name  string
		value any
	}{
		{"num_ctx", h.Info.Context}, {"temperature", s.Temp}, {"top_k", s.TopK}, {"top_p", s.TopP}, {"min_p", s.MinP},
		{"repeat_penalty", s.RepeatPenalty},
	} {
		fmt.Fprintf(&text, "%-30s %v\n", line.name, line.value)
	}
	for _, s := range stop {
		fmt.Fprintf(&text, "%-30s %q\n", "stop", s)
	}
	return text.String()
}

// infoOf returns the file's metadata. Lists, which may have as many entries as the vocabulary, are null, and so are
// numbers that JSON lacks.
func infoOf(h *actors.Header) map[string]any {
	info := map[string]any{"general.parameter_count": h.Info.Parameters}
	for _, key := range h.Settings.Keys() {
		v, _ := h.Settings.Get(key)
		info[key] = v
		if f, err := h.Settings.Float(key); err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			info[key] = nil
		}
		if _, list := v.([]string); list {
			info[key] = nil
		}
	}
	return info
}
