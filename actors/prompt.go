package actors

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Info describes the model that an engine runs.
type Info struct {
	Name         string // general.name, or the file's
	Architecture string
	Parameters   int64
	WeightBytes  int64 // what a token reads of the weights
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
		Program: k.bound, KVBytes: k.blockBytes() / kv.BlockSize,
	}
	if name, err := m.String("general.name"); err == nil && name != "" {
		info.Name = name
	}
	for ref, w := range k.bound.Weights {
		info.Parameters += int64(w.Rows) * int64(w.Cols)
		if w.Use != ir.Table { // of an embedding table, a token reads one row
			info.WeightBytes += k.file.Tensors[k.bound.Tensors[ref]].Size
		}
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

func (k *core) promptTokens(r *Request) ([]int32, error) {
	if r.Tokens != nil {
		return r.Tokens, nil
	}
	text, options := r.Text, token.Options{AddSpecial: true, ParseSpecial: !r.PlainText}
	if r.Chat != nil {
		var err error
		if text, err = k.render(*r.Chat); err != nil {
			return nil, err
		}
		// A template may spell out the BOS that encoding would add: there must be one.
		again := k.vocab.BOSText() != "" && strings.HasPrefix(text, k.vocab.BOSText())
		options = token.Options{AddSpecial: !again, ParseSpecial: true}
	}
	ids, err := k.vocab.Encode(nil, text, options)
	if err != nil {
		return nil, refuse("the prompt cannot be put into tokens: %v", err)
	}
	return ids, nil
}

// Prompt renders a conversation as Generate does, for those who must know how the prompt ends.
func (e *Engine) Prompt(in chat.Input) (string, error) { return e.render(in) }

// render turns a conversation into the prompt.
func (k *core) render(in chat.Input) (string, error) {
	in.BOS, in.EOS, in.Now = k.vocab.BOSText(), k.vocab.EOSText(), now()
	text, err := k.template.Render(in)
	if err != nil {
		return "", refuse("the model's chat template refused the conversation: %v", err)
	}
	return text, nil
}
