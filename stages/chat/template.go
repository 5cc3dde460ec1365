package chat

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// Template is a compiled chat template. It never changes: any number of goroutines may render it at once.
type Template struct {
	parsed *jinja.Template
	limits jinja.Limits
	habits Habits
}

// Compile parses a chat template. Its errors name the line and what was wrong there.
func Compile(source string) (*Template, error) {
	parsed, err := jinja.Parse(source)
	if err != nil {
		return nil, err
	}
	t := &Template{parsed: parsed, limits: jinja.DefaultLimits()}
	t.habits = t.learn(source)
	return t, nil
}

// Input is what one prompt is made from.
type Input struct {
	Messages  []Message
	Tools     jsontext.Value // a list of tools as templates know them (OpenAI's shape); nil for none
	Documents jsontext.Value // nil for none

	// AddGenerationPrompt ends the prompt with the beginning of an answer; ContinueFinalMessage ends it within
	// the last message, which the model then goes on with. At most one of them.
	AddGenerationPrompt  bool
	ContinueFinalMessage bool

	BOS, EOS string           // the texts of these tokens
	Now      time.Time        // for templates that tell the model the date
	Extra    *jsontext.Object // more variables, such as enable_thinking; nil for none

	Stop func() bool // asked from time to time, if set; true ends the rendering with an error
}

// Render renders a conversation. An error of kind jinja.Raised is the template's refusal in its own words.
func (t *Template) Render(in Input) (string, error) {
	if in.AddGenerationPrompt && in.ContinueFinalMessage {
		return "", errors.New("a prompt either asks for a new message or goes on with the last one, not both")
	}
	vars := &jinja.Dict{}
	messages := make([]jinja.Value, len(in.Messages))
	for i := range in.Messages {
		messages[i] = jinja.Of(in.Messages[i].json())
	}
	vars.Set("messages", &jinja.List{Items: messages})
	vars.Set("tools", jinja.Of(in.Tools))
	vars.Set("documents", jinja.Of(in.Documents))
	vars.Set("add_generation_prompt", jinja.Bool(in.AddGenerationPrompt))
	vars.Set("bos_token", jinja.Str(in.BOS))
	vars.Set("eos_token", jinja.Str(in.EOS))
	for name, v := range in.Extra.All() {
		if _, taken := vars.Get(name); taken {
			return "", fmt.Errorf("template variable %q is set from the conversation: leave it out of the others", name)
		}
		vars.Set(name, jinja.Of(v))
	}
	limits := t.limits
	limits.Stop = in.Stop
	out, err := t.parsed.Render(vars, in.Now, limits)
	if err != nil || !in.ContinueFinalMessage {
		return out, err
	}
	if len(in.Messages) == 0 {
		return "", errors.New("there is no last message to continue")
	}
	return cutAfter(out, in.Messages[len(in.Messages)-1].lastText())
}

// RenderConversation renders a conversation as ParseConversation reads it, up to its last message.
func (t *Template) RenderConversation(text string) (string, error) {
	return t.renderConversation(text, t.habits)
}

func (t *Template) renderConversation(text string, h Habits) (string, error) {
	c, err := ParseConversation(text)
	if err != nil {
		return "", err
	}
	h.Roles = nil // any: the conversation is trusted
	if c.Messages, err = h.Normalise(c.Messages, nil); err != nil {
		return "", err
	}
	return t.Render(Input{Messages: c.Messages, Tools: c.Tools, Documents: c.Documents})
}

// cutAfter ends a rendered conversation after the last occurrence of the final message's text. Templates trim
// messages as they like, so white space around it need not be there.
func cutAfter(out, last string) (string, error) {
	bare := strings.TrimFunc(last, unicode.IsSpace)
	at := strings.LastIndex(out, bare)
	if at < 0 {
		return "", errors.New("the final message does not appear in the chat after applying the template: " +
			"it cannot be continued")
	}
	if strings.HasPrefix(out[at:], last) {
		return out[:at+len(last)], nil
	}
	return out[:at+len(bare)], nil
}
