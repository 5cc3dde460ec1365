package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/chat"
)

// talkFile is a saved conversation, in the format of sluice template --conversation.
type talkFile struct {
	Messages  []chat.Message  `json:"messages"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	Documents json.RawMessage `json:"documents,omitempty"`
}

// saveTalk writes a conversation to a file that only its owner can read. An existing file is replaced atomically.
func saveTalk(path string, c chat.Conversation, replace bool) error {
	text, err := encodeTalk(c)
	if err == nil {
		err = safefile.Write(path, text, 0o600, replace)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func encodeTalk(c chat.Conversation) ([]byte, error) {
	file := talkFile{Messages: append([]chat.Message{}, c.Messages...)} // a list even if it is empty
	var err, err2 error
	file.Tools, err = rawJSON(c.Tools)
	file.Documents, err2 = rawJSON(c.Documents)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = env.PrintJSON(&text, file)
	return text.Bytes(), err
}

func rawJSON(v jsontext.Value) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return chat.ToJSON(v)
}

func loadTalk(path string) (chat.Conversation, error) {
	f, _, err := safefile.Open(path)
	if err != nil {
		return chat.Conversation{}, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	data, err := safefile.ReadAll(f, env.MostDescription)
	if err != nil {
		return chat.Conversation{}, fmt.Errorf("%s: %w", path, err)
	}
	c, err := chat.ParseConversation(string(data))
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
