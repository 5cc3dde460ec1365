package decode

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
)

// Turns puts messages together of parts that come one after another: neighbours of one role are one message, calls are
// members of the assistant's, results are messages of their own.
type Turns struct {
	all   []chat.Message
	next  chat.Message      // that is being put together
	names map[string]string // of tools, by the ids of the calls so far
}

// Role is whose message is being put together.
func (t *Turns) Role() string { return t.next.Role }

// Parts are those of this message so far.
func (t *Turns) Parts() []chat.Part { return t.next.Parts }

// Begin starts a message, unless it goes on with one of the same role.
func (t *Turns) Begin(role string) {
	if t.next.Role != role {
		t.close()
		t.next.Role = role
	}
}

// Add adds a part. A line break separates texts, as parts of messages everywhere.
func (t *Turns) Add(p chat.Part) {
	if p.Kind != chat.Thought || p.Text != "" {
		t.next.Parts = append(t.next.Parts, p)
	}
}

// Call adds a call of a tool.
func (t *Turns) Call(c chat.Call) {
	if t.names == nil {
		t.names = map[string]string{}
	}
	t.names[c.ID] = c.Name
	t.next.Calls = append(t.next.Calls, c)
}

// Called says whether there was a call of that id.
func (t *Turns) Called(id string) bool {
	_, ok := t.names[id]
	return ok
}

// Result adds what came of a call, after what was said before it.
func (t *Turns) Result(id string, parts []chat.Part) {
	t.close()
	t.all = append(t.all, chat.Message{Role: "tool", Parts: parts, Result: chat.Result{Call: id, Name: t.names[id]}})
}

// Unfinished says that the last message is the assistant's, for the model to go on with; ok, that it can.
func (t *Turns) Unfinished() (unfinished, ok bool) {
	return t.next.Role == "assistant", GoesOn(&t.next)
}

// GoesOn says that a message is one that the model can go on with: the assistant's, with a text and no calls.
func GoesOn(m *chat.Message) bool {
	return m.Role == "assistant" && !m.Called() && strings.TrimSpace(m.Text()) != ""
}

// Messages are all that there are.
func (t *Turns) Messages() []chat.Message {
	t.close()
	return t.all
}

// close adds the message at hand to those that are complete. The role goes on: more of it is another message.
func (t *Turns) close() {
	if len(t.next.Parts)+len(t.next.Calls) > 0 {
		t.all = append(t.all, t.next)
	}
	t.next = chat.Message{Role: t.next.Role}
}
