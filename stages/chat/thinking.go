package chat

import (
	"strings"
	"unicode"
)

// Piece is a part of what a model wrote. Tags belong to no piece.
type Piece struct {
	Text     string
	Thinking bool // the model talks to itself; else it is the answer
}

// thinkTags are the marks around thinking, opening and closing.
var thinkTags = [...][2]string{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<reasoning>", "</reasoning>"},
	{"<seed:think>", "</seed:think>"},
	{"[THINK]", "[/THINK]"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<|channel|>analysis<|message|>", "<|end|>"},
	{"<|channel>thought", "<channel|>"},
}

// Thinking splits a stream of text into thinking and answer. Thinking begins where nothing but white space (or
// earlier thinking) came before, so an answer may mention a tag. Text that may be the beginning of a tag is held
// back until it is known: how the stream is cut changes nothing.
type Thinking struct {
	held    string // not yet labelled
	closing string // the tag that ends the thinking that we are in; "" outside
	answer  bool   // the answer has begun: no tag means anything any more
}

// NewThinking begins after a prompt. Templates may end it with an opening tag: then the model starts thinking.
func NewThinking(prompt string) *Thinking {
	end := strings.TrimRightFunc(prompt, unicode.IsSpace)
	for _, tag := range thinkTags {
		if strings.HasSuffix(end, tag[0]) {
			return &Thinking{closing: tag[1]}
		}
	}
	return &Thinking{}
}

// Push takes the next text and returns what can be labelled by now.
func (t *Thinking) Push(text string) []Piece {
	t.held += text
	var out []Piece
	for {
		n, done := t.step()
		if n.Text != "" {
			out = append(out, n)
		}
		if done {
			return out
		}
	}
}

// End returns what is still held back: it is no tag after all.
func (t *Thinking) End() []Piece {
	p := Piece{t.held, t.closing != ""}
	t.held = ""
	if p.Text == "" {
		return nil
	}
	return []Piece{p}
}

// step labels one piece; done means that more text is needed for the next.
func (t *Thinking) step() (p Piece, done bool) {
	switch {
	case t.answer:
		p, t.held = Piece{Text: t.held}, ""
		return p, true
	case t.closing != "":
		return t.thought()
	}
	start := strings.TrimLeftFunc(t.held, unicode.IsSpace)
	if start == "" {
		return p, true
	}
	for _, tag := range thinkTags {
		if strings.HasPrefix(start, tag[0]) {
			p = Piece{t.held[:len(t.held)-len(start)], true}
			t.held, t.closing = start[len(tag[0]):], tag[1]
			return p, false
		}
	}
	for _, tag := range thinkTags {
		if strings.HasPrefix(tag[0], start) {
			return p, true
		}
	}
	t.answer = true
	return p, false
}

// thought labels text up to the closing tag, or up to where one may begin.
func (t *Thinking) thought() (p Piece, done bool) {
	if at := strings.Index(t.held, t.closing); at >= 0 {
		p = Piece{t.held[:at], true}
		t.held, t.closing = t.held[at+len(t.closing):], ""
		return p, false
	}
	keep := min(len(t.closing)-1, len(t.held))
	for ; keep > 0; keep-- {
		if strings.HasPrefix(t.closing, t.held[len(t.held)-keep:]) {
			break
		}
	}
	p = Piece{t.held[:len(t.held)-keep], true}
	t.held = t.held[len(p.Text):]
	return p, true
}
