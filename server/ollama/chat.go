package ollama

import (
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// chat serves POST /api/chat.
func (a *api) chat(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.serve(rc, x, decodeChat, message{})
}

// decodeChat reads the body of a conversation.
func decodeChat(body answer.Body, find ask.Finder) (request, *wire.Fault) {
	in, m := ask.Read(body, find)
	if m == nil {
		return request{}, in.Fault
	}
	f, prompt := fields{in}, &chat.Input{Extra: &jinja.Dict{}}
	o, r := f.common(m, prompt.Extra)
	f.messages(m, prompt)
	r.Tools = f.Tools(prompt)
	o.Repeats = r.Tools != nil // calls are kept until they are complete
	if r.Chat = prompt; len(prompt.Messages) > 0 {
		o.Prompts, o.idle = []actors.Request{r}, ""
	}
	return o, f.Fault
}

// messages reads the conversation. If its last message is the assistant's, the answer goes on with it.
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
		if all[i], f.Fault = h.known(fmt.Sprintf("messages[%d]", i), all[i]); f.Fault != nil {
			return
		}
	}
	prompt.Messages = f.Normal(all, m)
	prompt.AddGenerationPrompt = true
	if n := len(prompt.Messages); n > 0 {
		last := &prompt.Messages[n-1]
		_, called := last.Fields.Get("tool_calls")
		prompt.ContinueFinalMessage = last.Role == "assistant" && !called && strings.TrimSpace(last.Content) != ""
		prompt.AddGenerationPrompt = !prompt.ContinueFinalMessage
	}
}

// history is what is to be known of the messages before one.
type history struct {
	open []openCall
	made int // ids
}

// openCall is one whose result has not come.
type openCall struct{ id, name string }

// known is a message with the names that templates have for what Ollama calls otherwise.
func (h *history) known(place string, m chat.Message) (chat.Message, *wire.Fault) {
	switch list := ask.Value(m.Fields, "images").(type) {
	case nil, jinja.None:
	case *jinja.List:
		if len(list.Items) > 0 {
			return m, noImages(place + ".images")
		}
	default:
		return m, noImages(place + ".images")
	}
	if content := ask.Value(m.Fields, "content"); content == nil || content == (jinja.None{}) {
		m = m.With("content", jinja.Str(""))
	}
	if text := ask.Text(m.Fields, "thinking"); text != "" {
		m = m.With("reasoning_content", jinja.Str(text))
	}
	if calls, ok := ask.Value(m.Fields, "tool_calls").(*jinja.List); ok {
		m = m.With("tool_calls", h.calls(calls))
	}
	if m.Role == "tool" {
		call := h.answered(ask.Text(m.Fields, "tool_call_id"), ask.Text(m.Fields, "tool_name"))
		m = m.With("tool_call_id", jinja.Str(call.id)).With("name", jinja.Str(call.name))
	}
	return m, nil
}

// calls gives those an id that have none: templates want some.
func (h *history) calls(list *jinja.List) *jinja.List {
	out := &jinja.List{}
	for _, item := range list.Items {
		d, _ := item.(*jinja.Dict)
		function, ok := ask.Value(d, "function").(*jinja.Dict)
		if !ok {
			out.Items = append(out.Items, item)
			continue
		}
		call := openCall{ask.Text(d, "id"), ask.Text(function, "name")}
		if call.id == "" {
			call.id = fmt.Sprintf("call%05d", h.made) // some templates take nothing but nine letters and digits
			h.made++
		}
		h.open = append(h.open, call)
		out.Items = append(out.Items, ask.Dict("id", jinja.Str(call.id), "type", jinja.Str("function"), "function", function))
	}
	return out
}

// answered finds the call that a result is of: by its id, by the tool's name, or the first one that is open.
func (h *history) answered(id, name string) openCall {
	at := slices.IndexFunc(h.open, func(c openCall) bool { return id != "" && c.id == id })
	if at < 0 {
		at = slices.IndexFunc(h.open, func(c openCall) bool { return name != "" && c.name == name })
	}
	if at < 0 && len(h.open) > 0 && id == "" && name == "" {
		at = 0
	}
	if at < 0 {
		return openCall{id, name}
	}
	call := h.open[at]
	h.open = slices.Delete(h.open, at, at+1)
	return call
}
