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

	frame framed // instead of these; nil: pictures are not cut
}

// framed makes the texts around the pieces of a picture, which is the n-th of its prompt, counted from 0.
type framed func(c *picture.Cut, n int) []string

// Seen is a picture in a prompt, or a piece of one.
type Seen struct {
	At, Tokens int    // its tokens, from the prompt's first one
	Piece      int    // its number among the picture's
	Data       []byte // the encoded picture
	Place      string // in the request, for faults that are found when it is decoded
}

// projectors are families by the names that llama.cpp has for their projectors: what surrounds a picture, and the token
// that stands for it, as the families' own processors have them.
var projectors = map[string]struct {
	before, after, token string
	frame                framed
}{
	"mlp":              {"", "\n", "<image>", nil},
	"gemma3":           {"\n\n<start_of_image>", "<end_of_image>\n\n", "<image_soft_token>", nil},
	"gemma4v":          {"<|image>", "<image|>", "<|image|>", nil},
	"glm4v":            {"<|begin_of_image|>", "<|end_of_image|>", "<|image|>", nil},
	"idefics3":         {"", "", "<image>", framedIdefics},
	"internvl":         {"<img>", "</img>", "<IMG_CONTEXT>", nil},
	"llama4":           {"", "", "<|patch|>", framedLlama},
	"pixtral":          {"", "[IMG_END]", "[IMG]", nil},
	"resampler":        {"", "", "<unk>", framedMini},
	"qwen2vl_merger":   {"<|vision_start|>", "<|vision_end|>", "<|image_pad|>", nil},
	"qwen2.5vl_merger": {"<|vision_start|>", "<|vision_end|>", "<|image_pad|>", nil},
	"qwen3vl_merger":   {"<|vision_start|>", "<|vision_end|>", "<|image_pad|>", nil},
}

// framedIdefics names each piece by its line and column, ends lines with a break, and begins and ends the whole
// picture.
func framedIdefics(c *picture.Cut, _ int) (texts []string) {
	const edge = "<fake_token_around_image>"
	lines := ""
	for i := range c.Across * c.Down {
		line, column := i/c.Across+1, i%c.Across+1
		texts = append(texts, lines+edge+fmt.Sprintf("<row_%d_col_%d>", line, column))
		if lines = ""; column == c.Across {
			lines = "\n"
		}
	}
	if len(texts) > 0 {
		lines += "\n"
	}
	return append(texts, lines+edge+"<global-img>", edge)
}

// framedLlama has a token between pieces of a line, another one after each line, and one before the whole picture.
func framedLlama(c *picture.Cut, _ int) (texts []string) {
	next := "<|image_start|>"
	for i := range c.Across * c.Down {
		texts = append(texts, next)
		if next = "<|tile_x_separator|>"; i%c.Across == c.Across-1 {
			next = "<|tile_y_separator|>"
		}
	}
	return append(texts, next+"<|image|>", "<|image_end|>")
}

// framedMini numbers the whole picture, which comes first, and has each slice between tokens of its own.
func framedMini(c *picture.Cut, n int) []string {
	return sliced(c, fmt.Sprintf("<image_id>%d</image_id>", n), "<slice>", "</slice>", "", "")
}

// framedMini25 is the same of MiniCPM-V 2.5, whose slices are pictures among others between two tokens.
func framedMini25(c *picture.Cut, _ int) []string {
	return sliced(c, "", "<image>", "</image>", "<slice>", "</slice>")
}

// sliced has a whole picture, then slices with texts before and after each, and before and after all. Lines of slices
// have a break between them.
func sliced(c *picture.Cut, number, before, after, first, last string) []string {
	texts, next := []string{number + "<image>"}, "</image>"
	for i := range c.Across * c.Down {
		switch {
		case i == 0:
			next += first
		case i%c.Across == 0:
			next += "\n"
		}
		texts = append(texts, next+before)
		next = after
	}
	if c.Across > 0 {
		next += last
	}
	return append(texts, next+"\n")
}

// EyesOf finds how a family's prompts have pictures. A vocabulary without the family's token, as those of LLaVA's
// files, gives pictures the id 0, which nobody reads: rows of pictures are vectors.
func EyesOf(projector string, s *picture.Settings, v *token.Vocab) (*Eyes, error) {
	p, ok := projectors[projector]
	if !ok {
		return nil, fmt.Errorf("the projector is %q: want that of LLaVA, Gemma, Qwen-VL, GLM, Pixtral, InternVL, "+
			"Idefics 3, Llama 4 or MiniCPM-V", projector)
	}
	e := &Eyes{Settings: s, Before: p.before, After: p.after, frame: p.frame}
	if _, numbered := v.Lookup("<image_id>"); projector == "resampler" && !numbered {
		e.frame = framedMini25
	}
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
	before := ""
	for i, piece := range pieces {
		if i > 0 {
			o.AddSpecial = false
		}
		if piece.Picture == nil {
			dst, err = w.Vocab.Encode(dst, before+piece.Text, o)
			return dst, seen, err
		}
		before += piece.Text
		if dst, before, err = w.Eyes.place(w.Vocab, dst, before, piece.Picture, &seen, o); err != nil {
			return nil, nil, err
		}
	}
	return dst, seen, nil
}

// place adds a text and the picture behind it, in pieces if it is cut. What stands after the last one is returned: it
// is encoded together with the text that follows.
func (e *Eyes) place(v *token.Vocab, dst []int32, before string, p *chat.Part, seen *[]Seen,
	o token.Options) (to []int32, after string, err error) {
	cut, err := e.cut(p)
	if err != nil {
		return nil, "", err
	}
	texts := []string{e.Before, e.After}
	if e.frame != nil {
		n := 0
		for i := range *seen {
			n += min(max(1-(*seen)[i].Piece, 0), 1)
		}
		texts = e.frame(&cut, n)
	}
	for i, n := range cut.Tokens {
		if dst, err = v.Encode(dst, before+texts[i], o); err != nil {
			return nil, "", err
		}
		before, o.AddSpecial = "", false
		if o.Most > 0 && len(dst)+n > o.Most {
			return nil, "", refusal.TooLong("the picture %s takes %d tokens, and %d stand before it: the context holds %d: "+
				"send a smaller one, or fewer", p.At, n, len(dst), o.Most)
		}
		*seen = append(*seen, Seen{At: len(dst), Tokens: n, Piece: i, Data: p.Picture.Data, Place: p.At})
		for range n {
			dst = append(dst, e.Token)
		}
	}
	return dst, texts[len(cut.Tokens)], nil
}

// cut is how a picture is read.
func (e *Eyes) cut(p *chat.Part) (c picture.Cut, err error) {
	i, err := picture.Inspect(p.Picture.Data)
	if err == nil {
		c, err = e.Settings.Cut(i)
	}
	if err != nil {
		return c, refusal.Of("%s: %v", p.At, err)
	}
	return c, nil
}
