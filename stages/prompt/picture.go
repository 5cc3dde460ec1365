package prompt

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/stages/token"
)

// Eyes are how a model that sees has pictures in its prompts.
type Eyes struct {
	Settings      *picture.Settings // how many tokens a picture takes
	Before, After string            // texts around a picture's tokens
	Token         int32             // the id that stands for each of them
}

// Seen is a picture in a prompt.
type Seen struct {
	At, Tokens int    // its tokens, from the prompt's first one
	Data       []byte // the encoded picture
	Place      string // in the request, for faults that are found when it is decoded
}

// projectors are families by the names that llama.cpp has for their projectors: what surrounds a picture, and the token
// that stands for it, as the families' own processors have them.
var projectors = map[string]struct{ before, after, token string }{
	"mlp":              {"", "\n", "<image>"},
	"gemma3":           {"\n\n<start_of_image>", "<end_of_image>\n\n", "<image_soft_token>"},
	"gemma4v":          {"<|image>", "<image|>", "<|image|>"},
	"glm4v":            {"<|begin_of_image|>", "<|end_of_image|>", "<|image|>"},
	"internvl":         {"<img>", "</img>", "<IMG_CONTEXT>"},
	"pixtral":          {"", "[IMG_END]", "[IMG]"},
	"qwen2vl_merger":   {"<|vision_start|>", "<|vision_end|>", "<|image_pad|>"},
	"qwen2.5vl_merger": {"<|vision_start|>", "<|vision_end|>", "<|image_pad|>"},
	"qwen3vl_merger":   {"<|vision_start|>", "<|vision_end|>", "<|image_pad|>"},
}

// EyesOf finds how a family's prompts have pictures. A vocabulary without the family's token, as those of LLaVA's
// files, gives pictures the id 0, which nobody reads: rows of pictures are vectors.
func EyesOf(projector string, s *picture.Settings, v *token.Vocab) (*Eyes, error) {
	p, ok := projectors[projector]
	if !ok {
		return nil, fmt.Errorf("the projector is %q: want that of LLaVA, Gemma, Qwen-VL, GLM, Pixtral or InternVL", projector)
	}
	e := &Eyes{Settings: s, Before: p.before, After: p.after}
	if id, ok := v.Lookup(p.token); ok {
		e.Token = id
	}
	return e, nil
}

// encode puts a rendered text into tokens, those of its pictures included.
func (w *Writer) encode(dst []int32, text string, messages []chat.Message,
	o token.Options) ([]int32, []Seen, error) {
	var seen []Seen
	var err error
	pieces := []chat.Piece{{Text: text}}
	if w.Eyes != nil {
		pieces = chat.Marked(text, messages)
	}
	after := ""
	for i, piece := range pieces {
		part := after + piece.Text
		after = ""
		if piece.Picture != nil {
			part, after = part+w.Eyes.Before, w.Eyes.After
		}
		if i > 0 {
			o.AddSpecial = false
		}
		if dst, err = w.Vocab.Encode(dst, part, o); err != nil {
			return nil, nil, err
		}
		if piece.Picture == nil {
			continue
		}
		n, err := w.Eyes.tokens(piece.Picture)
		if err != nil {
			return nil, nil, err
		}
		if o.Most > 0 && len(dst)+n > o.Most {
			return nil, nil, refusal.TooLong("the picture %s takes %d tokens, and %d stand before it: the context holds %d: "+
				"send a smaller one, or fewer", piece.Picture.At, n, len(dst), o.Most)
		}
		seen = append(seen, Seen{At: len(dst), Tokens: n, Data: piece.Picture.Picture.Data, Place: piece.Picture.At})
		for range n {
			dst = append(dst, w.Eyes.Token)
		}
	}
	return dst, seen, nil
}

// tokens is how many tokens a picture takes.
func (e *Eyes) tokens(p *chat.Part) (int, error) {
	i, err := picture.Inspect(p.Picture.Data)
	if err != nil {
		return 0, refusal.Of("%s: %v", p.At, err)
	}
	_, _, n, err := e.Settings.Size(i)
	if err != nil {
		return 0, refusal.Of("%s: %v", p.At, err)
	}
	return n, nil
}
