package decodetest

import (
	"encoding/json"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// With finds models whose templates have these habits.
func With(h chat.Habits, find func(string) (*answer.Model, *wire.Fault)) func(string) (*answer.Model, *wire.Fault) {
	return func(name string) (*answer.Model, *wire.Fault) {
		m, fault := find(name)
		m.Habits = h
		return m, fault
	}
}

// Object is the JSON of keys and values in turn, in their order.
func Object(members ...any) json.RawMessage {
	text := []byte{'{'}
	for i, v := range members {
		one, err := json.Marshal(v)
		if err != nil {
			panic(err) // of a test
		}
		if i > 0 {
			text = append(text, ",:"[i%2])
		}
		text = append(text, one...)
	}
	return append(text, '}')
}

// Parts are the texts of a message, and its thoughts.
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

// Arguments are those of a call, as an object.
func Arguments(c chat.Call) json.RawMessage { return spelled(c.Arguments) }

func spelled(v jsontext.Value) json.RawMessage {
	text, err := chat.ToJSON(v)
	if err != nil {
		panic(err)
	}
	return text
}

// Blocks are texts as parts of a type, which have them under a key.
func Blocks(kind, key string, texts []string) []json.RawMessage {
	blocks := []json.RawMessage{}
	for _, text := range texts {
		blocks = append(blocks, Object("type", kind, key, text))
	}
	return blocks
}

// Functions are tools as templates know them, OpenAI's chat completions and Ollama.
func Functions(tools []Tool) json.RawMessage { return spelled(declared(tools)) }
