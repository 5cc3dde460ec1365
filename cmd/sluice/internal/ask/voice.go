package ask

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// piece is a part of an answer.
type piece struct {
	text     string
	thinking bool // it is part of the model's thinking
}

// voice writes one answer as it comes. Thinking is dimmed on a terminal and left out elsewhere. Empty lines around
// thinking and answer are dropped.
type voice struct {
	env.Pane
	env.Wrapper        // of a person's screen
	thinking    bool   // of the last piece
	begun       bool   // some of it was written
	blank       string // white space at its end, written only if more follows
}

func (v *voice) say(p piece) error {
	if p.text == "" || p.thinking && !v.ANSI {
		return nil
	}
	if p.thinking != v.thinking {
		if err := v.write(v.Rest()); err != nil {
			return err
		}
		if v.begun {
			fmt.Fprint(v.W, "\n\n")
		}
		*v = voice{Pane: v.Pane, Wrapper: env.Wrapper{Width: v.Width}, thinking: p.thinking}
	}
	text := v.blank + p.text
	if !v.begun {
		text = strings.TrimLeft(text, "\r\n")
	}
	body := strings.TrimRightFunc(text, unicode.IsSpace)
	v.blank = text[len(body):]
	if body == "" {
		return nil
	}
	v.begun = true
	if v.ANSI {
		body = strings.Map(env.Harmless, body)
	}
	return v.write(v.Take(body))
}

func (v *voice) write(text string) error {
	if text == "" {
		return nil
	}
	if v.thinking {
		text = v.Dimmed(text)
	}
	_, err := io.WriteString(v.W, text)
	return err
}

// end ends the answer's last line.
func (v *voice) end() error {
	if !v.begun {
		return nil
	}
	err := v.write(v.Rest())
	_, last := io.WriteString(v.W, "\n")
	return cmp.Or(err, last)
}
