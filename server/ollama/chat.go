package ollama

import (
	"fmt"
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
	f.tools(prompt)
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
	for i := range all {
		if all[i], f.Fault = known(fmt.Sprintf("messages[%d]", i), all[i]); f.Fault != nil {
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

// known is a message with the names that templates have for what Ollama calls otherwise.
func known(place string, m chat.Message) (chat.Message, *wire.Fault) {
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
	for _, name := range [...][2]string{{"thinking", "reasoning_content"}, {"tool_name", "name"}} {
		if text := ask.Text(m.Fields, name[0]); text != "" {
			m = m.With(name[1], jinja.Str(text))
		}
	}
	return m, nil
}

// tools hands the tools to the template. What the model then writes is text.
func (f fields) tools(prompt *chat.Input) {
	raw, ok := f.Get("tools")
	if !ok {
		return
	}
	list, err := chat.ParseTools(raw, f.Budget)
	if err != nil {
		f.Refuse(err)
		return
	}
	if len(list.Items) > 0 {
		prompt.Tools = list
	}
}
