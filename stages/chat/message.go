package chat

import (
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Message is one message of a conversation.
type Message struct {
	Role   string
	Parts  []Part // what it says, in order
	Calls  []Call // of tools
	Result Result // in a message of a tool

	// Fields is the message as it came, with what has no type here: a user's name, say, or what one model's template
	// knows. Templates see its members in their order, with what is above in the places of its names. nil: the message
	// was made here.
	Fields *jsontext.Object
}

// Part is a piece of what a message says.
type Part struct {
	Kind PartKind
	Text string // of Text, Refusal and Thought

	// Type is a request's name for a part that is no text, At the part's place there, such as messages[0].content[1]; ""
	// where that follows from the message's own.
	Type, At string

	Source  string   // of Image: a URL, or base64, as it was sent
	Picture *Picture // of Image: what that is; nil: it was not read

	came jsontext.Value // the entry of a list that it was; nil: it was none
}

// PartKind is what a part is.
type PartKind uint8

// Kinds of parts; those up to Thought are texts.
const (
	Text    PartKind = iota
	Refusal          // what an assistant says instead of a text
	Thought
	Image
	File
	Other // of a type that is unknown, or malformed
)

// Medium is the kind of a part that is no text, by the type that any API gives it.
func Medium(name string) PartKind {
	switch name {
	case "image", "image_url", "input_image":
		return Image
	case "file", "input_file", "document":
		return File
	}
	return Other
}

// Call is a call of a tool.
type Call struct {
	ID, Name  string
	Arguments jsontext.Value // an object, or the text of one; nil: none were given

	// Fields is the call as it came, as a message's are. Without an object "function" it is no call that templates know,
	// and stays as it is. nil: the call was made here.
	Fields jsontext.Value
}

// Result names the call that a message has the result of, and the tool.
type Result struct{ Call, Name string }

// Say makes a message of one text.
func Say(role, text string) Message { return Message{Role: role, Parts: []Part{{Text: text}}} }

// Text is what a message says, its texts one after another.
func (m *Message) Text() string {
	var all strings.Builder
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind != Thought && p.Kind != Refusal {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

// Called says whether a message has calls, or at least a field for them.
func (m *Message) Called() bool { return len(m.Calls) > 0 || m.Fields.Has("tool_calls") }

// lastText is where a message ends: its last text.
func (m *Message) lastText() string {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if p := &m.Parts[i]; p.Kind == Text || p.Kind == Other && p.Text != "" {
			return p.Text
		}
	}
	return ""
}

// thoughts are the parts that are thoughts; says tells whether there are others.
func (m *Message) thoughts() (thoughts []Part, says bool) {
	for _, p := range m.Parts {
		if p.Kind == Thought {
			thoughts = append(thoughts, p)
		} else {
			says = true
		}
	}
	return thoughts, says
}

// saying is the message with its parts replaced by a text; its thoughts stay.
func (m Message) saying(text string) Message {
	thoughts, _ := m.thoughts()
	m.Parts = append(thoughts, Part{Text: text})
	return m
}

// silent is the message without content, not even an empty text.
func (m Message) silent() Message {
	m.Fields = m.json().With("content", jsontext.Null{})
	m.Parts, _ = m.thoughts()
	return m
}
