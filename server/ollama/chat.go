package ollama

import (
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// chat serves POST /api/chat.
func (a *api) chat(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.serve(rc, x, decodeChat, message{})
}

// decodeChat decodes the body of a conversation.
func decodeChat(body answer.Body, find decode.Finder) (request, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return request{}, in.Fault
	}
	f, prompt := fields{in}, &chat.Input{Extra: &jsontext.Object{}}
	o, r := f.common(m, prompt.Extra)
	f.messages(m, prompt)
	r.Tools = f.Tools(prompt)
	o.Repeats = r.Tools != nil // calls are kept until they are complete
	if r.Chat = prompt; len(prompt.Messages) > 0 {
		o.Prompts, o.Notes, o.idle = []actors.Request{r}, f.Notes, ""
	}
	return o, f.Fault
}

// messages decodes the conversation. If its last message is the assistant's, the answer continues it.
func (f fields) messages(m *answer.Model, prompt *chat.Input) {
	raw, ok := f.Get("messages")
	if !ok {
		return
	}
	all, err := chat.ParseMessages(raw, answer.MaxMessages, f.Budget)
	if err != nil {
		f.Refuse(err)
		return
	}
	h := history{}
	for i := range all {
		h.know(fmt.Sprintf("messages[%d]", i), &all[i])
	}
	prompt.Messages = f.Normal(all, m)
	if n := len(prompt.Messages); n > 0 {
		prompt.ContinueFinalMessage = decode.GoesOn(&prompt.Messages[n-1])
	}
	prompt.AddGenerationPrompt = !prompt.ContinueFinalMessage
}

// history holds the calls of earlier messages, which later results answer.
type history struct {
	open []chat.Result // calls whose results have not come
	made int           // number of ids that were made here
}

// know records the calls of a message, and moves members that only Ollama's API has (images, thinking, tool_name) to
// where templates read them.
func (h *history) know(place string, m *chat.Message) {
	if content := m.Fields.Get("content"); !jsontext.Given(content) {
		m.Fields, m.Parts = m.Fields.With("content", jsontext.String("")), append(m.Parts, chat.Part{})
	}
	m.Parts = append(images(place+".images", m.Fields.Get("images")), m.Parts...)
	if thought := m.Fields.Text("thinking"); thought != "" {
		m.Parts = slices.DeleteFunc(m.Parts, func(p chat.Part) bool { return p.Kind == chat.Thought })
		m.Parts = append(m.Parts, chat.Part{Kind: chat.Thought, Text: thought})
	}
	for i := range m.Calls {
		h.call(&m.Calls[i])
	}
	if m.Role == "tool" {
		m.Result = h.answered(m.Result.Call, m.Fields.Text("tool_name"))
		m.Fields = m.Fields.With("tool_call_id", jsontext.String(m.Result.Call)).With("name", jsontext.String(m.Result.Name))
	}
}

// images are the parts of a list of pictures in base64, which stand before the text. What is no such list is one part
// without a picture: who reads it refuses it.
func images(place string, v jsontext.Value) (parts []chat.Part) {
	switch v := v.(type) {
	case nil, jsontext.Null:
	case jsontext.List:
		for _, image := range v {
			text, _ := image.(jsontext.String)
			parts = append(parts, chat.Part{Kind: chat.Image, At: place, Source: string(text)})
		}
	default:
		parts = append(parts, chat.Part{Kind: chat.Image, At: place})
	}
	return parts
}

// call gives a call an id if it has none, since templates need one.
func (h *history) call(c *chat.Call) {
	came, _ := c.Fields.(*jsontext.Object)
	function := came.Object("function")
	if function == nil {
		return
	}
	if c.ID == "" {
		c.ID = fmt.Sprintf("call%05d", h.made) // some templates take nothing but nine letters and digits
		h.made++
	}
	h.open = append(h.open, chat.Result{Call: c.ID, Name: c.Name})
	known := &jsontext.Object{}
	known.Set("id", jsontext.String(c.ID))
	known.Set("type", jsontext.String("function"))
	known.Set("function", function)
	c.Fields = known
}

// answered returns the call that a result answers: by its id, by the tool's name, or else the first open one.
func (h *history) answered(id, name string) chat.Result {
	at := slices.IndexFunc(h.open, func(c chat.Result) bool { return id != "" && c.Call == id })
	if at < 0 {
		at = slices.IndexFunc(h.open, func(c chat.Result) bool { return name != "" && c.Name == name })
	}
	if at < 0 && len(h.open) > 0 && id == "" && name == "" {
		at = 0
	}
	if at < 0 {
		return chat.Result{Call: id, Name: name}
	}
	call := h.open[at]
	h.open = slices.Delete(h.open, at, at+1)
	return call
}
