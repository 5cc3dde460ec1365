package actors

import (
	"fmt"
	"strings"
	"sync"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Info describes the model that an engine runs.
type Info struct {
	Name         string // general.name, or the file's
	Architecture string
	Parameters   int64
	WeightBytes  int64 // of all weights
	Vocab        int
	Trained      int           // positions the model was trained for
	Context      int           // positions one request may hold here
	KVBytes      int64         // of a position, in all layers
	Program      *ir.Bound     // what is computed; not to be changed
	TemplateNote string        // how the chat template was found, if not in the file; for the user
	Sampling     sample.Params // the model's own defaults, or the usual ones
}

// Vocab is the model's vocabulary.
func (e *Engine) Vocab() *token.Vocab { return e.vocab }

// describe collects what users are told about the model, and finds its chat template.
func describe(k *core) (Info, *chat.Template, error) {
	m := &k.file.Meta
	info := Info{
		Name: k.file.Name, Architecture: k.bound.Arch, Vocab: k.bound.Vocab,
		Trained: k.bound.Context, Context: k.ctx, Sampling: ownSampling(m),
		Program: k.bound, KVBytes: k.blockBytes() / backend.BlockSize,
	}
	if name, err := m.String("general.name"); err == nil && name != "" {
		info.Name = name
	}
	for ref, w := range k.bound.Weights {
		info.Parameters += int64(w.Rows) * int64(w.Cols)
		info.WeightBytes += k.file.Tensors[k.bound.Tensors[ref]].Size
	}
	source, _ := m.String("tokenizer.chat_template") // a file without one is the next line's matter
	template, note, err := chat.ForModel(source, k.bound.Arch, func(text string) bool {
		_, ok := k.vocab.Lookup(text)
		return ok
	})
	if err != nil {
		return info, nil, fmt.Errorf("%s: tokenizer.chat_template: %w", k.file.Name, err)
	}
	info.TemplateNote = note
	return info, template, nil
}

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

func (k *core) promptOf(r *Request) (*prompt, error) {
	if r.prompt == nil {
		r.prompt = &prompt{}
	}
	p := r.prompt
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made { // nor is it after a panic
		p.err = k.makePrompt(p, r)
		p.made = true
	}
	return p, p.err
}

func (k *core) makePrompt(p *prompt, r *Request) error {
	if r.Tokens != nil {
		p.tokens = r.Tokens
		return nil
	}
	text, options := r.Text, token.Options{AddSpecial: true, ParseSpecial: !r.PlainText}
	if r.Chat != nil {
		var err error
		if text, err = k.render(*r.Chat); err != nil {
			return err
		}
		// A template may spell out the BOS that encoding would add: there must be one.
		again := k.vocab.BOSText() != "" && strings.HasPrefix(text, k.vocab.BOSText())
		options = token.Options{AddSpecial: !again, ParseSpecial: true}
	}
	ids, err := k.vocab.Encode(nil, text, options)
	if err != nil {
		return refuse("the prompt cannot be put into tokens: %v", err)
	}
	p.tokens, p.thinking = ids, chat.NewThinking(text)
	return nil
}

// render turns a conversation into the prompt.
func (k *core) render(in chat.Input) (string, error) {
	in.BOS, in.EOS, in.Now = k.vocab.BOSText(), k.vocab.EOSText(), now()
	text, err := k.template.Render(in)
	if err != nil {
		return "", refuse("the model's chat template refused the conversation: %v", err)
	}
	return text, nil
}
