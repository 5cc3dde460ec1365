package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sluice-ai/sluice"
)

// options are sluice.Options as they come from C.
type options struct {
	Context   int    `json:"context"`
	Memory    int64  `json:"memory"`
	VRAM      int64  `json:"vram"`
	Device    string `json:"device"`
	Threads   int    `json:"threads"`
	KV        string `json:"kv"`
	Sequences int    `json:"sequences"`
}

// parseOptions reads options; an empty text has none.
func parseOptions(text string) (sluice.Options, error) {
	var o options
	if text == "" {
		return sluice.Options{}, nil
	}
	if err := parse(text, &o); err != nil {
		return sluice.Options{}, fmt.Errorf("options: %w", err)
	}
	return sluice.Options{Context: o.Context, Memory: o.Memory, VRAM: o.VRAM, Device: o.Device, Threads: o.Threads,
		KV: o.KV, Sequences: o.Sequences}, nil
}

// request is a sluice.Request as it comes from C.
type request struct {
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Prompt      string          `json:"prompt"`
	MaxTokens   int             `json:"max_tokens"`
	Stop        []string        `json:"stop"`
	Schema      json.RawMessage `json:"schema"`
	Think       *bool           `json:"think"`
	Temperature *float32        `json:"temperature"`
	TopK        *int            `json:"top_k"`
	TopP        *float32        `json:"top_p"`
	MinP        *float32        `json:"min_p"`
	Seed        *uint64         `json:"seed"`
}

// parseRequest reads a request.
func parseRequest(text string) (sluice.Request, error) {
	var r request
	if err := parse(text, &r); err != nil {
		return sluice.Request{}, fmt.Errorf("request: %w", err)
	}
	asked := sluice.Request{Prompt: r.Prompt, MaxTokens: r.MaxTokens, Stop: r.Stop, Schema: string(r.Schema),
		Think: r.Think, Temperature: r.Temperature, TopK: r.TopK, TopP: r.TopP, MinP: r.MinP, Seed: r.Seed}
	for _, m := range r.Messages {
		asked.Messages = append(asked.Messages, sluice.Message{Role: m.Role, Text: m.Content})
	}
	return asked, nil
}

// parse reads one JSON object, whose members all have to be known.
func parse(text string, to any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early: want a JSON object")
	}
	if err != nil {
		return fmt.Errorf("want a JSON object as sluice.h describes it: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the JSON object: want one")
	}
	return nil
}
