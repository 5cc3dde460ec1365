package ask

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// Turns puts messages together, in the form that templates know, of parts that come one after another: neighbours of
// one role are one message, calls are members of the assistant's, results are messages of their own.
type Turns struct {
	all             []chat.Message
	role            string // of the message that is being put together
	texts, thoughts []string
	calls           []jinja.Value
	names           map[string]string // of tools, by the ids of the calls so far
}

// Role is whose message is being put together.
func (t *Turns) Role() string { return t.role }

// Begin starts a message, unless it goes on with one of the same role.
func (t *Turns) Begin(role string) {
	if t.role != role {
		t.close()
		t.role = role
	}
}

// Say adds a text. A line break separates it from the one before, as parts of messages everywhere.
func (t *Turns) Say(text string) { t.texts = append(t.texts, text) }

// Think adds a thought.
func (t *Turns) Think(text string) {
	if text != "" {
		t.thoughts = append(t.thoughts, text)
	}
}

// Call adds a call of a tool.
func (t *Turns) Call(id, name string, arguments jinja.Value) {
	if t.names == nil {
		t.names = map[string]string{}
	}
	t.names[id] = name
	t.calls = append(t.calls, Dict("id", jinja.Str(id), "type", jinja.Str("function"),
		"function", Dict("name", jinja.Str(name), "arguments", arguments)))
}

// Called is the name of the tool that a call before was of.
func (t *Turns) Called(id string) (name string, ok bool) {
	name, ok = t.names[id]
	return name, ok
}

// Result adds what came of a call, after what was said before it.
func (t *Turns) Result(id, text string) {
	t.close()
	t.all = append(t.all, chat.Message{Fields: Dict("role", jinja.Str("tool"), "tool_call_id", jinja.Str(id),
		"name", jinja.Str(t.names[id]), "content", jinja.Str(text)), Role: "tool", Content: text})
}

// Unfinished says that the last message is the assistant's, for the model to go on with; ok, that it can.
func (t *Turns) Unfinished() (unfinished, ok bool) {
	return t.role == "assistant", len(t.calls) == 0 && strings.TrimSpace(t.Text()) != ""
}

// Text is what the message that is being put together says so far.
func (t *Turns) Text() string { return strings.Join(t.texts, "\n") }

// Messages are all that there are.
func (t *Turns) Messages() []chat.Message {
	t.close()
	return t.all
}

// close adds the message at hand to those that are complete. The role goes on: more of it is another message.
func (t *Turns) close() {
	text, thoughts, calls := t.Text(), t.thoughts, t.calls
	empty := len(t.texts)+len(thoughts)+len(calls) == 0
	t.texts, t.thoughts, t.calls = nil, nil, nil
	if empty {
		return
	}
	d := Dict("role", jinja.Str(t.role), "content", jinja.Str(text))
	if len(thoughts) > 0 {
		d.Set("reasoning_content", jinja.Str(strings.Join(thoughts, "\n")))
	}
	if len(calls) > 0 {
		d.Set("tool_calls", &jinja.List{Items: calls})
	}
	t.all = append(t.all, chat.Message{Role: t.role, Content: text, Fields: d})
}
