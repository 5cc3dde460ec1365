package decode

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
)

// Turns assembles messages from parts that come one after another: neighbours of one role form one message, calls
// belong to the assistant's message, results are messages of their own.
type Turns struct {
	all   []chat.Message
	next  chat.Message      // the message that is being assembled
	names map[string]string // names of the called tools, by the ids of the calls so far
}

// Role returns the role of the message that is being assembled.
func (t *Turns) Role() string { return t.next.Role }

// Parts returns the parts of the message that is being assembled.
func (t *Turns) Parts() []chat.Part { return t.next.Parts }

// Begin starts a message, or continues the one before it if the role is the same.
func (t *Turns) Begin(role string) {
	if t.next.Role != role {
		t.close()
		t.next.Role = role
	}
}

// Add adds a part. Texts are separated by a line break, as parts of messages are everywhere.
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

// Called reports whether there was a call with an id.
func (t *Turns) Called(id string) bool {
	_, ok := t.names[id]
	return ok
}

// Result adds the result of a call as a message of its own, after the parts before it.
func (t *Turns) Result(id string, parts []chat.Part) {
	t.close()
	t.all = append(t.all, chat.Message{Role: "tool", Parts: parts, Result: chat.Result{Call: id, Name: t.names[id]}})
}

// Unfinished reports whether the last message is the assistant's, for the model to continue; ok, whether the model
// can.
func (t *Turns) Unfinished() (unfinished, ok bool) {
	return t.next.Role == "assistant", GoesOn(&t.next)
}

// GoesOn reports whether the model can continue a message: an assistant's message with text and without calls.
func GoesOn(m *chat.Message) bool {
	return m.Role == "assistant" && !m.Called() && strings.TrimSpace(m.Text()) != ""
}

// Messages returns all messages.
func (t *Turns) Messages() []chat.Message {
	t.close()
	return t.all
}

// close ends the message that is being assembled. Its role stays: later parts form another message of that role.
func (t *Turns) close() {
	if len(t.next.Parts)+len(t.next.Calls) > 0 {
		t.all = append(t.all, t.next)
	}
	t.next = chat.Message{Role: t.next.Role}
}
