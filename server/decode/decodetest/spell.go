package decodetest

import (
	"encoding/json"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// With returns a finder like find, whose models have templates with the habits h.
func With(h chat.Habits, find func(string) (*answer.Model, *wire.Fault)) func(string) (*answer.Model, *wire.Fault) {
	return func(name string) (*answer.Model, *wire.Fault) {
		m, fault := find(name)
		m.Habits = h
		return m, fault
	}
}

// Object returns a JSON object of keys and values, which are given in turn; it keeps their order.
func Object(members ...any) json.RawMessage {
	text := []byte{'{'}
	for i, v := range members {
		one, err := json.Marshal(v)
		if err != nil {
			panic(err) // a test has given a value that JSON lacks
		}
		if i > 0 {
			text = append(text, ",:"[i%2])
		}
		text = append(text, one...)
	}
	return append(text, '}')
}

// Parts returns the texts and the thoughts of a message.
func Parts(m chat.Message) (texts, thoughts []string) {
	for _, p := range m.Parts {
		if p.Kind == chat.Thought {
			thoughts = append(thoughts, p.Text)
		} else {
			texts = append(texts, p.Text)
		}
	}
	return texts, thoughts
}

// Arguments returns the arguments of a call as a JSON object.
func Arguments(c chat.Call) json.RawMessage { return spelled(c.Arguments) }

func spelled(v jsontext.Value) json.RawMessage {
	text, err := chat.ToJSON(v)
	if err != nil {
		panic(err)
	}
	return text
}

// Blocks returns a block of type kind for each text, which is its member key.
func Blocks(kind, key string, texts []string) []json.RawMessage {
	blocks := []json.RawMessage{}
	for _, text := range texts {
		blocks = append(blocks, Object("type", kind, key, text))
	}
	return blocks
}

// Functions returns the declarations of tools in the JSON that templates, OpenAI's chat completions and Ollama share.
func Functions(tools []Tool) json.RawMessage { return spelled(declared(tools)) }
