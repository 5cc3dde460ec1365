package actors

import (
	"errors"
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

func (s *spec) promptOf(r *Request, stop func() bool) (*prompt, error) {
	if r.prompt == nil {
		r.prompt = &prompt{}
	}
	p := r.prompt
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made { // nor is it after a panic
		p.err = s.makePrompt(p, r, stop)
		p.made = true
	}
	return p, p.err
}

func (s *spec) makePrompt(p *prompt, r *Request, stop func() bool) error {
	if r.Tokens != nil {
		p.tokens = r.Tokens
		return s.equip(p, r)
	}
	text, options := r.Text, token.Options{AddSpecial: true, ParseSpecial: !r.PlainText}
	if r.Chat != nil {
		var err error
		if text, err = s.render(*r.Chat, stop); err != nil {
			return err
		}
		// A template may spell out the BOS that encoding would add: there must be one.
		again := s.vocab.BOSText() != "" && strings.HasPrefix(text, s.vocab.BOSText())
		options = token.Options{AddSpecial: !again, ParseSpecial: true}
		p.rendered = true
	}
	options.Most, options.Stop = s.plan.Context, stop
	ids, err := s.vocab.Encode(nil, text, options)
	var long *token.TooLong
	switch {
	case errors.As(err, &long):
		return tooLong("the prompt has %d bytes, which are more than %d tokens, and the context holds %d: "+
			"shorten it, or start with a larger --ctx", long.Bytes, long.Least-1, s.plan.Context)
	case errors.Is(err, token.ErrStopped):
		return errGone
	case err != nil:
		return refuse("the prompt cannot be put into tokens: %v", err)
	}
	p.tokens, p.tail = ids, tailOf(text, r.Chat)
	return s.equip(p, r)
}

// tailOf is how a prompt ends behind the last words in it that are not the model's.
func tailOf(prompt string, in *chat.Input) string {
	const most = 64 // bytes of it, where these words are not found
	from := max(0, len(prompt)-most)
	if in != nil {
		for i := range in.Messages {
			m := &in.Messages[len(in.Messages)-1-i]
			if m.Role == "assistant" {
				continue
			}
			said := strings.TrimSpace(m.Text())
			if at := strings.LastIndex(prompt, said); said != "" && at >= 0 {
				from = at + len(said)
			}
			break
		}
	}
	return strings.Clone(prompt[from:])
}

// equip says what an answer may call, and what it is bound to be.
func (s *spec) equip(p *prompt, r *Request) (err error) {
	p.form.of = r.Form
	if r.Tools == nil {
		p.tools, err = tools.NewSet(nil)
		return err
	}
	if p.tools, err = tools.NewSet(r.Tools.List); err != nil {
		return refuse("tools: %v", err)
	}
	switch {
	case !r.Tools.binds():
		return nil
	case r.Tools.Must && r.Form != nil:
		return refuse("the answer is to be a call, and of another form too: drop one of both")
	case s.writing == nil && r.Tools.Must:
		return refuse("the chat template of this model does not show how it writes calls: none can be forced, " +
			"let the model choose (tool_choice auto)")
	case s.writing == nil || !r.Tools.Must && (r.Form != nil || !s.syntax.Opens(s.writing.Open)):
		return nil
	}
	mark := s.writing.Thought[0]
	thinks := mark != "" && !strings.Contains(p.tail, strings.TrimSpace(mark)) && r.Tools.Must
	p.form = form{of: formOf(s.writing, r.Tools, thinks), calls: true, lazy: !r.Tools.Must, headings: true}
	return nil
}

// render turns a conversation into the prompt.
func (s *spec) render(in chat.Input, stop func() bool) (string, error) {
	in.BOS, in.EOS, in.Now, in.Stop = s.vocab.BOSText(), s.vocab.EOSText(), now(), stop
	in.Messages = s.whole(in.Messages)
	text, err := s.template.Render(in)
	switch {
	case err != nil && stop != nil && stop():
		return "", errGone
	case err != nil:
		return "", refuse("the model's chat template refused the conversation: %v", err)
	}
	return text, nil
}

// whole puts in front of a conversation what the model's settings say: messages, and a system message unless the
// conversation has one.
func (s *spec) whole(said []chat.Message) []chat.Message {
	own := len(said) > 0 && said[0].Role == "system"
	if len(said) == 0 || len(s.standing) == 0 && (own || s.settings.System == "") {
		return said
	}
	var all []chat.Message
	switch {
	case own:
		all, said = append(all, said[0]), said[1:]
	case s.settings.System != "":
		all = append(all, chat.Say("system", s.settings.System))
	}
	return append(append(all, s.standing...), said...)
}

// measure checks that a prompt fits, and says how long it and the answer may be together.
func (s *spec) measure(r *Request, p *prompt) (limit int, err error) {
	if len(p.tokens) == 0 {
		return 0, refuse("the prompt has no tokens: give it some text")
	}
	for i, id := range p.tokens {
		if id < 0 || int(id) >= s.bound.Vocab {
			return 0, refuse("token %d of the prompt is %d, the vocabulary has 0 to %d", i, id, s.bound.Vocab-1)
		}
	}
	if !r.score {
		most := r.MaxTokens
		if most <= 0 {
			most = s.settings.Predict
		}
		return limitFor(len(p.tokens), most, s.plan.Context)
	}
	if len(p.tokens) > s.plan.Context {
		return 0, tooLong("there are %d tokens, the context holds %d: ask for a larger one", len(p.tokens), s.plan.Context)
	}
	most := s.plan.Context
	if s.bound.Whole {
		most = min(most, s.limits.Rows, s.limits.Wanted)
	}
	if s.bound.Positions > 0 {
		most = min(most, s.bound.Positions)
	}
	if len(p.tokens) > most {
		return 0, tooLong("there are %d tokens, and this model takes texts of at most %d: shorten it", len(p.tokens), most)
	}
	return len(p.tokens), nil
}

// limitFor returns how long prompt and answer may be together.
func limitFor(prompt, most, ctx int) (int, error) {
	if prompt >= ctx {
		return 0, tooLong("the prompt has %d tokens and the context %d, which leaves no room for an answer: "+
			"shorten it, or start with a larger --ctx", prompt, ctx)
	}
	if most <= 0 {
		return ctx, nil
	}
	return prompt + min(most, ctx-prompt), nil
}
