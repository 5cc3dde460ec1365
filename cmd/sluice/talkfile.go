package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// talkFile is a saved conversation. sluice template --conversation reads the same.
type talkFile struct {
	Messages  []chat.Message  `json:"messages"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	Documents json.RawMessage `json:"documents,omitempty"`
}

// saveTalk writes a conversation; a file that was there is replaced as a whole, or not at all.
func saveTalk(path string, c chat.Conversation) error {
	file := talkFile{Messages: append([]chat.Message{}, c.Messages...)} // a list even if it is empty
	var err, err2 error
	file.Tools, err = rawJSON(c.Tools)
	file.Documents, err2 = rawJSON(c.Documents)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var text bytes.Buffer
	if err := printJSON(&text, file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replaceFile(path, text.Bytes())
}

func rawJSON(v jinja.Value) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return jinja.ToJSON(v)
}

func loadTalk(path string) (chat.Conversation, error) {
	data, err := readFile(path)
	if err != nil {
		return chat.Conversation{}, err
	}
	c, err := chat.ParseConversation(data)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// replaceFile writes a file that only its owner may read. Others see the old one or the whole new one.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sluice-*")
	if err != nil {
		return onFile(path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
		return onFile(path, err)
	}
	return nil
}

// onFile says of the file that a person named what went wrong with it, or with the one that was to take its place.
func onFile(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
