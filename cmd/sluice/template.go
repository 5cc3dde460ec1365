package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

type templateCmd struct {
	File         string `required:"" placeholder:"FILE" help:"Chat template (Jinja2)."`
	Conversation string `required:"" placeholder:"FILE" help:"JSON: messages, and perhaps tools and documents. All other keys are variables of the template, such as add_generation_prompt (true if not given) or enable_thinking."`
	BOSToken     string `name:"bos-token" placeholder:"TEXT" help:"The text of the token that begins a sequence, if the conversation does not give it."`
	EOSToken     string `name:"eos-token" placeholder:"TEXT" help:"The text of the token that ends a sequence, likewise."`
	Now          string `placeholder:"DATE" help:"The date that the template sees, such as 2026-11-20 or 2026-11-20T12:34:56. Without it: today."`
}

func (templateCmd) examples() [2]string {
	return [2]string{
		`sluice template --file chat.jinja --conversation talk.json`,
		`sluice template --file chat.jinja --conversation talk.json --bos-token "<s>" --now 2026-11-20`,
	}
}

// Run prints exactly what was rendered, without a newline of its own.
func (c *templateCmd) Run(e *env) error {
	now, err := c.date(e.now())
	if err != nil {
		return err
	}
	source, err := e.readFile(c.File, mostDescription)
	if err != nil {
		return err
	}
	talk, err := e.readFile(c.Conversation, mostDescription)
	if err != nil {
		return err
	}
	in, err := c.input(talk)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Conversation, err)
	}
	in.Now = now
	t, err := chat.Compile(string(source))
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	text, err := t.Render(in)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	_, err = io.WriteString(e.stdout, text)
	return err
}

func (c *templateCmd) date(today time.Time) (time.Time, error) {
	if c.Now == "" {
		return today, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, c.Now); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--now is %q, want a date such as 2026-11-20 or 2026-11-20T12:34:56", c.Now)
}

// input reads a conversation file: the conversation's own keys, and the variables beside them.
func (c *templateCmd) input(talk []byte) (chat.Input, error) {
	in := chat.Input{AddGenerationPrompt: true, BOS: c.BOSToken, EOS: c.EOSToken, Extra: &jinja.Dict{}}
	conversation, err := chat.ParseConversation(string(talk))
	if err != nil {
		return in, err
	}
	in.Messages, in.Tools, in.Documents = conversation.Messages, conversation.Tools, conversation.Documents
	if !bytes.HasPrefix(bytes.TrimSpace(talk), []byte("{")) {
		return in, nil // a bare list of messages
	}
	vars, err := chat.ParseVariables(string(talk), nil)
	if err != nil {
		return in, err
	}
	generate := false
	for name, v := range vars.All() {
		switch name {
		case "messages", "tools", "documents":
		case "add_generation_prompt":
			generate, err = true, setBool(&in.AddGenerationPrompt, name, v)
		case "continue_final_message":
			err = setBool(&in.ContinueFinalMessage, name, v)
		case "bos_token":
			err = setText(&in.BOS, name, v)
		case "eos_token":
			err = setText(&in.EOS, name, v)
		default:
			in.Extra.Set(name, v)
		}
		if err != nil {
			return in, err
		}
	}
	in.AddGenerationPrompt = in.AddGenerationPrompt && (generate || !in.ContinueFinalMessage)
	return in, nil
}

func setBool(to *bool, name string, v jinja.Value) error {
	b, ok := v.(jinja.Bool)
	if !ok {
		return fmt.Errorf("%s: want true or false", name)
	}
	*to = bool(b)
	return nil
}

// setText keeps what a flag has set.
func setText(to *string, name string, v jinja.Value) error {
	s, ok := v.(jinja.Str)
	if !ok {
		return fmt.Errorf("%s: want the token's text", name)
	}
	if *to == "" {
		*to = string(s)
	}
	return nil
}
