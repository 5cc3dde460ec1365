package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
)

type Template struct {
	models.Flag
	File         string `placeholder:"FILE" help:"Chat template (Jinja2). Without it: the model's own; - is standard input."`
	Conversation string `placeholder:"FILE" help:"Without it, the model's template is shown as it is. JSON: messages, and perhaps tools and documents. All other keys are variables of the template, such as add_generation_prompt (true if not given) or enable_thinking."`
	BOSToken     string `name:"bos-token" placeholder:"TEXT" help:"The text of the token that begins a sequence, if the conversation does not give it."`
	EOSToken     string `name:"eos-token" placeholder:"TEXT" help:"The text of the token that ends a sequence, likewise."`
	Now          string `placeholder:"DATE" help:"The date that the template sees, such as 2026-11-20 or 2026-11-20T12:34:56. Without it: today."`
}

func (Template) Examples() [2]string {
	return [2]string{
		`sluice template -m model.gguf`,
		`sluice template --file chat.jinja --conversation talk.json --bos-token "<s>" --now 2026-11-20`,
	}
}

// Run prints exactly what was rendered, without a newline of its own.
func (c *Template) Run(e *env.Env) error {
	now, err := c.date(e.Now())
	if err != nil {
		return err
	}
	if c.File == "" {
		return c.own(e, now)
	}
	if c.Conversation == "" {
		return env.Usagef("there is no conversation for the template of %s: add --conversation FILE", c.File)
	}
	source, err := e.ReadFile(c.File, env.MostDescription)
	if err != nil {
		return err
	}
	t, err := chat.Compile(string(source))
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return c.render(e, c.File, t, now)
}

// own shows the template of a model, or the prompt that it renders from a conversation.
func (c *Template) own(e *env.Env, now time.Time) error {
	f, err := namedmodel.Open(e.Lookup, c.Model)
	if err != nil {
		return err
	}
	defer f.Close()
	source, err := chat.Own(&f.Meta)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if c.Conversation == "" {
		if source == "" {
			return fmt.Errorf("%s: it has no chat template: with --conversation, the one is used that it is run with", f.Name)
		}
		_, err = io.WriteString(e.Stdout, source)
		return err
	}
	vocab, err := token.New(&f.Meta)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	arch, _ := f.Meta.String("general.architecture")
	t, note, err := chat.ForModel(source, arch, func(text string) bool {
		_, ok := vocab.Lookup(text)
		return ok
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if note != "" {
		fmt.Fprintln(e.Stderr, "sluice: "+note)
	}
	c.BOSToken, c.EOSToken = cmp.Or(c.BOSToken, vocab.BOSText()), cmp.Or(c.EOSToken, vocab.EOSText())
	return c.render(e, f.Name, t, now)
}

// render prints the prompt that a template renders from the conversation.
func (c *Template) render(e *env.Env, name string, t *chat.Template, now time.Time) error {
	talk, err := e.ReadFile(c.Conversation, env.MostDescription)
	if err != nil {
		return err
	}
	in, err := c.input(talk)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Conversation, err)
	}
	in.Now = now
	text, err := t.Render(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = io.WriteString(e.Stdout, text)
	return err
}

func (c *Template) date(today time.Time) (time.Time, error) {
	if c.Now == "" {
		return today, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, c.Now); err == nil {
			return t, nil
		}
	}
	return time.Time{}, env.Usagef("--now is %q, want a date such as 2026-11-20 or 2026-11-20T12:34:56", c.Now)
}

// input reads a conversation file: the conversation's own keys, and the variables beside them.
func (c *Template) input(talk []byte) (chat.Input, error) {
	in := chat.Input{AddGenerationPrompt: true, BOS: c.BOSToken, EOS: c.EOSToken, Extra: &jsontext.Object{}}
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

func setBool(to *bool, name string, v jsontext.Value) error {
	b, ok := v.(jsontext.Bool)
	if !ok {
		return fmt.Errorf("%s: want true or false", name)
	}
	*to = bool(b)
	return nil
}

// setText sets a text to the value of a variable, which must be a string.
func setText(to *string, name string, v jsontext.Value) error {
	s, ok := v.(jsontext.String)
	if !ok {
		return fmt.Errorf("%s: want the token's text", name)
	}
	if *to == "" {
		*to = string(s)
	}
	return nil
}
