package chat

import (
	"bytes"
	"strings"
	"unicode"
)

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

// Thinking splits a stream of text into what the model says to itself and its answer; the tags belong to neither.
// Thinking begins where nothing but white space (or earlier thinking) came before, so an answer may mention a tag, and
// all thinking comes before the answer. Text that may be the beginning of a tag is held back until it is known: how
// the stream is cut changes nothing. It may be copied until the first Push.
type Thinking struct {
	held    []byte // not yet labelled
	thought []byte // what Push found
	closing []byte // the tag that ends the thinking that we are in; nil outside
	answer  bool   // the answer has begun: no tag means anything any more
}

// NewThinking begins after a prompt. Templates may end it with an opening tag: then the model starts thinking.
func NewThinking(prompt string) Thinking {
	end := strings.TrimRightFunc(prompt, unicode.IsSpace)
	for _, tag := range thinkTags {
		if strings.HasSuffix(end, tag[0]) {
			return Thinking{closing: []byte(tag[1])}
		}
	}
	return Thinking{}
}

// Inside says that an opening tag has come, and its closing one has not.
func (t *Thinking) Inside() bool { return t.closing != nil }

// Push takes the next text and returns what can be labelled by now. Both are valid until the next call, and while
// text is.
func (t *Thinking) Push(text []byte) (thought, answer []byte) {
	if t.answer {
		return nil, text
	}
	t.held = append(t.held, text...)
	t.thought = t.thought[:0]
	for t.step() {
	}
	if t.answer {
		answer, t.held = t.held, nil
	}
	return t.thought, answer
}

// End returns what is still held back: it is no tag after all.
func (t *Thinking) End() (thought, answer []byte) {
	rest := t.held
	t.held = nil
	if t.closing != nil {
		return rest, nil
	}
	return nil, rest
}

// step labels what it can up to the next tag, and says whether there may be more.
func (t *Thinking) step() (more bool) {
	if t.closing != nil {
		return t.think()
	}
	start := bytes.TrimLeftFunc(t.held, unicode.IsSpace)
	if len(start) == 0 {
		return false
	}
	for _, tag := range thinkTags {
		if bytes.HasPrefix(start, []byte(tag[0])) {
			t.thought = append(t.thought, t.held[:len(t.held)-len(start)]...)
			t.drop(len(t.held) - len(start) + len(tag[0]))
			t.closing = []byte(tag[1])
			return true
		}
	}
	for _, tag := range thinkTags {
		if bytes.HasPrefix([]byte(tag[0]), start) {
			return false
		}
	}
	t.answer = true
	return false
}

// think labels text up to the closing tag, or up to where one may begin.
func (t *Thinking) think() (closed bool) {
	if at := bytes.Index(t.held, t.closing); at >= 0 {
		t.thought = append(t.thought, t.held[:at]...)
		t.drop(at + len(t.closing))
		t.closing = nil
		return true
	}
	keep := min(len(t.closing)-1, len(t.held))
	for ; keep > 0; keep-- {
		if bytes.HasPrefix(t.closing, t.held[len(t.held)-keep:]) {
			break
		}
	}
	t.thought = append(t.thought, t.held[:len(t.held)-keep]...)
	t.drop(len(t.held) - keep)
	return false
}

// drop forgets the first n bytes of what is held.
func (t *Thinking) drop(n int) { t.held = t.held[:copy(t.held, t.held[n:])] }
