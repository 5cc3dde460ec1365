package actors

import (
	"strings"
	"sync"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
)

// prompt is what the model reads. The first session that needs it makes it, for all choices of the request.
type prompt struct {
	mu       sync.Mutex
	made     bool
	err      error
	tokens   []int32       // nobody changes them
	thinking chat.Thinking // as the prompt's end leaves it; nobody pushes to it
}

// Choices returns n requests for answers to the same prompt, which is rendered and encoded once for all of them. The
// i-th has i added to its seed.
func (r Request) Choices(n int) []Request {
	r.prompt = &prompt{}
	all := make([]Request, n)
	for i := range all {
		all[i] = r
		all[i].Sampling.Seed += uint64(i)
	}
	return all
}

func (s *spec) promptOf(r *Request) (*prompt, error) {
	if r.prompt == nil {
		r.prompt = &prompt{}
	}
	p := r.prompt
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made { // nor is it after a panic
		p.err = s.makePrompt(p, r)
		p.made = true
	}
	return p, p.err
}

func (s *spec) makePrompt(p *prompt, r *Request) error {
	if r.Tokens != nil {
		p.tokens = r.Tokens
		return nil
	}
	text, options := r.Text, token.Options{AddSpecial: true, ParseSpecial: !r.PlainText}
	if r.Chat != nil {
		var err error
		if text, err = s.render(*r.Chat); err != nil {
			return err
		}
		// A template may spell out the BOS that encoding would add: there must be one.
		again := s.vocab.BOSText() != "" && strings.HasPrefix(text, s.vocab.BOSText())
		options = token.Options{AddSpecial: !again, ParseSpecial: true}
	}
	ids, err := s.vocab.Encode(nil, text, options)
	if err != nil {
		return refuse("the prompt cannot be put into tokens: %v", err)
	}
	p.tokens, p.thinking = ids, chat.NewThinking(text)
	return nil
}

// render turns a conversation into the prompt.
func (s *spec) render(in chat.Input) (string, error) {
	in.BOS, in.EOS, in.Now = s.vocab.BOSText(), s.vocab.EOSText(), now()
	text, err := s.template.Render(in)
	if err != nil {
		return "", refuse("the model's chat template refused the conversation: %v", err)
	}
	return text, nil
}
